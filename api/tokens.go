package api

import (
	"context"
	"net/http"
	"time"

	"openbot/domain"
	"openbot/domain/engine"
)

// Token is a secret that acts as one Member, without the secret.
type Token struct {
	ID         domain.TokenID  `json:"id"`
	Member     domain.MemberID `json:"member" doc:"Whom it acts as."`
	Name       string          `json:"name"`
	Scopes     []string        `json:"scopes"`
	ExpiresAt  *int64          `json:"expiresAt"`
	LastUsedAt *int64          `json:"lastUsedAt" doc:"Exact to a minute."`
	RevokedAt  *int64          `json:"revokedAt"`
	CreatedAt  int64           `json:"createdAt"`
}

func wireToken(t domain.Token) Token {
	return Token{ID: t.ID, Member: t.Member, Name: t.Name, Scopes: nonNil([]string(t.Scopes)), ExpiresAt: msOrNull(t.ExpiresAt),
		LastUsedAt: msOrNull(t.LastUsedAt), RevokedAt: msOrNull(t.RevokedAt), CreatedAt: ms(t.CreatedAt)}
}

// MadeToken is a new token with its secret.
type MadeToken struct {
	ID        domain.TokenID `json:"id"`
	Name      string         `json:"name"`
	Scopes    []string       `json:"scopes"`
	ExpiresAt *int64         `json:"expiresAt"`
	Token     string         `json:"token,omitempty" doc:"The secret, shown this once; left out when the answer is given again under an Idempotency-Key."`
}

func wireMadeToken(t domain.Token) MadeToken {
	return MadeToken{ID: t.ID, Name: t.Name, Scopes: nonNil([]string(t.Scopes)), ExpiresAt: msOrNull(t.ExpiresAt)}
}

// NewToken is the body that makes a token.
type NewToken struct {
	Name      string   `json:"name" minLength:"1" maxLength:"200"`
	Scopes    []string `json:"scopes" minItems:"1" maxItems:"100" example:"[\"write\",\"*\"]" doc:"Roles and patterns over capabilities; they may not go beyond those of the token that you use. Without a pattern the work that it starts has no capability."`
	ExpiresAt *int64   `json:"expiresAt,omitempty" nullable:"true" minimum:"0" maximum:"253402300799000" doc:"When it ends; left out: never."`
	Member    string   `json:"member,omitempty" doc:"Whom it acts as; left out: you."`
}

func (s *server) tokenRoutes() {
	const list = "tokens"
	register(s, route{id: "listTokens", method: http.MethodGet, path: "/v1/tokens", tag: "Administration", summary: "List the tokens, newest first",
		role: domain.RoleAdmin, status: 200},
		func(ctx context.Context, p domain.Principal, in *struct{ Paged }) (*listed[Token], error) {
			page, err := in.page(list)
			if err != nil {
				return nil, err
			}
			rows, err := s.Engine.Tokens(ctx, p, page)
			if err != nil {
				return nil, err
			}
			return listOf(ctx, list, in.Paged, rows, func(t domain.Token) string { return string(t.ID) }, wireToken), nil
		})
	register(s, route{id: "createToken", method: http.MethodPost, path: "/v1/tokens", tag: "Administration", summary: "Make a token",
		about: "The secret is in this answer alone.", role: domain.RoleAdmin, status: 201, errors: []int{404, 409}}, s.createToken)
	register(s, route{id: "revokeToken", method: http.MethodDelete, path: "/v1/tokens/{token}", tag: "Administration",
		summary: "Revoke a token", about: "Every later call of the work that it started is denied, and its Requests are closed.",
		role: domain.RoleAdmin, status: 204, errors: []int{404, 409}},
		func(ctx context.Context, p domain.Principal, in *struct {
			Token string `path:"token" doc:"The ID of the token."`
		}) (*none, error) {
			if !domain.ValidID(in.Token, domain.PrefixToken) {
				return nil, notFound("Token")
			}
			return nil, s.Engine.RevokeToken(ctx, p, domain.TokenID(in.Token))
		})
}

func (s *server) createToken(ctx context.Context, p domain.Principal, in *struct {
	Keyed
	Body NewToken
}) (*struct{ Body MadeToken }, error) {
	if in.Body.Member != "" && !domain.ValidID(in.Body.Member, domain.PrefixMember) {
		return nil, notFound("Member")
	}
	made := engine.NewToken{Member: domain.MemberID(in.Body.Member), Name: in.Body.Name, Scopes: in.Body.Scopes}
	if in.Body.ExpiresAt != nil {
		at := time.UnixMilli(*in.Body.ExpiresAt).UTC()
		made.ExpiresAt = &at
	}
	token, secret, err := s.Engine.CreateToken(keep(ctx, wireMadeToken), p, made)
	if err != nil {
		return nil, err
	}
	out := wireMadeToken(token)
	out.Token = secret
	return &struct{ Body MadeToken }{out}, nil
}
