package engine

import (
	"bytes"
	"encoding/json"
	"slices"

	"openbot/domain"
)

// decidedData is the data of entries about a decision.
type decidedData struct {
	Decision           string              `json:"decision,omitempty"`
	Scope              string              `json:"scope,omitempty"`
	Revision           int64               `json:"revision,omitempty"` // of the Request
	Step               domain.Step         `json:"step,omitempty"`     // of the check, for a call
	Capability         domain.Capability   `json:"capability"`
	Member             domain.MemberID     `json:"member"` // whom the work is for
	Bot                domain.BotID        `json:"bot,omitempty"`
	Chat               domain.ChatID       `json:"chat"`
	Turn               domain.TurnID       `json:"turn"`
	Call               domain.CallID       `json:"toolCallId,omitempty"`
	ArgumentsSHA256    string              `json:"argumentsSha256,omitempty"`
	Connection         domain.ConnectionID `json:"connection,omitempty"`
	ConnectionRevision int64               `json:"connectionRevision,omitempty"`
	RuleVersion        int64               `json:"ruleVersion,omitempty"`
	QuoteSHA256        string              `json:"quoteSha256,omitempty"`
	Pattern            string              `json:"pattern,omitempty"`
	ReasonSHA256       string              `json:"reasonSha256,omitempty"`
	RuleSHA256         string              `json:"ruleSha256,omitempty"`
	ReceiptSHA256      string              `json:"receiptSha256,omitempty"`
	Second             domain.MemberID     `json:"secondMember,omitempty"` // who may answer it too
}

// requestChange gives the end of a Request, the support of one more Bot, or that a second
// Member may answer it. A decided
// Request that is written again for another reason is no change.
func requestChange(before, r *domain.Request, decided bool) (change, bool) {
	data := decidedData{Revision: r.Revision, Capability: r.Capability, Member: r.Member, Bot: r.Bot, Chat: r.Chat, Turn: r.Turn, Call: r.Call}
	if r.App != nil {
		data.Connection, data.ConnectionRevision = r.App.Connection, r.App.Revision
	}
	switch d := r.Decision; {
	case d != nil && !decided:
		return change{}, false
	case d != nil:
		data.Decision, data.Scope, data.ReasonSHA256, data.RuleSHA256 = d.Decision, d.Scope, digestOf(d.Reason), digestOf(d.Rule)
		data.ArgumentsSHA256, _ = argumentsDigest(r) // it stands in the receipt, which has been signed
		data.ReceiptSHA256 = textDigest(r.Receipt)
		return change{domain.AuditRequestDecided, r.Organization, &d.By, data}, true
	case before != nil && r.Second != before.Second:
		data.Second = r.Second
		return change{domain.AuditRequestEscalated, r.Organization, nil, data}, true
	case r.Status == domain.RequestCancelled:
		return change{domain.AuditRequestCancelled, r.Organization, nil, data}, true
	case before != nil && len(r.Endorsements) > len(before.Endorsements):
		last := r.Endorsements[len(r.Endorsements)-1]
		by := domain.ByBot(last.Bot)
		data.Scope, data.ReasonSHA256 = last.Scope, textDigest(last.Reason)
		return change{domain.AuditRequestEndorsed, r.Organization, &by, data}, true
	}
	return change{}, false
}

// callChange gives the decision about a call that no Request decided. A new row was
// decided in the commit that saves it; any other one when the evidence was replaced.
// OpenBot's own way of carrying out work (a review, the frame of a program) is decided
// elsewhere, call by call and Request by Request.
func callChange(before, c *domain.Call) (change, bool) {
	by := c.Decided
	fresh := c.Version == 0 || before != nil && before.Decided != by
	if by == nil || !fresh || by.Step == domain.StepDecider {
		return change{}, false
	}
	allowed := c.Status != domain.CallDenied
	if allowed && by.Step == domain.StepExemption && (c.Kind == domain.CallDecide || c.Kind == domain.CallProgram) {
		return change{}, false
	}
	data := decidedData{Decision: domain.DecisionAllow, Step: by.Step, Capability: c.Capability, Member: c.Member, Chat: c.Chat, Turn: c.Turn,
		ArgumentsSHA256: c.Digest, Connection: c.Connection, RuleVersion: by.RuleVersion, QuoteSHA256: textDigest(by.Quote), Pattern: by.Pattern}
	if !allowed {
		data.Decision = domain.DecisionDeny
	}
	if c.Connection != "" {
		data.ConnectionRevision = c.Revision
	}
	return change{domain.AuditCallDecided, c.Organization, &by.By, data}, true
}

type grantData struct {
	Decision           string            `json:"decision"`
	Scope              string            `json:"scope"`
	Capability         domain.Capability `json:"capability"`
	Member             domain.MemberID   `json:"member"`
	Bot                domain.BotID      `json:"bot"`
	Chat               domain.ChatID     `json:"chat,omitempty"`
	ConnectionRevision int64             `json:"connectionRevision,omitempty"`
	Source             string            `json:"source"`
	Request            domain.RequestID  `json:"request,omitempty"`
	Parent             domain.GrantID    `json:"parent,omitempty"`
}

// grantChange gives a new Grant or its end. One that is written for another reason
// (it was settled, a decision rests on it) is no change.
func grantChange(g *domain.Grant) (change, bool) {
	data := grantData{Decision: g.Decision, Scope: g.Scope, Capability: g.Capability, Member: g.Member, Bot: g.Bot, Chat: g.Chat,
		ConnectionRevision: g.Revision, Source: g.Source, Request: g.Request, Parent: g.Parent}
	switch {
	case g.Version == 0:
		return change{domain.AuditGrantCreated, g.Organization, nil, data}, true
	case g.RevokedAt != nil:
		return change{domain.AuditGrantRevoked, g.Organization, nil, data}, true
	}
	return change{}, false
}

type ruleData struct {
	Effect     string           `json:"effect"`
	Enabled    bool             `json:"enabled"`
	TextSHA256 string           `json:"textSha256"`
	Member     domain.MemberID  `json:"member"`
	Bot        domain.BotID     `json:"bot,omitempty"` // left out: the whole organization
	Source     string           `json:"source"`
	Request    domain.RequestID `json:"request,omitempty"`
	Version    int64            `json:"version"` // of the Rule from now on
}

func ruleChange(r *domain.Rule) change {
	data := ruleData{Effect: r.Effect, Enabled: r.Enabled, TextSHA256: textDigest(r.Text), Member: r.Member, Bot: r.Bot, Source: r.Source,
		Request: r.Request, Version: r.Version + 1}
	kind := domain.AuditRuleChanged
	switch {
	case r.Version == 0:
		kind = domain.AuditRuleCreated
	case r.DeletedAt != nil:
		kind = domain.AuditRuleDeleted
	}
	return change{kind, r.Organization, nil, data}
}

type tokenData struct {
	Member    domain.MemberID `json:"member"`
	Name      string          `json:"name"`
	Scopes    []string        `json:"scopes"`
	ExpiresAt *int64          `json:"expiresAt"`
}

// tokenChange gives a new token or its end. That its Requests were closed is no change.
func tokenChange(t *domain.Token) (change, bool) {
	data := tokenData{Member: t.Member, Name: t.Name, Scopes: t.Scopes}
	if t.ExpiresAt != nil {
		ms := t.ExpiresAt.UnixMilli()
		data.ExpiresAt = &ms
	}
	switch {
	case t.Version == 0:
		return change{domain.AuditTokenCreated, t.Organization, nil, data}, true
	case t.RevokedAt != nil && t.ClosingDueAt != nil:
		return change{domain.AuditTokenRevoked, t.Organization, nil, data}, true
	}
	return change{}, false
}

type memberData struct {
	Name        string   `json:"name"`
	Permissions []string `json:"permissions"`
	Disabled    bool     `json:"disabled"`
	Changed     []string `json:"changed,omitempty"`
}

// memberChange gives a new Member or what was changed in it. That its Requests were
// closed is no change.
func memberChange(before, m *domain.Member) (change, bool) {
	data := memberData{Name: m.Name, Permissions: m.Permissions, Disabled: m.DisabledAt != nil}
	switch {
	case m.Version == 0:
		return change{domain.AuditMemberCreated, m.Organization, nil, data}, true
	case before == nil:
		return change{}, false
	}
	data.Changed = differing(map[string]bool{"name": before.Name != m.Name, "permissions": !slices.Equal(before.Permissions, m.Permissions),
		"disabled": (before.DisabledAt != nil) != data.Disabled})
	return change{domain.AuditMemberChanged, m.Organization, nil, data}, len(data.Changed) > 0
}

type connectionData struct {
	Name      string           `json:"name"`
	Member    domain.MemberID  `json:"member"`
	Shared    bool             `json:"shared"`
	Transport domain.Transport `json:"transport"`
	Revision  int64            `json:"revision"`
	Offers    string           `json:"offersSha256,omitempty"` // digest of what the App offers
	Changed   []string         `json:"changed,omitempty"`
}

// connectionChange gives a new Connection, its end, or what was changed in it: the
// names alone, for an address may hold a secret. How the App feels is no change.
func connectionChange(before, c *domain.Connection) (change, bool) {
	data := connectionData{Name: c.Name, Member: c.Member, Shared: c.Shared, Transport: c.Transport, Revision: c.Revision, Offers: c.Look.Digest}
	switch {
	case c.Version == 0:
		return change{domain.AuditConnectionCreated, c.Organization, nil, data}, true
	case c.DeletedAt != nil:
		return change{domain.AuditConnectionDeleted, c.Organization, nil, data}, true
	case before == nil:
		return change{}, false
	}
	data.Changed = differing(map[string]bool{"name": before.Name != c.Name, "shared": before.Shared != c.Shared, "transport": before.Transport != c.Transport,
		"url": before.URL != c.URL, "command": before.Command != c.Command, "args": !slices.Equal(before.Args, c.Args),
		"secrets": !bytes.Equal(before.Sealed, c.Sealed), "offers": before.Look.Digest != c.Look.Digest && before.Look.Digest != ""})
	return change{domain.AuditConnectionChanged, c.Organization, nil, data}, len(data.Changed) > 0 || before.Revision != c.Revision
}

type toolData struct {
	Name           string   `json:"name"`
	EndpointSHA256 string   `json:"endpointSha256"`
	SchemaSHA256   string   `json:"schemaSha256"`
	Approval       bool     `json:"approval"`
	Tags           []string `json:"tags"`
	RepeatSafe     bool     `json:"repeatSafe"`
	Revision       int64    `json:"revision"`
}

func toolChange(h *domain.HostTool) change {
	data := toolData{Name: h.Name, EndpointSHA256: textDigest(h.Endpoint), SchemaSHA256: textDigest(string(h.Schema)), Approval: h.Approval,
		Tags: h.Tags, RepeatSafe: h.RepeatSafe, Revision: h.Revision}
	kind := domain.AuditToolChanged
	switch {
	case h.Version == 0:
		kind = domain.AuditToolCreated
	case h.DeletedAt != nil:
		kind = domain.AuditToolDeleted
	}
	return change{kind, h.Organization, nil, data}
}

// maxSettingShown is the longest value of a setting that stands in an entry, in bytes
// of JSON; a longer one is there as its digest.
const maxSettingShown = 1024

type settingChange struct {
	From any `json:"from"`
	To   any `json:"to"`
}

// organizationChange gives a new organization, or the settings that changed.
func organizationChange(before, o *domain.Organization) (change, bool) {
	if o.Version == 0 {
		return change{domain.AuditOrganizationCreated, o.ID, nil, struct {
			Name string `json:"name"`
		}{o.Name}}, true
	}
	old := map[string]json.RawMessage{}
	if before != nil {
		old = settingsByName(before.Settings)
	}
	changed := map[string]settingChange{}
	for name, value := range settingsByName(o.Settings) {
		if !bytes.Equal(old[name], value) {
			changed[name] = settingChange{shown(old[name]), shown(value)}
		}
	}
	return change{domain.AuditSettingsChanged, o.ID, nil, changed}, len(changed) > 0
}

func settingsByName(s domain.Settings) map[string]json.RawMessage {
	var names map[string]json.RawMessage
	raw, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(raw, &names)
	}
	if err != nil {
		return nil // settings that were checked always marshal
	}
	return names
}

func shown(value json.RawMessage) any {
	if len(value) <= maxSettingShown {
		return value
	}
	return struct {
		SHA256 string `json:"sha256"`
	}{textDigest(string(value))}
}

// differing gives the names of what differs, in the order of the alphabet.
func differing(fields map[string]bool) []string {
	var names []string
	for name, differs := range fields {
		if differs {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
