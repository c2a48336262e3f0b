package config

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

const (
	keyFile     = "secret.key"
	maxKeyBytes = 4096
)

// SecretKey gives the secret from which the keys at rest are derived, out of the
// file secret.key in the data folder. It makes the folder and the file when they
// are missing: 32 random bytes in base64, readable by its owner alone. Processes
// that start together get the same secret.
//
// It fails when the file is damaged or open to everybody, for a new secret in its
// place would make everything sealed with the old one unreadable.
func SecretKey(dataDir string) (Secret, error) {
	path := filepath.Join(dataDir, keyFile)
	secret, err := readKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return Secret{}, fmt.Errorf("the data folder cannot be made: %w", err)
	}
	if err := makeKey(dataDir, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return Secret{}, fmt.Errorf("the secret key cannot be kept in the data folder: %w", err)
	}
	return readKey(path)
}

func readKey(path string) (Secret, error) {
	file, err := os.Open(path)
	if err != nil {
		return Secret{}, fmt.Errorf("the secret key cannot be read: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return Secret{}, fmt.Errorf("the secret key cannot be read: %w", err)
	}
	// The group may read it: a volume of Kubernetes gives every file to a group.
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o007 != 0 {
		return Secret{}, fmt.Errorf("%s is open to everybody: run chmod 600 on it", path)
	}
	content, err := io.ReadAll(io.LimitReader(file, maxKeyBytes+1))
	if err != nil {
		return Secret{}, fmt.Errorf("the secret key cannot be read: %w", err)
	}
	key := strings.TrimSpace(string(content))
	if len(key) < minSecretKeyCharacters || len(content) > maxKeyBytes {
		return Secret{}, fmt.Errorf("%s is damaged: put it back from a backup, what is sealed cannot be read without it", path)
	}
	return NewSecret(key), nil
}

// makeKey writes the whole file under another name and then links it: the link is
// exclusive like O_EXCL, and no crash leaves half a key under the real name.
func makeKey(dataDir, path string) error {
	random := make([]byte, 32)
	if _, err := rand.Read(random); err != nil {
		return err
	}
	file, err := os.CreateTemp(dataDir, keyFile+".*") // exclusive, mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = file.WriteString(base64.StdEncoding.EncodeToString(random) + "\n")
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Link(file.Name(), path); err != nil {
		return err
	}
	return syncFolder(dataDir)
}

// syncFolder makes the new name outlast a power cut.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
