package apps

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"openbot/domain"
)

// sealVersion is the first byte of every sealed text, so that another way of
// sealing can be added while old texts stay readable.
const sealVersion byte = 1

// minSecret is the shortest secret that keys are derived from, in bytes.
const minSecret = 32

// errSealed is the only answer to a text that cannot be opened: which part did not
// fit would help nobody but an attacker.
var errSealed = errors.New("the sealed text cannot be opened: it belongs to another organization or owner, was sealed with another OPENBOT_SECRET_KEY, or is damaged")

// Sealer encrypts secrets at rest with AES-256-GCM. Each organization has a key of
// its own, derived from one secret with HKDF-SHA256 (RFC 5869); the owner is bound
// as additional data.
type Sealer struct {
	secret []byte
}

// NewSealer makes a Sealer from a secret of at least 32 characters.
func NewSealer(secret string) (*Sealer, error) {
	if len(secret) < minSecret {
		return nil, fmt.Errorf("OPENBOT_SECRET_KEY has %d characters; it needs at least %d", len(secret), minSecret)
	}
	return &Sealer{secret: []byte(secret)}, nil
}

// Seal encrypts plain for one organization and one owner. It fails only when the
// organization or the owner is empty.
func (s *Sealer) Seal(plain []byte, organization domain.OrganizationID, owner string) ([]byte, error) {
	aead, err := s.key(organization, owner)
	if err != nil {
		return nil, err
	}
	sealed := make([]byte, 1+aead.NonceSize(), 1+aead.NonceSize()+len(plain)+aead.Overhead())
	sealed[0] = sealVersion
	if _, err := rand.Read(sealed[1:]); err != nil {
		return nil, fmt.Errorf("no randomness for sealing: %w", err)
	}
	return aead.Seal(sealed, sealed[1:], plain, bound(organization, owner)), nil
}

// Open gives the text back. It fails for another organization, another owner,
// another secret, and for a text that was changed by a single bit.
func (s *Sealer) Open(sealed []byte, organization domain.OrganizationID, owner string) ([]byte, error) {
	aead, err := s.key(organization, owner)
	if err != nil {
		return nil, err
	}
	if len(sealed) < 1+aead.NonceSize()+aead.Overhead() || sealed[0] != sealVersion {
		return nil, errSealed
	}
	nonce, text := sealed[1:1+aead.NonceSize()], sealed[1+aead.NonceSize():]
	plain, err := aead.Open(nil, nonce, text, bound(organization, owner))
	if err != nil {
		return nil, errSealed
	}
	return plain, nil
}

func (s *Sealer) key(organization domain.OrganizationID, owner string) (cipher.AEAD, error) {
	if organization == "" || owner == "" {
		return nil, errors.New("a secret is sealed for an organization and an owner; one of them is empty")
	}
	key, err := hkdf.Key(sha256.New, s.secret, nil, "openbot secrets v1 "+string(organization), 32)
	if err != nil {
		return nil, fmt.Errorf("deriving a key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("making a cipher: %w", err)
	}
	return cipher.NewGCM(block)
}

// bound is the additional data: version, organization and owner, with the length of
// the first so that no two pairs give the same bytes.
func bound(organization domain.OrganizationID, owner string) []byte {
	data := append([]byte{sealVersion}, binary.BigEndian.AppendUint32(nil, uint32(len(organization)))...)
	data = append(data, organization...)
	return append(data, owner...)
}
