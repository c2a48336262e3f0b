package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/gin-gonic/gin"

	"openbot/domain"
)

// linesType is the media type of an export: one JSON object a line.
const linesType = "application/x-ndjson"

// AuditEntry is one line of the audit log. Its hash is the SHA-256 of the RFC 8785 form
// of the object without the hash.
type AuditEntry struct {
	Organization domain.OrganizationID `json:"organization"`
	Number       *int64                `json:"number" doc:"Its place in the chain, from 1; null for the seconds until it is chained."`
	At           int64                 `json:"at"`
	Kind         string                `json:"kind" example:"request.decided" doc:"What was done to which kind of thing."`
	Subject      string                `json:"subject" doc:"The ID of what it is about."`
	Actor        AuditActor            `json:"actor"`
	Token        *string               `json:"token" doc:"The token that the actor used."`
	Address      *string               `json:"address" doc:"Where the actor called from; null for what no caller caused."`
	Data         json.RawMessage       `json:"data" doc:"What was decided or changed. Texts and arguments stand as their SHA-256."`
	Previous     *string               `json:"previous" doc:"The hash of the entry before; null for the first."`
	Hash         *string               `json:"hash"`
}

// AuditActor is who acted. Server is the server itself; Operator is whoever ran a
// command on its machine.
type AuditActor struct {
	Tag   string          `json:"_tag" enum:"Person,Bot,Grant,Rule,Expiry,Policy,Exemption,Server,Operator"`
	User  domain.MemberID `json:"userId,omitempty"`
	Bot   domain.BotID    `json:"botId,omitempty"`
	Grant domain.GrantID  `json:"grantId,omitempty"`
	Rule  domain.RuleID   `json:"ruleId,omitempty"`
}

func wireAudit(e domain.AuditEntry) AuditEntry {
	out := AuditEntry{Organization: e.Organization, At: ms(e.At), Kind: e.Kind, Subject: e.Subject, Actor: AuditActor(e.Actor),
		Token: orNull(e.Token), Address: orNull(e.Address), Data: rawJSON(e.Data)}
	if l := e.Link; l != nil {
		out.Number, out.Previous, out.Hash = &l.Number, orNull(l.Previous), &l.Hash
	}
	return out
}

// AuditHead is the end of the chain: written down elsewhere, it shows later that
// nothing before it was changed or taken away.
type AuditHead struct {
	Organization domain.OrganizationID `json:"organization"`
	Count        int64                 `json:"count" doc:"How many entries are chained."`
	Hash         string                `json:"hash" doc:"Of the last one."`
	At           int64                 `json:"at"`
	Signed       string                `json:"signed" doc:"The same as a JWS in compact form, signed like a receipt."`
}

// AuditQuery narrows the audit log.
type AuditQuery struct {
	Paged
	Kind    string `query:"kind" enum:"organization.created,request.decided,request.endorsed,request.cancelled,request.escalated,call.decided,grant.created,grant.revoked,rule.created,rule.changed,rule.deleted,settings.changed,token.created,token.revoked,member.created,member.changed,connection.created,connection.changed,connection.deleted,tool.created,tool.changed,tool.deleted" doc:"Of this kind."`
	Subject string `query:"subject" maxLength:"100" doc:"About the thing with this ID."`
	Actor   string `query:"actor" maxLength:"100" doc:"By the actor with this ID, or with this _tag."`
	From    int64  `query:"from" minimum:"0" maximum:"253402300799000" doc:"Not before this time."`
	To      int64  `query:"to" minimum:"0" maximum:"253402300799000" doc:"Before this time."`
	Format  string `query:"format" enum:"json,jsonl" doc:"jsonl gives all that fits, oldest first, one entry a line; so does Accept: application/x-ndjson."`
	Accept  string `header:"Accept" hidden:"true"`
}

func (q AuditQuery) filter() domain.AuditFilter {
	f := domain.AuditFilter{Kind: q.Kind, Subject: q.Subject, Actor: q.Actor}
	if q.From > 0 {
		f.From = time.UnixMilli(q.From)
	}
	if q.To > 0 {
		f.To = time.UnixMilli(q.To)
	}
	return f
}

// lines reports whether the whole log is asked for, one entry a line.
func (q AuditQuery) lines() bool {
	return q.Format == "jsonl" || q.Format == "" && strings.Contains(q.Accept, linesType)
}

type bodyAnswer struct {
	Body func(huma.Context)
}

func (s *server) auditRoutes() {
	list := &huma.Schema{Type: huma.TypeArray, Items: s.huma.OpenAPI().Components.Schemas.Schema(typeOf[AuditEntry](), true, "")}
	register(s, route{id: "listAudit", method: http.MethodGet, path: "/v1/audit", tag: "Evidence", summary: "The audit log, newest first",
		about: "Every decision, and every change of Grants, Rules, settings, tokens, Members, Connections and tools of the host, with who did it and from where.",
		role:  domain.RoleAdmin, status: 200, stream: true,
		media: map[string]*huma.MediaType{"application/json": {Schema: list}, linesType: {Schema: &huma.Schema{Type: huma.TypeString}}}},
		s.listAudit)
	register(s, route{id: "readAuditHead", method: http.MethodGet, path: "/v1/audit/head", tag: "Evidence", summary: "The signed end of the audit log's chain",
		about: "Keep it outside of the server: it shows later whether the log that it was the end of is still there.", role: domain.RoleRead, status: 200, errors: []int{404}},
		func(ctx context.Context, p domain.Principal, _ *struct{}) (*struct{ Body AuditHead }, error) {
			h, err := s.Engine.AuditHead(ctx, p)
			return &struct{ Body AuditHead }{AuditHead{Organization: h.ID, Count: h.Count, Hash: h.Hash, At: ms(h.LinkedAt), Signed: h.Signed}}, err
		})
}

func (s *server) listAudit(ctx context.Context, p domain.Principal, in *AuditQuery) (*bodyAnswer, error) {
	const list = "audit"
	filter := in.filter()
	page, err := in.page(list)
	if err != nil {
		return nil, err
	}
	if in.lines() {
		if in.Cursor != "" {
			return nil, invalid("cursor", "belongs to pages; an export gives everything")
		}
		return &bodyAnswer{func(hc huma.Context) { s.exportAudit(humagin.Unwrap(hc), p, filter) }}, nil
	}
	before, err := strconv.ParseInt(page.Before, 10, 64)
	if page.Before != "" && (err != nil || before < 1) {
		return nil, badCursor()
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	rows, err := s.Engine.AuditLog(ctx, p, filter, before, page.Limit)
	if err != nil {
		return nil, err
	}
	out := listOf(ctx, list, in.Paged, rows, func(e domain.AuditEntry) string { return strconv.FormatInt(e.Position, 10) }, wireAudit)
	return &bodyAnswer{func(hc huma.Context) {
		gc := humagin.Unwrap(hc)
		if out.Link != "" {
			gc.Header("Link", out.Link)
		}
		gc.Data(http.StatusOK, "application/json", append(encode(out.Body), '\n'))
	}}, nil
}

// exportAudit writes the log a batch at a time. One that breaks off breaks the
// connection: half a log must not look like a whole one.
func (s *server) exportAudit(gc *gin.Context, p domain.Principal, filter domain.AuditFilter) {
	ctx := gc.Request.Context()
	control := http.NewResponseController(gc.Writer)
	err := s.Engine.ExportAudit(ctx, p, filter, func(entries []domain.AuditEntry) error {
		_ = control.SetWriteDeadline(time.Now().Add(streamWrite)) // not every writer has one
		if !gc.Writer.Written() {
			gc.Header("Content-Type", linesType)
			gc.Header("Content-Disposition", `attachment; filename="audit.jsonl"`)
			gc.Status(http.StatusOK)
		}
		var b []byte
		for _, e := range entries {
			b = append(append(b, encode(wireAudit(e))...), '\n')
		}
		if _, err := gc.Writer.Write(b); err != nil {
			return err
		}
		return control.Flush()
	})
	switch {
	case err == nil:
	case !gc.Writer.Written():
		s.refuse(gc, s.failure(ctx, err))
	default:
		s.Logger.WarnContext(ctx, "an export of the audit log broke off", "error", err)
		panic(http.ErrAbortHandler)
	}
}
