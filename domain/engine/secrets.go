package engine

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"strings"
)

// newSecret makes the secret of a token: 32 random bytes behind a prefix that
// scanners for leaked secrets can look for.
func newSecret() string {
	var b [32]byte
	rand.Read(b[:]) // never fails: it ends the program when there is no randomness
	return "obt_" + base64.RawURLEncoding.EncodeToString(b[:])
}

// newSeed makes the seed of a program's Math.random.
func newSeed() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// HashSecret gives what is kept of a token's secret. The secrets are long and
// random, so a plain hash cannot be searched backwards.
func HashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

const signingPrefix = "whsec_"

// newSigningSecret makes a Standard Webhooks secret.
func newSigningSecret() string {
	var b [32]byte
	rand.Read(b[:])
	return signingPrefix + base64.StdEncoding.EncodeToString(b[:])
}

func validSigningSecret(secret string) bool {
	text, ok := strings.CutPrefix(secret, signingPrefix)
	raw, err := base64.StdEncoding.DecodeString(text)
	return ok && err == nil && len(raw) >= 24 && len(raw) <= 64
}
