package config_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"openbot/config"
)

func TestSecretKeyIsMadeOnce(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a", "data")
	keys := make([]config.Secret, 20)
	var group sync.WaitGroup
	for i := range keys {
		group.Go(func() {
			key, err := config.SecretKey(folder)
			if err != nil {
				t.Error(err)
			}
			keys[i] = key
		})
	}
	group.Wait()
	for _, key := range keys {
		if key.IsZero() || !key.Equal(keys[0]) {
			t.Fatal("callers at the same time got different keys")
		}
	}
	if random, err := base64.StdEncoding.DecodeString(keys[0].Reveal()); err != nil || len(random) != 32 {
		t.Errorf("the key is %d bytes, %v", len(random), err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 1 {
		t.Fatalf("the folder holds %v, %v", entries, err)
	}
	info, err := entries[0].Info()
	if err != nil || info.Name() != "secret.key" || info.Mode().Perm() != 0o600 {
		t.Errorf("%v has mode %v, %v", info.Name(), info.Mode(), err)
	}
}

func TestABadKeyFileStopsTheStart(t *testing.T) {
	good := strings.Repeat("k", 44)
	for name, c := range map[string]struct {
		content string
		mode    os.FileMode
		want    string
	}{
		"empty":     {"", 0o600, "damaged"},
		"cut short": {good[:31], 0o600, "damaged"},
		"too long":  {strings.Repeat("k", 5000), 0o600, "damaged"},
		"open":      {good, 0o644, "chmod 600"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, "secret.key")
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, c.mode); err != nil {
				t.Fatal(err)
			}
			_, err := config.SecretKey(folder)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if content, _ := os.ReadFile(path); string(content) != c.content {
				t.Error("the file was changed")
			}
		})
	}
}

func TestAKeyFileOfOnesOwnIsKept(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "secret.key"), []byte(someKey+"\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	if key, err := config.SecretKey(folder); err != nil || key.Reveal() != someKey {
		t.Errorf("got %v, %v", key.Reveal() == someKey, err)
	}
	if _, err := config.SecretKey(filepath.Join(folder, "secret.key", "x")); err == nil {
		t.Error("a file was taken for a folder")
	}
}
