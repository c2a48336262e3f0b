package api

import (
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// document begins the OpenAPI document; the operations are added as they are
// registered.
func (s *server) document() huma.Config {
	version := s.Version
	if version == "" {
		version = "0.0.0"
	}
	var servers []*huma.Server // without one it is the host of the document
	if s.place.root != "" {
		servers = []*huma.Server{{URL: s.place.root}}
	}
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			Servers: servers,
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title:   "OpenBot",
				Version: version,
				Description: "OpenBot lets AI bots work with real tools while people stay in control. " +
					"Every call carries a token: Authorization: Bearer <token>. Times are milliseconds since the epoch. " +
					"Everything is seen from the Member of the token: what belongs to others answers 404. " +
					"Errors are application/problem+json with a _tag. An optional field of a body that is null counts as left out.",
				License: &huma.License{Name: "See the LICENSE file of the server"},
			},
			Tags: []*huma.Tag{
				{Name: "Requests", Description: "Questions to a decider whether one attempt of a Bot may run."},
				{Name: "Approvals", Description: "The same Requests for scripts, with secrets masked. Errors are {\"error\":{\"code\",\"message\"}}; IDs are UUIDs and times ISO 8601. " +
					"A key may make so many calls a minute, and all keys of the organization together (rateLimits); beyond that the answer is rate_limited with Retry-After: 60."},
				{Name: "Grants", Description: "Kept decisions, each for one Bot and one capability."},
				{Name: "Rules", Description: "Kept decisions in plain language, read by a judge model."},
				{Name: "Chats", Description: "Conversations with Bots, their Turns and their events."},
				{Name: "Delegations", Description: "Work that Bots gave away, and its runs."},
				{Name: "Triggers", Description: "What gives work to Bots at times or on a signal."},
				{Name: "Usage", Description: "What models used, and what it cost."},
				{Name: "Bots", Description: "Agents, with their role, instructions and memory."},
				{Name: "Connections", Description: "The ways to Apps."},
				{Name: "Tools", Description: "Tools of the host."},
				{Name: "Evidence", Description: "What can be shown to others later: receipts of decisions, and the audit log."},
				{Name: "Channels", Description: "Group chats outside that are bound to a Bot."},
				{Name: "Webhooks", Description: "Addresses that are told what happens, by messages signed as Standard Webhooks says."},
				{Name: "Administration", Description: "Members, tokens and settings of the organization."},
				{Name: "Server", Description: "Who you are, and how the server is."},
			},
			Components: &huma.Components{
				Schemas: huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer),
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"token": {Type: "http", Scheme: "bearer", Description: "A token with the role that the call needs: read, write or admin."},
				},
			},
		},
		Formats:                      map[string]huma.Format{"application/json": huma.DefaultJSONFormat, "json": huma.DefaultJSONFormat},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
	}
}
