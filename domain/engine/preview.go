package engine

import (
	"context"
	"time"

	"openbot/domain"
)

const (
	// PreviewWait is how long a preview may take.
	PreviewWait = 20 * time.Second
	// keepPreviews is how long previews are kept after they were made: longer than an
	// answer under an Idempotency-Key, which names one.
	keepPreviews = KeepFor + time.Hour
	// previewTries is how often a preview whose worker died is worked on.
	previewTries = 2
)

// NewPreview is what a preview is made from.
type NewPreview struct {
	Text   string
	Effect string       // "" means either
	Bot    domain.BotID // "" means every Bot of the caller's work
	Number int
}

// PreviewRule asks which of the caller's last decided Requests a Rule would have
// decided, and how. It changes nothing that counts. It waits for the answer, and gives
// unavailable when none comes in time.
func (e *Engine) PreviewRule(ctx context.Context, p domain.Principal, in NewPreview) ([]domain.PreviewResult, error) {
	if err := ruleFits(in.Text, &in.Effect); err != nil {
		return nil, err
	}
	if in.Number < 1 || in.Number > domain.MaxPreview {
		return nil, invalidf("limit", "must be from 1 to %d", domain.MaxPreview)
	}
	if in.Bot != "" {
		if _, err := e.visibleBot(ctx, p.Organization, p.Member.ID, in.Bot); err != nil {
			return nil, err
		}
	}
	var asked domain.Preview
	err := e.decide(ctx, string(p.Member.ID), func(d *draft) error {
		due := d.at.Add(domain.RunnableGrace)
		asked = domain.Preview{ID: newID[domain.PreviewID](domain.PrefixPreview), Organization: p.Organization, Member: p.Member.ID,
			Bot: in.Bot, Text: safeText(in.Text), Effect: in.Effect, Number: in.Number, DueAt: &due, CreatedAt: d.at}
		d.put(&asked)
		d.result = asked
		return nil
	})
	if err != nil {
		return nil, err
	}
	return e.Previewed(ctx, p, asked.ID)
}

// Previewed waits for the answer of a preview of the caller.
func (e *Engine) Previewed(ctx context.Context, p domain.Principal, id domain.PreviewID) ([]domain.PreviewResult, error) {
	told, stop := e.Live.Subscribe(domain.PreviewStream(id))
	defer stop()
	wait, cancel := context.WithTimeout(ctx, PreviewWait)
	defer cancel()
	again := time.NewTicker(time.Second) // a message of Live can be lost
	defer again.Stop()
	for {
		now, err := e.Store.Preview(context.WithoutCancel(ctx), id)
		if err != nil {
			return nil, err
		}
		if now.Member != p.Member.ID {
			return nil, domain.Errorf(domain.CodeNotFound, "PreviewNotFound", "There is no preview with this ID.")
		}
		if now.DueAt == nil {
			return now.Results, nil
		}
		select {
		case <-told:
		case <-again.C:
		case <-wait.Done():
			return nil, domain.Errorf(domain.CodeUnavailable, "PreviewUnavailable", "The judge did not answer in time. Try again with fewer Requests.")
		}
	}
}

// PreviewWork is what a worker lets the judge read for one preview.
type PreviewWork struct {
	Cases    []PreviewCase
	Limit    time.Duration
	preview  domain.Preview
	requests []domain.Request
	settings domain.Settings
}

// PreviewCase is one Request of a preview.
type PreviewCase struct {
	Request domain.ModelRequest
	Rules   []domain.Rule
}

// PreparePreview loads a preview for the judge and notes that it is being worked on;
// nil when it is not wanted any more.
func (e *Engine) PreparePreview(ctx context.Context, id domain.PreviewID, version int64) (*PreviewWork, error) {
	work := &PreviewWork{Limit: e.JudgeLimit}
	var row *domain.Preview
	err := e.decide(ctx, string(id), func(d *draft) error {
		row = nil
		p, err := e.Store.Preview(ctx, id)
		if err != nil || p.DueAt == nil || p.Version != version {
			return gone(err)
		}
		due := d.at.Add(PreviewWait + domain.LeaseTime)
		p.DueAt = &due
		if p.Tries++; p.Tries > previewTries {
			p.DueAt = nil
		}
		row = &p
		d.put(row)
		return nil
	})
	if err != nil || row == nil || row.DueAt == nil {
		return nil, err
	}
	work.preview = *row
	org, err := e.Store.Organization(ctx, row.Organization)
	if err != nil {
		return nil, err
	}
	work.settings = org.Settings
	work.requests, err = e.Store.Requests(ctx, row.Organization,
		domain.RequestFilter{Member: row.Member, Bot: row.Bot, Decided: true}, domain.Page{Limit: row.Number})
	if err != nil {
		return nil, err
	}
	for _, r := range work.requests {
		c := row.JudgeCase(r)
		work.Cases = append(work.Cases, PreviewCase{Request: e.judgeRequest(org.Settings, c), Rules: c.Rules})
	}
	return work, nil
}

// CommitPreview saves what the judge read, in the order of the cases.
func (e *Engine) CommitPreview(ctx context.Context, work *PreviewWork, verdicts []domain.RulesVerdict) error {
	return e.decide(ctx, string(work.preview.ID), func(d *draft) error {
		e.notePreview(d, work, verdicts)
		p, err := e.Store.Preview(ctx, work.preview.ID)
		if err != nil || p.Version != work.preview.Version {
			return gone(err)
		}
		for i, v := range verdicts {
			p.Results = append(p.Results, p.Result(work.requests[i], v))
		}
		p.DueAt = nil
		d.put(&p)
		return nil
	})
}
