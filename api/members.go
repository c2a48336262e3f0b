package api

import (
	"context"
	"net/http"

	"openbot/domain"
	"openbot/domain/engine"
)

// Member is a person of the organization.
type Member struct {
	ID          domain.MemberID `json:"id" example:"mem_018f6b1c2d3e7a4b8c9d0e1f2a3b4c5d"`
	Name        string          `json:"name"`
	Permissions []string        `json:"permissions" doc:"Roles (read, write, admin) and patterns over capabilities, e.g. apps.call:con_7/*."`
	MainBot     domain.BotID    `json:"mainBot"`
	Disabled    bool            `json:"disabled" doc:"A disabled Member's tokens open nothing, and its work is denied every later call."`
	CreatedAt   int64           `json:"createdAt"`
	UpdatedAt   int64           `json:"updatedAt"`
}

func wireMember(m domain.Member) Member {
	return Member{ID: m.ID, Name: m.Name, Permissions: nonNil([]string(m.Permissions)), MainBot: m.MainBot,
		Disabled: m.DisabledAt != nil, CreatedAt: ms(m.CreatedAt), UpdatedAt: ms(m.UpdatedAt)}
}

// NewMember is the body that adds a Member.
type NewMember struct {
	Name        string   `json:"name" minLength:"1" maxLength:"200"`
	Permissions []string `json:"permissions,omitempty" maxItems:"100" doc:"Left out: write and *."`
}

// MemberChange is the body that changes a Member.
type MemberChange struct {
	Name        *string   `json:"name,omitempty" minLength:"1" maxLength:"200"`
	Permissions *[]string `json:"permissions,omitempty" maxItems:"100" doc:"Replaces all of them."`
	Disabled    *bool     `json:"disabled,omitempty"`
}

// MemberPath names a Member in an address.
type MemberPath struct {
	Member string `path:"member" doc:"The ID of the Member."`
}

func (s *server) memberRoutes() {
	const list = "members"
	register(s, route{id: "listMembers", method: http.MethodGet, path: "/v1/members", tag: "Administration", summary: "List the Members, newest first",
		role: domain.RoleAdmin, status: 200},
		func(ctx context.Context, p domain.Principal, in *struct{ Paged }) (*listed[Member], error) {
			page, err := in.page(list)
			if err != nil {
				return nil, err
			}
			rows, err := s.Engine.Members(ctx, p, page)
			if err != nil {
				return nil, err
			}
			return listOf(ctx, list, in.Paged, rows, func(m domain.Member) string { return string(m.ID) }, wireMember), nil
		})
	register(s, route{id: "createMember", method: http.MethodPost, path: "/v1/members", tag: "Administration", summary: "Add a Member with a Main Bot",
		role: domain.RoleAdmin, status: 201, errors: []int{409}},
		func(ctx context.Context, p domain.Principal, in *struct {
			Keyed
			Body NewMember
		}) (*struct{ Body Member }, error) {
			m, err := s.Engine.CreateMember(keep(ctx, wireMember), p, engine.MemberFields{Name: &in.Body.Name, Permissions: in.Body.Permissions})
			return &struct{ Body Member }{wireMember(m)}, err
		})
	register(s, route{id: "readMember", method: http.MethodGet, path: "/v1/members/{member}", tag: "Administration", summary: "Read a Member",
		role: domain.RoleAdmin, status: 200, errors: []int{404}},
		func(ctx context.Context, p domain.Principal, in *MemberPath) (*struct{ Body Member }, error) {
			if !domain.ValidID(in.Member, domain.PrefixMember) {
				return nil, notFound("Member")
			}
			m, err := s.Engine.Member(ctx, p, domain.MemberID(in.Member))
			return &struct{ Body Member }{wireMember(m)}, err
		})
	register(s, route{id: "changeMember", method: http.MethodPatch, path: "/v1/members/{member}", tag: "Administration",
		summary: "Change a Member", about: "Disabling a Member denies every later call of its work and closes its Requests.",
		role: domain.RoleAdmin, status: 200, errors: []int{404, 409}},
		func(ctx context.Context, p domain.Principal, in *struct {
			MemberPath
			Body MemberChange
		}) (*struct{ Body Member }, error) {
			if !domain.ValidID(in.Member, domain.PrefixMember) {
				return nil, notFound("Member")
			}
			fields := engine.MemberFields{Name: in.Body.Name, Disabled: in.Body.Disabled}
			if in.Body.Permissions != nil {
				fields.Permissions = nonNil(*in.Body.Permissions)
			}
			m, err := s.Engine.ChangeMember(ctx, p, domain.MemberID(in.Member), fields)
			return &struct{ Body Member }{wireMember(m)}, err
		})
}
