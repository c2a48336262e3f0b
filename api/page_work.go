package api

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"openbot/domain"
	"openbot/web"
)

const (
	// shownWork is how many pieces of one layer a page shows.
	shownWork = 20
	// maxOpened is how many pieces of work a page shows what is below them.
	maxOpened = 30
	// shownTask is how much of a task and of a result is shown, in bytes.
	shownTask = 6_000
	// firstLine is how much of its first line names a task, in characters.
	firstLine = 160
)

func (s *server) workPages(r *gin.Engine) {
	r.GET("/work", s.seeing("work", domain.RoleRead, s.showWork))
	r.GET("/work/:delegation", s.seeing("work", domain.RoleRead, s.goToWork))
	r.POST("/work/:delegation/cancel", s.acting(domain.RoleWrite, s.stopWork))
}

// workPlace is which part of the tree is shown: that of one Chat or of all, and which
// pieces show what is below them.
type workPlace struct {
	chat   domain.ChatID
	opened []domain.DelegationID
}

// workPlaceOf reads a place from an address or a form. What is no ID is left out.
func workPlaceOf(values url.Values) workPlace {
	at := workPlace{}
	if chat := values.Get("chat"); domain.ValidID(chat, domain.PrefixChat) {
		at.chat = domain.ChatID(chat)
	}
	for _, id := range values["open"] {
		if domain.ValidID(id, domain.PrefixDelegation) && !slices.Contains(at.opened, domain.DelegationID(id)) && len(at.opened) < maxOpened {
			at.opened = append(at.opened, domain.DelegationID(id))
		}
	}
	return at
}

func (at workPlace) isOpen(id domain.DelegationID) bool { return slices.Contains(at.opened, id) }

// toggled is the place with one piece shown or hidden.
func (at workPlace) toggled(id domain.DelegationID) workPlace {
	next := workPlace{chat: at.chat}
	for _, o := range at.opened {
		if o != id {
			next.opened = append(next.opened, o)
		}
	}
	if len(next.opened) == len(at.opened) {
		next.opened = append(next.opened, id)
	}
	return next
}

func (at workPlace) path() string {
	query := url.Values{}
	if at.chat != "" {
		query.Set("chat", string(at.chat))
	}
	for _, id := range at.opened {
		query.Add("open", string(id))
	}
	if len(query) == 0 {
		return "/work"
	}
	return "/work?" + query.Encode()
}

func (at workPlace) fields() []web.PlacePart {
	out := []web.PlacePart{{Name: "chat", Value: string(at.chat)}}
	for _, id := range at.opened {
		out = append(out, web.PlacePart{Name: "open", Value: string(id)})
	}
	return out
}

// showWork shows the work of one Chat, or of a page of Chats, layer by layer.
func (s *server) showWork(ctx context.Context, gc *gin.Context, p domain.Principal) (web.View, error) {
	at := workPlaceOf(gc.Request.URL.Query())
	v := web.Work{One: at.chat != "", Later: gc.Query("before") != ""}
	var chats []domain.Chat
	if v.One {
		chat, err := s.Engine.Chat(ctx, p, at.chat)
		if err != nil {
			return web.View{}, err
		}
		chats = []domain.Chat{chat}
	} else {
		page := rowsAfter(gc, domain.PrefixChat)
		page.Limit = shownRows
		tops, next, err := s.Engine.WorkChats(ctx, p, page)
		if err != nil {
			return web.View{}, err
		}
		chats, v.More = tops, string(next)
	}
	layers := s.workLayers(p)
	var c nameless
	var groups []*workLayer
	for _, chat := range chats {
		c.bot(chat.Bot)
		before := ""
		if v.One {
			before = gc.Query("below")
		}
		layer, err := layers.read(ctx, chat.ID, before, at, &c)
		if err != nil {
			return web.View{}, err
		}
		groups = append(groups, layer)
	}
	n, err := s.namesOf(ctx, p, c)
	if err != nil {
		return web.View{}, err
	}
	for i, chat := range chats {
		if len(groups[i].views) == 0 {
			continue
		}
		own := at
		if !v.One {
			own.chat = "" // what is opened stays within the page of all
		}
		v.Groups = append(v.Groups, web.WorkGroup{ID: string(chat.ID), Name: s.chatRow(chat, n).Name(),
			Rows: s.workRows(groups[i], own, n, p), More: olderWork(groups[i])})
	}
	if partFor(gc, "work") {
		return v.Part(), nil
	}
	return v.View(), nil
}

// goToWork leads to a piece of work among those of the Chat that gave it: messages to people
// link here.
func (s *server) goToWork(ctx context.Context, gc *gin.Context, p domain.Principal) (web.View, error) {
	id, err := DelegationPath{Delegation: gc.Param("delegation")}.id()
	if err != nil {
		return web.View{}, err
	}
	v, err := s.Engine.Delegation(ctx, p, id)
	if err != nil {
		return web.View{}, err
	}
	gc.Header("Location", workPlace{chat: v.Delegation.Parent.Chat}.path()+"#"+string(id))
	gc.Status(http.StatusSeeOther)
	return web.View{}, nil
}

// workLayer is the work that one Chat gave, newest first, each piece with the layer
// below it when that is shown.
type workLayer struct {
	chat  domain.ChatID
	views []domain.DelegationView
	more  bool
	below map[domain.DelegationID]*workLayer
}

type workLayers struct {
	s *server
	p domain.Principal
}

func (s *server) workLayers(p domain.Principal) workLayers { return workLayers{s, p} }

// read reads a layer and those below it that are opened. Each opened piece is read at
// most once, since it stands in one layer alone.
func (l workLayers) read(ctx context.Context, chat domain.ChatID, before string, at workPlace, c *nameless) (*workLayer, error) {
	page := domain.Page{Limit: shownWork + 1}
	if domain.ValidID(before, domain.PrefixDelegation) {
		page.Before = before
	}
	views, err := l.s.Engine.Delegations(ctx, l.p, chat, page)
	if err != nil {
		return nil, err
	}
	layer := &workLayer{chat: chat, views: views, below: map[domain.DelegationID]*workLayer{}}
	if len(views) > shownWork {
		layer.views, layer.more = views[:shownWork], true
	}
	for _, v := range layer.views {
		c.work(v)
		if !at.isOpen(v.Delegation.ID) {
			continue
		}
		below, err := l.read(ctx, v.Delegation.Chat, "", at, c)
		if domain.IsCode(err, domain.CodeNotFound) {
			below, err = &workLayer{}, nil // its Chat was deleted
		}
		if err != nil {
			return nil, err
		}
		layer.below[v.Delegation.ID] = below
	}
	return layer, nil
}

func (c *nameless) work(v domain.DelegationView) {
	c.bot(v.Delegation.Bot)
	for _, above := range v.Above {
		c.bot(above.Bot)
	}
}

// olderWork is where the layer goes on, or "".
func olderWork(layer *workLayer) string {
	if !layer.more {
		return ""
	}
	last := layer.views[len(layer.views)-1].Delegation.ID
	return "/work?" + url.Values{"chat": {string(layer.chat)}, "below": {string(last)}}.Encode()
}

func (s *server) workRows(layer *workLayer, at workPlace, n names, p domain.Principal) []web.WorkRow {
	var rows []web.WorkRow
	for _, v := range layer.views {
		row := s.workRow(v, n, p)
		id := v.Delegation.ID
		row.Place = at.fields()
		if below := layer.below[id]; below != nil {
			row.Fold = at.toggled(id).path()
			row.Below, row.More = s.workRows(below, at, n, p), olderWork(below)
		} else if v.Delegation.StartedAt != nil && len(at.opened) < maxOpened {
			row.Expand = at.toggled(id).path()
		}
		rows = append(rows, row)
	}
	return rows
}

var workDots = map[string]string{"authorizing": "waiting", "running": "running", "paused": "paused", "stopping": "paused", "completed": "ok", "failed": "unreachable"}

// workRow shows one piece of work as it stands now.
func (s *server) workRow(v domain.DelegationView, n names, p domain.Principal) web.WorkRow {
	g, now := v.Delegation, s.Engine.Clock()
	path := append([]domain.Delegation{g}, v.Above...)
	row := web.WorkRow{ID: string(g.ID), Bot: n.bot(g.Bot), BotID: string(g.Bot), Status: string(g.Status), Reason: g.Reason, Request: string(v.Request),
		Trigger: string(g.Trigger), Limits: limitsOf(path, now), Updated: moment(g.UpdatedAt, now), Open: g.Open(), Key: rand.Text()}
	row.Task, row.Whole, row.Cut = taskWords(g.Task)
	held := domain.HeldBy(path)
	switch {
	case !g.Open():
		row.Result, row.Bad = strings.ToValidUTF8(cutText(g.Result, shownTask), ""), g.Status != domain.DelegationCompleted
		if len(g.Result) > shownTask {
			row.Rest = len(g.Result)
		}
	case held.Stopping != "":
		row.Status, row.Hold = "stopping", "It is being stopped: calls that are out are waited for."
	case g.Status == domain.DelegationAuthorizing:
		row.Hold = "It waits for the decision whether it may be given."
	case held.Paused != "":
		row.Status = string(domain.DelegationPaused)
		row.Hold, row.HoldAt = holdWords(path, held.Paused, v.Request != "", n)
	case v.Waits != "":
		row.Request, row.Hold = string(v.Waits), "It waits for a decision."
	}
	row.Dot = workDots[row.Status]
	row.MayStop = g.Open() && held.Stopping == ""
	if g.StartedAt != nil {
		row.Chat = string(g.Chat)
		row.MayWrite = g.Member == p.Member.ID
	}
	return row
}

var limitWords = map[string]string{domain.LimitTime: "time limit", domain.LimitSteps: "limit of steps", domain.LimitBudget: "budget"}

// holdWords says which limit paused the first of a path and whose limit it was, with
// where that work stands when it is another.
func holdWords(path []domain.Delegation, paused domain.DelegationID, asked bool, n names) (words, place string) {
	for i, at := range path {
		if at.ID != paused || at.Pause == nil {
			continue
		}
		limit := limitWords[at.Pause.Limit]
		switch {
		case i > 0:
			return "Paused with work above it, of " + n.bot(at.Bot) + ", which reached its " + limit + ".",
				workPlace{chat: at.Parent.Chat}.path() + "#" + string(at.ID)
		case asked:
			return "Paused: it reached its " + limit + ". Only a decision says whether it goes on, not a message.", ""
		default:
			return "Paused: it reached its " + limit + ". Whether it goes on is being checked.", ""
		}
	}
	return "Paused.", ""
}

// taskWords gives the first line of a task, and the task when that is more.
func taskWords(task string) (first, whole string, size int) {
	text := strings.TrimSpace(task)
	first, _, _ = strings.Cut(text, "\n")
	if runes := []rune(first); len(runes) > firstLine {
		first = string(runes[:firstLine]) + "…"
	}
	if first == text {
		return first, "", 0
	}
	if len(task) > shownTask {
		return first, strings.ToValidUTF8(cutText(task, shownTask), ""), len(task)
	}
	return first, task, 0
}

func cutText(text string, size int) string { return text[:min(len(text), size)] }

// limitsOf says what the first of a path used of each limit since its limits last
// started, and in all.
func limitsOf(path []domain.Delegation, now time.Time) []web.Limit {
	g := path[0]
	all := domain.UsedTime(path, now)
	window := all - time.Duration(g.Clock.Window-g.Clock.Start)*time.Microsecond
	return []web.Limit{
		limitOf("Time", window.Milliseconds(), all.Milliseconds(), g.Limits.TimeMs, func(ms int64) string { return roughly(time.Duration(ms) * time.Millisecond) }),
		limitOf("Steps", g.Steps-g.Clock.WindowSteps, g.Steps, g.Limits.Steps, itoa),
		limitOf("Budget", domain.MicrosFromNanos(g.CostNanos-g.Clock.WindowCost), domain.MicrosFromNanos(g.CostNanos), g.Limits.BudgetMicros, money),
	}
}

func limitOf(name string, used, all, most int64, words func(int64) string) web.Limit {
	used = max(used, 0)
	l := web.Limit{Name: name, Used: used, Max: most, Text: words(used) + " used, no limit"}
	if most > 0 {
		l.Text, l.Full = words(used)+" of "+words(most)+" used", used >= most
		l.Used = min(used, most)
	}
	if all > used {
		l.Text += ", " + words(all) + " in all"
	}
	return l
}

// money writes micro-USD as dollars, with as many digits as they need.
func money(micros int64) string {
	dollars := float64(micros) / 1e6
	switch {
	case micros == 0:
		return "$0"
	case micros >= 1_000_000:
		return fmt.Sprintf("$%.2f", dollars)
	case micros >= 1000:
		return fmt.Sprintf("$%.4f", dollars)
	}
	return fmt.Sprintf("$%.6f", dollars)
}

// stopWork stops a piece of work with all work below it.
func (s *server) stopWork(ctx context.Context, gc *gin.Context, p domain.Principal) error {
	id, err := DelegationPath{Delegation: gc.Param("delegation")}.id()
	if err != nil {
		return err
	}
	body := CancelWork{CommandKey: gc.Request.PostForm.Get("key")}
	if err := s.fits(body); err != nil {
		return err
	}
	if _, err := s.Engine.CancelDelegation(ctx, p, id, body.CommandKey); err != nil {
		return err
	}
	onward(gc, workPlaceOf(gc.Request.PostForm).path()+"#"+string(id))
	return nil
}

// maxOpenWork is how much open work of a Chat stands on the page of the Chat.
const maxOpenWork = 3

// chatWork shows the work of a task Chat, and what a Chat gave away.
func (s *server) chatWork(ctx context.Context, p domain.Principal, chat domain.Chat) (web.ChatWork, error) {
	v := web.ChatWork{Chat: string(chat.ID)}
	var c nameless
	layer, err := s.workLayers(p).read(ctx, chat.ID, "", workPlace{}, &c)
	if err != nil {
		return v, err
	}
	var own *domain.DelegationView
	if chat.Delegation() != "" {
		view, err := s.Engine.Delegation(ctx, p, chat.Delegation())
		if err != nil {
			return v, err
		}
		own = &view
		c.work(view)
	}
	v.Given, v.More = len(layer.views), layer.more
	if own == nil && v.Given == 0 {
		return v, nil
	}
	n, err := s.namesOf(ctx, p, c)
	if err != nil {
		return v, err
	}
	if own != nil {
		v.Own = new(s.workOf(*own, n, p))
		v.Own.Chat, v.Own.MayWrite = "", false // this is its Chat
	}
	for _, row := range s.workRows(layer, workPlace{chat: chat.ID}, n, p) {
		if row.Open && len(v.Open) < maxOpenWork {
			v.Open = append(v.Open, row)
		}
	}
	return v, nil
}

// workOf shows one piece of work outside of its tree.
func (s *server) workOf(v domain.DelegationView, n names, p domain.Principal) web.WorkRow {
	row := s.workRow(v, n, p)
	at := workPlace{chat: v.Delegation.Parent.Chat}
	row.Place = at.fields()
	if v.Delegation.StartedAt != nil {
		row.Expand = at.toggled(v.Delegation.ID).path()
	}
	return row
}
