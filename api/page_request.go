package api

import (
	"context"
	"fmt"
	"strings"
	"time"

	"openbot/domain"
	"openbot/web"
)

const (
	// rawPart is how much of the exact JSON, and programPart how much of a program or a
	// plan, in bytes, a page shows that is not
	// the page of the whole, in bytes.
	rawPart     = 8_000
	programPart = 16_000
	// offerAfter is after how many equal allows a Grant is offered.
	offerAfter = 2
)

// requestDetail shows one Request as a person needs to see it.
func (s *server) requestDetail(ctx context.Context, p domain.Principal, id domain.RequestID, whole bool) (*web.Request, error) {
	r, err := s.Engine.Request(ctx, p, id)
	if err != nil {
		return nil, err
	}
	earlier, err := s.Engine.AllowedLike(ctx, p, r, 9)
	if err != nil {
		return nil, err
	}
	var c nameless
	c.request(r)
	var work *domain.DelegationView
	if r.Delegation != "" && r.Member == p.Member.ID {
		view, err := s.Engine.Delegation(ctx, p, r.Delegation)
		if err != nil && !domain.IsCode(err, domain.CodeNotFound) {
			return nil, err
		}
		if err == nil {
			work = &view
			c.work(view)
		}
	}
	n, err := s.namesOf(ctx, p, c)
	if err != nil {
		return nil, err
	}
	v := requestView(r, n, s.Engine.Clock(), p, whole)
	if work != nil {
		v.Work = new(s.workOf(*work, n, p))
		v.Work.Request = "" // this is it
	}
	if r.Member == p.Member.ID {
		chat, err := s.Engine.Chat(ctx, p, r.Chat)
		if err != nil && !domain.IsCode(err, domain.CodeNotFound) {
			return nil, err
		}
		v.ChatTitle = chat.Title
	}
	if len(earlier) > 0 {
		before := earlier[0]
		at := before.UpdatedAt
		if before.Decision != nil {
			at = time.UnixMilli(before.Decision.AtMs)
		}
		v.Earlier = &web.Earlier{ID: string(before.ID), When: moment(at, s.Engine.Clock()), Same: sameArguments(before, r)}
		if !v.Earlier.Same {
			v.Fields = web.Compare(v.Fields, web.Arguments(rawJSON(before.Arguments), whole))
		}
	}
	if v.MayAnswer {
		v.Offer = offerOf(r, earlier, p, n)
	}
	return &v, nil
}

// requestBrief is a Request among many.
func (s *server) requestBrief(ctx context.Context, p domain.Principal, r domain.Request) (web.Request, error) {
	var c nameless
	c.request(r)
	n, err := s.namesOf(ctx, p, c)
	return requestView(r, n, s.Engine.Clock(), p, false), err
}

func requestView(r domain.Request, n names, now time.Time, p domain.Principal, whole bool) web.Request {
	raw := rawJSON(r.Arguments)
	v := web.Request{ID: string(r.ID), Expected: r.Revision, Bot: n.bot(r.Bot), BotID: string(r.Bot), Verb: verbs[r.Capability.Action],
		Tool: toolOf(r.Capability, n), App: appOf(r.Capability, n), Action: r.Capability.Action, Target: r.Capability.Target,
		Chat: string(r.Chat), Tags: r.Tags, Size: len(raw), Whole: whole, Plan: r.Plan, Reason: r.Reason, OnExpire: r.OnExpire,
		Asked: moment(r.CreatedAt, now), Expires: moment(r.ExpiresAt, now), Open: r.Status == domain.RequestPending}
	switch r.Capability.Action {
	case domain.ActionDelegationsContinue:
		v.Continues = true
	case domain.ActionBotsDelegate, domain.ActionBotsPromote:
		v.Named = true
	case domain.ActionAppsCall, domain.ActionToolsCall, domain.ActionChannelsSend:
		v.Sends = true
	}
	explain(&v, r, n)
	for _, bot := range r.Chain {
		v.Chain = append(v.Chain, n.bot(bot))
	}
	if v.Fields = web.Arguments(raw, whole); len(v.Fields) == 1 && v.Fields[0].Path == "" && v.Fields[0].Kind == "empty" {
		v.Fields = nil
	}
	for _, f := range v.Fields {
		v.Cut = v.Cut || f.Cut
	}
	v.Raw = string(raw)
	if !whole && len(v.Raw) > rawPart {
		v.Raw, v.RawCut = strings.ToValidUTF8(v.Raw[:rawPart], ""), true
	}
	if a := r.App; a != nil {
		v.AppID, v.Revision, v.Digest = string(a.Connection), a.Revision, a.SHA256
	}
	if !whole && len(v.Plan) > programPart {
		v.Plan, v.PlanCut = strings.ToValidUTF8(v.Plan[:programPart], ""), len(v.Plan)
	}
	if r.Code != nil {
		v.Program = programView(*r.Code, whole)
	}
	for _, e := range r.Endorsements {
		v.Supports = append(v.Supports, web.Support{Bot: n.bot(e.Bot), Scope: scopeWords(e.Scope), Reason: e.Reason, At: moment(time.UnixMilli(e.AtMs), now)})
	}
	if verdict := r.ReviewVerdict; verdict != nil {
		v.Verdict = &web.Verdict{Word: verdict.Verdict, Note: verdict.Note}
	}
	if r.Unknown != nil {
		at := moment(time.UnixMilli(r.Unknown.SentAtMs), now)
		v.UnknownAt = &at
	}
	v.Foreign = r.Member != p.Member.ID
	switch r.Second {
	case "":
	case p.Member.ID:
		v.LeftOpen = "The person whose work it is left it open. You may answer it too."
	default:
		v.LeftOpen = "It was left open. A second Member may answer it too."
	}
	if v.Open {
		mine := r.AnswerableBy(p.Member.ID)
		v.MayAnswer = mine && p.HasRole(domain.RoleWrite)
		if !mine {
			v.WaitsFor = strings.ToUpper(n.actor(r.Approver, p.Member.ID)[:1]) + n.actor(r.Approver, p.Member.ID)[1:]
		}
		if v.MayAnswer {
			v.Ways = withSupports(ways(r, p.Member.ID, n), r, n)
		}
		return v
	}
	v.Outcome = outcomeOf(r, p.Member.ID, n)
	if r.Decision != nil {
		at := moment(time.UnixMilli(r.Decision.AtMs), now)
		v.Outcome.At = &at
	}
	return v
}

func programView(c domain.SavedCode, whole bool) *web.Program {
	text := c.Program
	v := &web.Program{Place: fmt.Sprintf("its call %d", c.Index+1)}
	if c.Line > 0 {
		v.Place += fmt.Sprintf(", at line %d, column %d", c.Line, c.Column)
	}
	if !whole && len(text) > programPart {
		text, v.Cut = strings.ToValidUTF8(text[:programPart], ""), true
	}
	for i, line := range strings.Split(text, "\n") {
		v.Lines = append(v.Lines, web.ProgramLine{Number: i + 1, Text: line, Here: i+1 == c.Line})
	}
	return v
}

func sameArguments(a, b domain.Request) bool {
	if a.App != nil && b.App != nil {
		return a.App.SHA256 == b.App.SHA256
	}
	return string(a.Arguments) == string(b.Arguments)
}

// offerOf offers to be asked less, after the person allowed the same some times. It
// is an offer: nothing is kept by itself.
func offerOf(r domain.Request, earlier []domain.Request, p domain.Principal, n names) *web.Offer {
	if r.Unknown != nil || r.Capability.Action == domain.ActionPlansRun {
		return nil
	}
	times := 0
	for _, e := range earlier {
		sameRevision := r.App == nil || e.App != nil && e.App.Revision == r.App.Revision
		if sameRevision && e.Decision != nil && e.Decision.By == domain.Person(p.Member.ID) && e.Decision.Scope == domain.ScopeOnce {
			times++
		}
	}
	if times < offerAfter {
		return nil
	}
	words := "A Grant would have answered each of them without asking: see “Always allow” in more ways to answer."
	rule := "Allow " + toolOf(r.Capability, n)
	if app := appOf(r.Capability, n); app != "" {
		rule += " on " + app
	}
	return &web.Offer{Times: times, Words: words, Bot: string(r.Bot), Rule: rule + " when …"}
}
