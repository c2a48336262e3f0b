package evidence

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"

	"openbot/domain"
)

// SeedSize is the length of the seed that a key is made from, in bytes.
const SeedSize = ed25519.SeedSize

// Key signs with Ed25519 (RFC 8032).
type Key struct {
	id      domain.SigningKeyID
	private ed25519.PrivateKey
	signers map[string]jose.Signer // by the type of what is signed
}

// NewKey makes a key from a seed of SeedSize random bytes. Its ID becomes the kid of
// what it signs.
func NewKey(id domain.SigningKeyID, seed []byte) (*Key, error) {
	if len(seed) != SeedSize {
		return nil, fmt.Errorf("a signing key has a seed of %d bytes, not %d", SeedSize, len(seed))
	}
	k := &Key{id: id, private: ed25519.NewKeyFromSeed(seed), signers: map[string]jose.Signer{}}
	for _, typ := range []string{typeReceipt, typeHead} {
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: k.private, KeyID: string(id)}},
			(&jose.SignerOptions{}).WithType(jose.ContentType(typ)))
		if err != nil {
			return nil, fmt.Errorf("making a signer: %w", err)
		}
		k.signers[typ] = signer
	}
	return k, nil
}

// ID is the kid of what the key signs.
func (k *Key) ID() domain.SigningKeyID { return k.id }

// Public gives the public half as the x of RFC 8037.
func (k *Key) Public() string {
	return base64.RawURLEncoding.EncodeToString(k.private.Public().(ed25519.PublicKey))
}

func (k *Key) sign(typ string, claims any) (string, error) {
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("writing what is signed: %w", err)
	}
	signed, err := k.signers[typ].Sign(payload)
	if err != nil {
		return "", fmt.Errorf("signing: %w", err)
	}
	return signed.CompactSerialize()
}

// Keys are public keys, by their kid.
type Keys map[domain.SigningKeyID]ed25519.PublicKey

// Add takes in a public key as Key.Public gives it.
func (k Keys) Add(id domain.SigningKeyID, x string) error {
	public, err := base64.RawURLEncoding.Strict().DecodeString(x)
	if err != nil || len(public) != ed25519.PublicKeySize {
		return fmt.Errorf("the public key %s is damaged", id)
	}
	k[id] = public
	return nil
}

// ReadKeys reads a JSON Web Key Set (RFC 7517), as a server publishes it at
// /.well-known/jwks.json. Keys of other kinds are left out; a set without any
// Ed25519 key is an error.
func ReadKeys(set []byte) (Keys, error) {
	var read jose.JSONWebKeySet
	if err := json.Unmarshal(set, &read); err != nil {
		return nil, errors.New("the keys are not a JSON Web Key Set, as /.well-known/jwks.json gives it")
	}
	keys := Keys{}
	for _, key := range read.Keys {
		if public, ok := key.Key.(ed25519.PublicKey); ok && key.KeyID != "" && key.Valid() {
			keys[domain.SigningKeyID(key.KeyID)] = public
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("the key set holds no Ed25519 key with a kid")
	}
	return keys, nil
}
