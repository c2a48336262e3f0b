package apps_test

import (
	"bytes"
	"strings"
	"testing"

	"openbot/apps"
)

func TestSealerBindsOrganizationAndOwner(t *testing.T) {
	if _, err := apps.NewSealer(strings.Repeat("k", 31)); err == nil {
		t.Error("a secret of 31 characters was taken")
	}
	sealer, err := apps.NewSealer(strings.Repeat("k", 32))
	if err != nil {
		t.Fatal(err)
	}
	other, err := apps.NewSealer(strings.Repeat("l", 32))
	if err != nil {
		t.Fatal(err)
	}
	plain := []byte("a secret")
	sealed, err := sealer.Seal(plain, "org_1", "con_1")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := sealer.Open(sealed, "org_1", "con_1"); err != nil || !bytes.Equal(got, plain) {
		t.Fatalf("opening gives %q, %v", got, err)
	}
	again, err := sealer.Seal(plain, "org_1", "con_1")
	if err != nil || bytes.Equal(again, sealed) {
		t.Errorf("the same text sealed twice is the same (%v)", err)
	}
	if _, err := sealer.Open(sealed, "org_2", "con_1"); err == nil {
		t.Error("another organization opens it")
	}
	if _, err := sealer.Open(sealed, "org_1", "con_2"); err == nil {
		t.Error("another owner opens it")
	}
	if _, err := other.Open(sealed, "org_1", "con_1"); err == nil {
		t.Error("another secret opens it")
	}
	for i := range sealed {
		bent := bytes.Clone(sealed)
		bent[i] ^= 1
		if _, err := sealer.Open(bent, "org_1", "con_1"); err == nil {
			t.Fatalf("a flipped bit in byte %d is not noticed", i)
		}
		if _, err := sealer.Open(sealed[:i], "org_1", "con_1"); err == nil {
			t.Fatalf("a text cut at byte %d opens", i)
		}
	}
	if _, err := sealer.Seal(plain, "", "con_1"); err == nil {
		t.Error("a text was sealed for no organization")
	}
	if _, err := sealer.Seal(plain, "org_1", ""); err == nil {
		t.Error("a text was sealed for no owner")
	}
}
