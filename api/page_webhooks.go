package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"openbot/domain"
	"openbot/domain/engine"
	"openbot/web"
)

func (s *server) webhookPages(r *gin.Engine) {
	r.GET("/webhooks", s.seeing("webhooks", domain.RoleRead, func(ctx context.Context, gc *gin.Context, p domain.Principal) (web.View, error) {
		v, err := s.webhooksPage(ctx, gc, p)
		return v.View(), err
	}))
	r.GET("/webhooks/:webhook", s.seeing("webhooks", domain.RoleRead, s.showWebhook))
	r.POST("/webhooks", s.acting(domain.RoleWrite, s.makeWebhook))
	r.POST("/webhooks/:webhook", s.acting(domain.RoleWrite, s.editWebhook))
	r.POST("/webhooks/:webhook/delete", s.acting(domain.RoleWrite, func(ctx context.Context, gc *gin.Context, p domain.Principal) error {
		id, err := WebhookPath{Webhook: gc.Param("webhook")}.id()
		if err != nil {
			return err
		}
		if err := s.Engine.DeleteWebhook(ctx, p, id); err != nil {
			return err
		}
		onward(gc, "/webhooks")
		return nil
	}))
	r.POST("/webhooks/:webhook/deliveries/:delivery/resend", s.acting(domain.RoleWrite, s.resendFromPage))
}

// hookFormats names the formats, in the order in which people want them.
var hookFormats = []struct {
	format domain.HookFormat
	label  string
}{
	{domain.FormatEmail, "E-mail"},
	{domain.FormatSlack, "Slack"},
	{domain.FormatNtfy, "ntfy"},
	{domain.FormatStandard, "Signed messages to a program"},
}

func formatWords(f domain.HookFormat) string {
	for _, known := range hookFormats {
		if known.format == f {
			return known.label
		}
	}
	return string(f)
}

// hookEvents says what each event is, in words.
var hookEvents = map[string]string{
	domain.HookRequestPending:   "a Request waits for an answer",
	domain.HookRequestExpiring:  "the time of a Request is nearly up",
	domain.HookRequestEscalated: "you may answer what another Member left open",
	domain.HookRequestDecided:   "a Request was answered or cancelled",
	domain.HookDelegationPaused: "given work reached a limit",
	domain.HookDelegationEnded:  "given work ended",
}

// firstEvents is what a person wants to hear of, when nothing else was said.
var firstEvents = []string{domain.HookRequestPending, domain.HookRequestExpiring, domain.HookRequestEscalated}

func eventChoices(picked []string) []web.Choice {
	var out []web.Choice
	for _, event := range domain.HookEvents() {
		words := hookEvents[event]
		out = append(out, web.Choice{Value: event, Label: strings.ToUpper(words[:1]) + words[1:], Picked: slices.Contains(picked, event)})
	}
	return out
}

// receiverName names a receiver without what is secret in its address: whoever has that
// of Slack or of a topic with a login can write there.
func receiverName(w domain.Webhook) string {
	if address, _, ok := domain.MailAddress(w.URL); ok {
		return address
	}
	u, err := url.Parse(w.URL)
	if err != nil || u.Host == "" {
		return string(w.ID)
	}
	switch w.Format {
	case domain.FormatSlack:
		return u.Host
	case domain.FormatNtfy:
		return path.Base(u.Path) + " on " + u.Host
	}
	return u.Scheme + "://" + u.Host + u.EscapedPath()
}

func (s *server) webhookRow(w domain.Webhook, p domain.Principal, n names) web.WebhookRow {
	row := web.WebhookRow{ID: string(w.ID), Name: receiverName(w), Format: formatWords(w.Format), Whole: w.Whole, Enabled: w.Enabled, Problem: w.DisabledWhy}
	var words []string
	for _, event := range domain.HookEvents() {
		if slices.Contains(w.Events, event) {
			words = append(words, hookEvents[event])
		}
	}
	row.Events = strings.Join(words, ", ")
	if w.Member != p.Member.ID {
		row.By = n.actor(domain.Person(w.Member), p.Member.ID)
	}
	return row
}

func (s *server) webhooksPage(ctx context.Context, gc *gin.Context, p domain.Principal) (web.Webhooks, error) {
	v := web.Webhooks{Key: rand.Text(), Events: eventChoices(firstEvents)}
	rows, err := s.Engine.Webhooks(ctx, p, rowsAfter(gc, domain.PrefixWebhook))
	if err != nil {
		return v, err
	}
	rows, v.More = cutRows(rows, func(w domain.Webhook) string { return string(w.ID) })
	for _, w := range rows {
		v.Rows = append(v.Rows, s.webhookRow(w, p, names{}))
	}
	if s.Engine.PublicURL == "" {
		v.Missing = append(v.Missing, "E-mail, Slack and ntfy need the address of this inbox for their links: the server’s operator sets OPENBOT_PUBLIC_URL.")
	} else if s.Engine.MailDomain == "" {
		v.Missing = append(v.Missing, "E-mail needs a mail server: the server’s operator sets OPENBOT_SMTP_URL and OPENBOT_MAIL_FROM.")
	}
	picked := false
	for _, f := range hookFormats {
		c := web.FormatChoice{Choice: web.Choice{Value: string(f.format), Label: f.label},
			Unready: f.format.ForPeople() && s.Engine.PublicURL == "" || f.format == domain.FormatEmail && s.Engine.MailDomain == ""}
		c.Picked = !c.Unready && !picked
		picked = picked || c.Picked
		v.Formats = append(v.Formats, c)
	}
	return v, nil
}

func (s *server) showWebhook(ctx context.Context, gc *gin.Context, p domain.Principal) (web.View, error) {
	id, err := WebhookPath{Webhook: gc.Param("webhook")}.id()
	if err != nil {
		return web.View{}, err
	}
	w, err := s.Engine.Webhook(ctx, p, id)
	if err != nil {
		return web.View{}, err
	}
	status := domain.DeliveryStatus(gc.Query("status"))
	if !slices.Contains(domain.DeliveryStatuses(), status) {
		status = ""
	}
	now := s.Engine.Clock()
	v := web.Webhook{WebhookRow: s.webhookRow(w, p, names{}), Signed: !w.Format.ForPeople(), Mail: w.Format == domain.FormatEmail, Choices: eventChoices(w.Events),
		Created: moment(w.CreatedAt, now), Saved: gc.Query("saved") != ""}
	v.Status = []web.Choice{{Label: "All messages", Picked: status == ""}}
	for _, known := range domain.DeliveryStatuses() {
		v.Status = append(v.Status, web.Choice{Value: string(known), Label: string(known), Picked: known == status})
	}
	rows, err := s.Engine.Deliveries(ctx, p, id, status, rowsAfter(gc, domain.PrefixDelivery))
	if err != nil {
		return web.View{}, err
	}
	rows, before := cutRows(rows, func(d domain.Delivery) string { return string(d.ID) })
	if before != "" {
		v.More = "?" + url.Values{"before": {before}, "status": {string(status)}}.Encode()
	}
	for _, d := range rows {
		row := web.DeliveryRow{ID: string(d.ID), Event: cmp.Or(hookEvents[d.Event], d.Event), Link: linkOf(d), Status: string(d.Status), Tries: d.Tries,
			Outcome: d.Outcome, Made: moment(d.CreatedAt, now), Payload: string(d.Payload), Dead: d.Status == domain.DeliveryDead}
		if d.Status == domain.DeliveryPending {
			row.Next = momentOrNil(d.DueAt, now)
		}
		v.Deliveries = append(v.Deliveries, row)
	}
	return v.View(), nil
}

// linkOf is the page of what a message tells of.
func linkOf(d domain.Delivery) string {
	var told struct {
		Data struct {
			Request    domain.RequestID
			Delegation domain.DelegationID
		}
	}
	if json.Unmarshal(d.Payload, &told) != nil {
		return ""
	}
	switch about := told.Data; {
	case domain.ValidID(string(about.Request), domain.PrefixRequest):
		return "/requests/" + string(about.Request)
	case domain.ValidID(string(about.Delegation), domain.PrefixDelegation):
		return "/work/" + string(about.Delegation)
	}
	return ""
}

// addressOf reads an address as people write it: that of a mailbox without its scheme.
func addressOf(form url.Values, mail bool) string {
	address := strings.TrimSpace(form.Get("url"))
	if mail && address != "" && !strings.HasPrefix(address, "mailto:") {
		address = "mailto:" + address
	}
	return address
}

// makeWebhook shows the secret of one for programs in this answer alone.
func (s *server) makeWebhook(ctx context.Context, gc *gin.Context, p domain.Principal) error {
	form := gc.Request.PostForm
	whole := form.Get("organization") == "true"
	body := NewWebhook{Format: form.Get("format"), URL: addressOf(form, form.Get("format") == string(domain.FormatEmail)), Events: form["event"], Organization: &whole}
	if err := s.fits(body); err != nil {
		return err
	}
	ctx, err := s.once(ctx, gc, "webhook", http.StatusCreated)
	if err != nil {
		return err
	}
	made, secret, err := s.Engine.CreateWebhook(keep(ctx, wireWebhook), p, engine.WebhookFields{Format: domain.HookFormat(body.Format), URL: &body.URL,
		Events: body.Events, Organization: body.Organization})
	if err != nil && !isKept(err) {
		return err
	}
	if err != nil || secret == "" {
		onward(gc, "/webhooks") // made before, or nothing is shown once
		return nil
	}
	v, err := s.webhooksPage(ctx, gc, p)
	if err != nil {
		return err
	}
	v.Made = &web.MadeSecret{Name: receiverName(made), Secret: secret}
	return s.afterForm(ctx, gc, p, "webhooks", v.View())
}

func (s *server) editWebhook(ctx context.Context, gc *gin.Context, p domain.Principal) error {
	id, err := WebhookPath{Webhook: gc.Param("webhook")}.id()
	if err != nil {
		return err
	}
	w, err := s.Engine.Webhook(ctx, p, id)
	if err != nil {
		return err
	}
	form := gc.Request.PostForm
	enabled, whole := form.Get("enabled") == "true", form.Get("organization") == "true"
	body := WebhookChange{URL: given(addressOf(form, w.Format == domain.FormatEmail)), Events: new(form["event"]), Secret: given(strings.TrimSpace(form.Get("secret")))}
	if enabled != w.Enabled {
		body.Enabled = &enabled // saving what is there keeps why the server switched it off
	}
	if whole != w.Whole {
		body.Organization = &whole
	}
	if err := s.fits(body); err != nil {
		return err
	}
	if _, err := s.Engine.ChangeWebhook(ctx, p, id, engine.WebhookFields{URL: body.URL, Events: nonNil(*body.Events), Enabled: body.Enabled,
		Organization: body.Organization, Secret: body.Secret}); err != nil {
		return err
	}
	onward(gc, "/webhooks/"+string(id)+"?saved=1")
	return nil
}

// resendFromPage sends a dead message again. One that was sent again meanwhile is shown as
// it stands.
func (s *server) resendFromPage(ctx context.Context, gc *gin.Context, p domain.Principal) error {
	webhook, err := WebhookPath{Webhook: gc.Param("webhook")}.id()
	if err != nil {
		return err
	}
	id, err := DeliveryName{Delivery: gc.Param("delivery")}.id()
	if err != nil {
		return err
	}
	if _, err := s.Engine.ResendDelivery(ctx, p, webhook, id); err != nil && !domain.IsCode(err, domain.CodeConflict) {
		return err
	}
	onward(gc, "/webhooks/"+string(webhook))
	return nil
}
