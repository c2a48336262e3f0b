package api

import (
	"context"
	"net/http"

	"openbot/domain"
)

// Me is who calls.
type Me struct {
	Organization MeOrganization `json:"organization"`
	Member       MeMember       `json:"member"`
	MainBot      domain.BotID   `json:"mainBot" doc:"The Main Bot of the Member."`
	Token        MeToken        `json:"token"`
}

// MeOrganization is the tenant of the caller.
type MeOrganization struct {
	ID   domain.OrganizationID `json:"id"`
	Name string                `json:"name"`
}

// MeMember is the person that the token acts as.
type MeMember struct {
	ID          domain.MemberID `json:"id"`
	Name        string          `json:"name"`
	Permissions []string        `json:"permissions" doc:"Roles and patterns over capabilities."`
}

// MeToken is the token of this call.
type MeToken struct {
	ID     domain.TokenID `json:"id"`
	Scopes []string       `json:"scopes" doc:"They narrow the permissions of the Member."`
}

func (s *server) meRoutes() {
	register(s, route{id: "me", method: http.MethodGet, path: "/v1/me", tag: "Server", summary: "Who you are", role: domain.RoleRead, status: 200},
		func(ctx context.Context, p domain.Principal, _ *struct{}) (*struct{ Body Me }, error) {
			org, err := s.Engine.Organization(ctx, p)
			if err != nil {
				return nil, err
			}
			return &struct{ Body Me }{Me{
				Organization: MeOrganization{ID: org.ID, Name: org.Name},
				Member:       MeMember{ID: p.Member.ID, Name: p.Member.Name, Permissions: nonNil([]string(p.Member.Permissions))},
				MainBot:      p.Member.MainBot,
				Token:        MeToken{ID: p.Token.ID, Scopes: nonNil([]string(p.Token.Scopes))},
			}}, nil
		})
}
