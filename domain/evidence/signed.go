package evidence

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/go-jose/go-jose/v4"

	"openbot/domain"
)

// Types of what is signed, in the typ of its header: one is never taken for another.
const (
	typeReceipt = "openbot-receipt+jws"
	typeHead    = "openbot-audit-head+jws"
)

// SignReceipt gives a receipt as a JWS in compact form (RFC 7515, EdDSA of RFC 8037).
func (k *Key) SignReceipt(r domain.Receipt) (string, error) { return k.sign(typeReceipt, r) }

// SignHead gives the end of a chain as a JWS in compact form.
func (k *Key) SignHead(c domain.AuditHeadClaims) (string, error) { return k.sign(typeHead, c) }

// Signed is what was found in a JWS whose signature fits. Exactly one of Receipt and
// Head is set.
type Signed struct {
	Key     domain.SigningKeyID
	Receipt *domain.Receipt
	Head    *domain.AuditHeadClaims
}

// maxSigned bounds what is looked at, in bytes; a receipt has less than 2000.
const maxSigned = 1 << 16

// Open checks a JWS in compact form against public keys and gives what it says. Every
// byte counts: another spelling of the same signature is refused as well. Its errors
// say in one line why nothing can be believed.
func Open(text string, keys Keys) (Signed, error) {
	if len(text) > maxSigned {
		return Signed{}, errors.New("this is no receipt: it is too long")
	}
	for _, part := range strings.Split(text, ".") {
		decoded, err := base64.RawURLEncoding.Strict().DecodeString(part)
		if err != nil || base64.RawURLEncoding.EncodeToString(decoded) != part {
			return Signed{}, errors.New("this is no receipt, or one that was changed: it is not a JWS in compact form")
		}
	}
	parsed, err := jose.ParseSignedCompact(text, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil || len(parsed.Signatures) != 1 {
		return Signed{}, errors.New("this is no receipt, or one that was changed: it is not a JWS in compact form, signed with EdDSA")
	}
	header := parsed.Signatures[0].Protected
	id := domain.SigningKeyID(header.KeyID)
	public, ok := keys[id]
	if !ok {
		return Signed{}, fmt.Errorf("it is signed with the key %q, which is not among the keys: get the server's /.well-known/jwks.json again", string(id))
	}
	payload, err := parsed.Verify(public)
	if err != nil {
		return Signed{}, fmt.Errorf("the signature does not fit: this was changed, or was never signed with the key %s", id)
	}
	signed := Signed{Key: id}
	switch typ, _ := header.ExtraHeaders[jose.HeaderType].(string); typ {
	case typeReceipt:
		signed.Receipt = new(domain.Receipt)
		err = read(payload, signed.Receipt)
	case typeHead:
		signed.Head = new(domain.AuditHeadClaims)
		err = read(payload, signed.Head)
	default:
		return Signed{}, fmt.Errorf("it is signed, but as %q, which is neither a receipt nor the head of an audit log", typ)
	}
	if err != nil {
		return Signed{}, errors.New("it is signed, but says something that this version does not know: use the version of the server")
	}
	return signed, nil
}

// read takes no field that it does not know: it could change what the others mean.
func read(payload []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(payload))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
