package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"openbot/domain"
)

// TriggerFields is what a person sets of a trigger; nil leaves a field as it is.
type TriggerFields struct {
	Name     *string
	Kind     *string // cron or webhook; it cannot be changed
	Cron     *string
	TimeZone *string
	Missed   *string
	Secret   *string // of a webhook; made when left out, and shown once
	Bot      *domain.BotID
	Chat     *domain.ChatID
	Task     *string
	Enabled  *bool
}

// CreateTrigger makes a trigger. It gives the signing secret of a webhook this once.
func (e *Engine) CreateTrigger(ctx context.Context, p domain.Principal, in TriggerFields) (domain.Trigger, string, error) {
	var t domain.Trigger
	secret := ""
	if in.Kind != nil && *in.Kind == domain.TriggerWebhook {
		if in.Secret == nil {
			made := newSigningSecret()
			in.Secret = &made
		}
		secret = *in.Secret
	}
	err := e.decide(ctx, string(p.Member.ID), func(d *draft) error {
		t = domain.Trigger{ID: newID[domain.TriggerID](domain.PrefixTrigger), Organization: p.Organization, Member: p.Member.ID,
			Kind: domain.TriggerCron, TimeZone: "UTC", Missed: domain.MissedSkip, Bot: p.Member.MainBot, Enabled: true,
			Authority: []domain.Authority{{Member: p.Member.ID, Token: p.Token.ID}}, CreatedAt: d.at}
		if in.Kind != nil {
			t.Kind = *in.Kind
		}
		if in.Name == nil || in.Task == nil {
			return invalid("name", "and task are required")
		}
		if err := e.setTrigger(ctx, d, p, &t, in); err != nil {
			return err
		}
		if t.Chat == "" {
			chat := domain.Chat{ID: newID[domain.ChatID](domain.PrefixChat), Organization: p.Organization, Member: p.Member.ID, Bot: t.Bot,
				Kind: domain.ChatPlain, Title: t.Name, Status: domain.ChatIdle, CreatedAt: d.at}
			d.in(&chat)
			t.Chat = chat.ID
		}
		d.put(&t)
		d.result = t
		return nil
	})
	return t, secret, err
}

// ChangeTrigger sets fields of a trigger. It rests on the caller's token from then on.
func (e *Engine) ChangeTrigger(ctx context.Context, p domain.Principal, id domain.TriggerID, in TriggerFields) (domain.Trigger, error) {
	var t domain.Trigger
	err := e.decide(ctx, string(id), func(d *draft) error {
		var err error
		if t, err = e.Trigger(ctx, p, id); err != nil {
			return err
		}
		if in.Kind != nil && *in.Kind != t.Kind {
			return invalid("kind", "cannot be changed; make another trigger")
		}
		t.Authority = []domain.Authority{{Member: p.Member.ID, Token: p.Token.ID}}
		if err := e.setTrigger(ctx, d, p, &t, in); err != nil {
			return err
		}
		d.put(&t)
		return nil
	})
	return t, err
}

func (e *Engine) setTrigger(ctx context.Context, d *draft, p domain.Principal, t *domain.Trigger, in TriggerFields) error {
	set(&t.Name, in.Name)
	set(&t.Task, in.Task)
	set(&t.Cron, in.Cron)
	set(&t.TimeZone, in.TimeZone)
	set(&t.Missed, in.Missed)
	set(&t.Enabled, in.Enabled)
	t.Name, t.Task = safeText(t.Name), safeText(t.Task)
	switch {
	case strings.TrimSpace(t.Name) == "" || len(t.Name) > domain.MaxBotName:
		return invalidf("name", "must have 1 to %d bytes", domain.MaxBotName)
	case strings.TrimSpace(t.Task) == "" || len(t.Task) > domain.MaxTriggerTask:
		return invalidf("task", "must have 1 to %d bytes", domain.MaxTriggerTask)
	case t.Kind != domain.TriggerCron && t.Kind != domain.TriggerWebhook:
		return invalid("kind", "must be cron or webhook")
	case t.Missed != domain.MissedSkip && t.Missed != domain.MissedOnce:
		return invalid("missed", "must be skip or once")
	case t.Kind == domain.TriggerWebhook && t.Cron != "":
		return invalid("cron", "belongs to a trigger of kind cron")
	case t.Kind == domain.TriggerCron && in.Secret != nil:
		return invalid("secret", "belongs to a trigger of kind webhook")
	}
	if in.Bot != nil {
		t.Bot = *in.Bot
	}
	bot, err := e.visibleBot(ctx, p.Organization, p.Member.ID, t.Bot)
	if err != nil || bot.ArchivedAt != nil || bot.Kind == domain.BotSession {
		if err != nil && !domain.IsCode(err, domain.CodeNotFound) {
			return err
		}
		return invalid("bot", "must be a lasting Bot that you work with and that is not archived")
	}
	if in.Chat != nil {
		chat, err := e.Chat(ctx, p, *in.Chat)
		if err != nil && !domain.IsCode(err, domain.CodeNotFound) {
			return err
		}
		if err != nil || chat.Kind != domain.ChatPlain {
			return invalid("chat", "must be a Chat of yours with a person")
		}
		t.Chat = chat.ID
	}
	if in.Secret != nil {
		if !validSigningSecret(*in.Secret) {
			return invalid("secret", "must be whsec_ and the base64 of 24 to 64 bytes")
		}
		if t.Sealed, err = e.Sealer.Seal([]byte(*in.Secret), t.Organization, string(t.ID)); err != nil {
			return domain.Wrap(domain.CodeInternal, "Internal", "The secret could not be encrypted.", err)
		}
	}
	t.UpdatedAt, t.NextAt = d.at, nil
	if t.Enabled {
		t.Problem = ""
	}
	if t.Kind != domain.TriggerCron {
		return nil
	}
	when, err := readSchedule(t.Cron, t.TimeZone)
	if err != nil {
		return invalid("cron", err.Error())
	}
	next := when.next(d.at)
	if next.IsZero() {
		return invalid("cron", "never comes")
	}
	if t.Enabled {
		t.NextAt = &next
	}
	return nil
}

// Trigger reads a trigger of the caller.
func (e *Engine) Trigger(ctx context.Context, p domain.Principal, id domain.TriggerID) (domain.Trigger, error) {
	t, err := e.Store.Trigger(ctx, id)
	if err == nil && (t.Organization != p.Organization || t.Member != p.Member.ID || t.DeletedAt != nil) {
		err = noTrigger()
	}
	if err != nil {
		return domain.Trigger{}, asNotFound(err, "TriggerNotFound", "There is no trigger with this ID.")
	}
	return t, nil
}

func noTrigger() error {
	return domain.Errorf(domain.CodeNotFound, "TriggerNotFound", "There is no trigger with this ID.")
}

// Triggers lists the caller's triggers, newest first.
func (e *Engine) Triggers(ctx context.Context, p domain.Principal, page domain.Page) ([]domain.Trigger, error) {
	return e.Store.Triggers(ctx, p.Member.ID, page)
}

// DeleteTrigger takes a trigger away. Work that it gave goes on.
func (e *Engine) DeleteTrigger(ctx context.Context, p domain.Principal, id domain.TriggerID) error {
	return e.decide(ctx, string(id), func(d *draft) error {
		t, err := e.Trigger(ctx, p, id)
		if err != nil {
			return err
		}
		at := d.at
		t.DeletedAt, t.NextAt, t.Enabled, t.Sealed = &at, nil, false, nil
		d.put(&t)
		return nil
	})
}

// FireTrigger gives the work of a trigger whose time has come, and moves it to its next
// time in the same commit: of any number of schedulers one fires it.
func (e *Engine) FireTrigger(ctx context.Context, id domain.TriggerID) error {
	return e.decide(ctx, string(id), func(d *draft) error {
		t, err := e.Store.Trigger(ctx, id)
		if err != nil || t.NextAt == nil || !t.Enabled || t.DeletedAt != nil || domain.Before(d.at, *t.NextAt) {
			return gone(err)
		}
		due := *t.NextAt
		when, err := readSchedule(t.Cron, t.TimeZone)
		if err != nil {
			return e.stopTrigger(d, t, "Its times cannot be read any more: "+err.Error())
		}
		next := when.next(d.at)
		t.NextAt = nil
		if !next.IsZero() {
			t.NextAt = &next
		}
		if !t.Fires(due, d.at) {
			d.put(&t)
			return nil
		}
		_, err = e.giveByTrigger(ctx, d, t, t.Task, nil)
		return err
	})
}

// stopTrigger switches a trigger off and says why.
func (e *Engine) stopTrigger(d *draft, t domain.Trigger, why string) error {
	t.Enabled, t.NextAt, t.Problem, t.UpdatedAt = false, nil, why, d.at
	d.put(&t)
	return nil
}

// giveByTrigger gives the work. A trigger that can give none any more is switched off.
func (e *Engine) giveByTrigger(ctx context.Context, d *draft, t domain.Trigger, task string, taint domain.Taint) (domain.DelegationID, error) {
	bot, err := e.Store.Bot(ctx, t.Bot)
	if err != nil && !domain.IsCode(err, domain.CodeNotFound) {
		return "", err
	}
	if err != nil || bot.ArchivedAt != nil {
		return "", e.stopTrigger(d, t, "Its Bot is archived.")
	}
	org, err := e.Store.Organization(ctx, t.Organization)
	if err != nil {
		return "", err
	}
	for _, a := range t.Authority {
		member, err := e.Store.Member(ctx, a.Member)
		if err != nil {
			return "", err
		}
		token, err := e.Store.Token(ctx, a.Token)
		if err != nil {
			return "", err
		}
		if why, ok := domain.Stands([]domain.Rights{{Member: member, Token: token}}); !ok {
			return "", e.stopTrigger(d, t, "It rests on nobody any more: "+why+".")
		}
	}
	chat, err := e.Store.Chat(ctx, t.Chat)
	if err != nil {
		return "", err
	}
	if chat.DeletedAt != nil {
		chat = domain.Chat{ID: newID[domain.ChatID](domain.PrefixChat), Organization: t.Organization, Member: t.Member, Bot: t.Bot,
			Kind: domain.ChatPlain, Title: t.Name, Status: domain.ChatIdle, CreatedAt: d.at}
		t.Chat = chat.ID
	}
	d.in(&chat)
	n := &newWork{e: e, d: d, giverName: "The trigger " + t.Name, chat: &chat, member: t.Member, authority: t.Authority,
		parent: domain.WorkParent{Chat: chat.ID}, trigger: t.ID, target: bot, taint: taint,
		in: giving{Task: task, Limits: domain.Limits{TimeMs: org.Settings.DelegationTimeLimitMs}}}
	id, _, _, err := n.place(ctx, nil, true)
	if err != nil {
		return "", err
	}
	at := d.at
	t.LastAt, t.LastWork = &at, id
	d.event(domain.EventDelegation, string(id), map[string]any{"delegation": id, "trigger": t.ID, "status": domain.DelegationQueued})
	d.put(&t)
	return id, nil
}

// signalSkew is how far the clock of whoever sends a signal may be off.
const signalSkew = 5 * time.Minute

// Fired is the work that a signal started.
type Fired struct {
	Delegation domain.DelegationID
	Trigger    domain.TriggerID
}

// Signal fires a trigger of kind webhook. headers carry the signature as Standard
// Webhooks has it. The same signal again gives the same work; keep gives its answer a
// form to be kept in.
func (e *Engine) Signal(ctx context.Context, id domain.TriggerID, headers http.Header, body []byte, keep func(member domain.MemberID, key, fingerprint string) *Keeping) (Fired, error) {
	t, err := e.Store.Trigger(ctx, id)
	if err == nil && (t.Kind != domain.TriggerWebhook || !t.Enabled || t.DeletedAt != nil) {
		err = noTrigger()
	}
	if err != nil {
		return Fired{}, asNotFound(err, "TriggerNotFound", "There is no trigger with this ID.")
	}
	if err := e.checkSignature(t, headers, body); err != nil {
		return Fired{}, err
	}
	sum := sha256.Sum256(body)
	k := keep(t.Member, "signal "+string(t.ID)+" "+headers.Get(standardwebhooks.HeaderWebhookID), hex.EncodeToString(sum[:]))
	if err := e.Kept(ctx, k); err != nil {
		return Fired{}, err
	}
	var fired Fired
	err = e.decide(WithKeeping(ctx, k), string(id), func(d *draft) error {
		t, err := e.Store.Trigger(ctx, id)
		if err != nil || !t.Enabled || t.DeletedAt != nil {
			return noTrigger()
		}
		from := domain.TaintSource{Kind: domain.SourceSignal, Trigger: t.ID, AtMs: d.at.UnixMilli()}
		work, err := e.giveByTrigger(ctx, d, t, domain.TextSignal(t.Task, signalData(body)), domain.Taint{from})
		if err != nil {
			return err
		}
		if work == "" {
			return nil // it was switched off; the next signal hears so
		}
		fired = Fired{Delegation: work, Trigger: t.ID}
		d.result = fired
		return nil
	})
	if err == nil && fired.Delegation == "" {
		err = noTrigger()
	}
	return fired, err
}

// checkSignature refuses what is not signed with the trigger's secret, or not now.
func (e *Engine) checkSignature(t domain.Trigger, headers http.Header, body []byte) error {
	refused := domain.Errorf(domain.CodeUnauthenticated, "Unauthenticated", "The signature does not fit. Sign with this trigger's secret as Standard Webhooks says, with a clock that is right to five minutes.")
	id := headers.Get(standardwebhooks.HeaderWebhookID)
	if id == "" || len(id) > 100 {
		return refused
	}
	secret, err := e.Sealer.Open(t.Sealed, t.Organization, string(t.ID))
	if err != nil {
		return domain.Wrap(domain.CodeInternal, "Internal", "The secret of the trigger cannot be opened.", err)
	}
	hook, err := standardwebhooks.NewWebhook(string(secret))
	if err != nil {
		return domain.Wrap(domain.CodeInternal, "Internal", "The secret of the trigger is broken.", err)
	}
	if hook.VerifyIgnoringTimestamp(body, headers) != nil {
		return refused
	}
	var seconds json.Number
	if json.Unmarshal([]byte(headers.Get(standardwebhooks.HeaderWebhookTimestamp)), &seconds) != nil {
		return refused
	}
	sent, err := seconds.Int64()
	if err != nil {
		return refused
	}
	if off := e.now().Sub(time.Unix(sent, 0)); off > signalSkew || off < -signalSkew {
		return refused
	}
	return nil
}

// signalData is what came with a signal, in one line of JSON whatever it was.
func signalData(body []byte) []byte {
	var line bytes.Buffer
	if len(body) <= domain.MaxTriggerTask && json.Compact(&line, body) == nil {
		return []byte(safeText(line.String()))
	}
	text, err := json.Marshal(cut(safeText(string(body)), domain.MaxTriggerTask))
	if err != nil {
		return []byte(`""`)
	}
	return text
}
