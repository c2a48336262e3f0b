package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"openbot/domain"
)

// receiptType is the media type of a JWS in compact form.
const receiptType = "application/jose"

// KeySet is a JSON Web Key Set, as RFC 7517 gives it.
type KeySet struct {
	Keys []PublicKey `json:"keys"`
}

// PublicKey is one Ed25519 key, as RFC 8037 gives it.
type PublicKey struct {
	Type      string              `json:"kty" enum:"OKP"`
	Curve     string              `json:"crv" enum:"Ed25519"`
	X         string              `json:"x" doc:"The public key, in base64url."`
	ID        domain.SigningKeyID `json:"kid" doc:"The kid in the header of what it signs."`
	Algorithm string              `json:"alg" enum:"EdDSA"`
	Use       string              `json:"use" enum:"sig"`
}

// textAnswer is an answer that is no JSON.
type textAnswer struct {
	ContentType string `header:"Content-Type" hidden:"true"`
	Body        []byte
}

func (s *server) evidenceRoutes() {
	register(s, route{id: "readReceipt", method: http.MethodGet, path: "/v1/requests/{request}/receipt", tag: "Evidence",
		summary: "The signed receipt of a decision", about: "A JWS in compact form (EdDSA): save it as it comes, and check it with openbot verify or any JOSE library. " +
			"There is none while the Request waits, and none for one that was cancelled.",
		role: domain.RoleRead, status: 200, errors: []int{404}, media: map[string]*huma.MediaType{receiptType: {Schema: &huma.Schema{Type: huma.TypeString}}}},
		func(ctx context.Context, p domain.Principal, in *RequestPath) (*textAnswer, error) {
			id, err := in.id()
			if err != nil {
				return nil, err
			}
			receipt, err := s.Engine.Receipt(ctx, p, id)
			return &textAnswer{receiptType, []byte(receipt)}, err
		})
	register(s, route{id: "readKeys", method: http.MethodGet, path: "/.well-known/jwks.json", tag: "Evidence",
		summary: "The public keys of receipts", about: "Also those that signed before, so that old receipts can be checked, and one that is about to sign.", status: 200},
		func(ctx context.Context, _ domain.Principal, _ *struct{}) (*struct {
			CacheControl string `header:"Cache-Control"`
			Body         KeySet
		}, error) {
			rows, err := s.Engine.SigningKeys(ctx)
			if err != nil {
				return nil, err
			}
			set := KeySet{Keys: []PublicKey{}}
			for _, k := range rows {
				set.Keys = append(set.Keys, PublicKey{Type: "OKP", Curve: "Ed25519", X: k.Public, ID: k.ID, Algorithm: "EdDSA", Use: "sig"})
			}
			return &struct {
				CacheControl string `header:"Cache-Control"`
				Body         KeySet
			}{"public, max-age=300", set}, nil
		})
}
