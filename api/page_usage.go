package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"openbot/domain"
	"openbot/domain/engine"
	"openbot/web"
)

const (
	// plottedBots is how many Bots have bars of their own; the others share one row.
	plottedBots = 12
	// shownUsage is how many rows the table of usage has at most.
	shownUsage = 400
	// barStep is how far the bars of two days are apart, in units of the plot.
	barStep = 10
	day     = 24 * time.Hour
)

var usageDays = []int{7, 14, 30}

// usageDay is what each Bot used on one day.
type usageDay struct {
	name string
	sums map[string]domain.UsageSum
}

// showUsage plots what models cost, by Bot and day.
func (s *server) showUsage(ctx context.Context, gc *gin.Context, p domain.Principal) (web.View, error) {
	v := web.Usage{}
	days, err := strconv.Atoi(gc.DefaultQuery("days", "14"))
	if err != nil || !slices.Contains(usageDays, days) {
		return web.View{}, invalid("days", "must be 7, 14 or 30")
	}
	for _, n := range usageDays {
		v.Days = append(v.Days, web.Choice{Value: strconv.Itoa(n), Label: strconv.Itoa(n) + " days", Picked: n == days})
	}
	plot := make([]usageDay, days)
	totals := map[string]domain.UsageSum{}
	first := s.Engine.Clock().UTC().Truncate(day).Add(-time.Duration(days-1) * day)
	for i := range plot {
		from := first.Add(time.Duration(i) * day)
		to := from.Add(day)
		sums, err := s.Engine.Usage(ctx, p, engine.UsageQuery{Group: domain.UsageByBot, From: &from, To: &to})
		if err != nil {
			return web.View{}, err
		}
		plot[i] = usageDay{from.Format("2006-01-02"), map[string]domain.UsageSum{}}
		for _, u := range sums {
			plot[i].sums[u.Key] = u
			totals[u.Key] = usagePlus(totals[u.Key], u)
		}
	}
	v.First, v.Last = plot[0].name, plot[days-1].name
	n, err := s.usageNames(ctx, p, totals)
	if err != nil {
		return web.View{}, err
	}
	s.plotUsage(&v, plot, totals, n)
	for i := days - 1; i >= 0; i-- {
		for _, u := range usageOrder(plot[i].sums) {
			if len(v.Rows) == shownUsage {
				v.Cut = true
				return v.View(), nil
			}
			v.Rows = append(v.Rows, web.UsageRow{Day: plot[i].name, ID: u.Key, Bot: usageName(u.Key, n), Cost: money(domain.MicrosFromNanos(u.CostNanos)),
				Steps: u.Steps, Input: u.InputTokens, Output: u.OutputTokens})
		}
	}
	return v.View(), nil
}

// usagePlus adds two sums. No part goes beyond the largest number.
func usagePlus(a, b domain.UsageSum) domain.UsageSum {
	tokens := domain.ModelUsage{InputTokens: a.InputTokens, OutputTokens: a.OutputTokens}.Plus(domain.ModelUsage{InputTokens: b.InputTokens, OutputTokens: b.OutputTokens})
	rest := domain.ModelUsage{InputTokens: a.Steps, OutputTokens: a.CostNanos}.Plus(domain.ModelUsage{InputTokens: b.Steps, OutputTokens: b.CostNanos})
	return domain.UsageSum{Key: b.Key, Steps: rest.InputTokens, CostNanos: rest.OutputTokens, InputTokens: tokens.InputTokens, OutputTokens: tokens.OutputTokens}
}

func (s *server) usageNames(ctx context.Context, p domain.Principal, totals map[string]domain.UsageSum) (names, error) {
	var c nameless
	for id := range totals {
		c.bot(domain.BotID(id))
	}
	return s.namesOf(ctx, p, c)
}

func usageName(id string, n names) string {
	if id == "" {
		return "Rules tried for every Bot"
	}
	return n.bot(domain.BotID(id))
}

// usageOrder lists sums, the most expensive first.
func usageOrder(sums map[string]domain.UsageSum) []domain.UsageSum {
	var out []domain.UsageSum
	for id, u := range sums {
		u.Key = id
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b domain.UsageSum) int {
		return cmp.Or(cmp.Compare(b.CostNanos, a.CostNanos), cmp.Compare(usageTokens(b), usageTokens(a)), cmp.Compare(a.Key, b.Key))
	})
	return out
}

func usageTokens(u domain.UsageSum) int64 {
	return domain.ModelUsage{InputTokens: u.InputTokens}.Plus(domain.ModelUsage{InputTokens: u.OutputTokens}).InputTokens
}

// usageRow is one row of the plot: the sums of a Bot, or of all that have no row.
type usageRow struct {
	id, name string
	all      domain.UsageSum
	days     []domain.UsageSum
}

func (s *server) plotUsage(v *web.Usage, plot []usageDay, totals map[string]domain.UsageSum, n names) {
	var all domain.UsageSum
	var rows []*usageRow
	for i, u := range usageOrder(totals) {
		all = usagePlus(all, u)
		row := &usageRow{id: u.Key, name: usageName(u.Key, n), days: make([]domain.UsageSum, len(plot))}
		if i >= plottedBots {
			row = rows[len(rows)-1]
			if i == plottedBots {
				row = &usageRow{name: "All other Bots", days: make([]domain.UsageSum, len(plot))}
				rows = append(rows, row)
			}
		} else {
			rows = append(rows, row)
		}
		row.all = usagePlus(row.all, u)
		for d := range plot {
			row.days[d] = usagePlus(row.days[d], plot[d].sums[u.Key])
		}
	}
	v.Tokens = all.CostNanos == 0
	v.Total = usageWords(all) + " in " + strconv.Itoa(len(plot)) + " days."
	size := func(u domain.UsageSum) int64 { return u.CostNanos }
	words := func(u domain.UsageSum) string { return money(domain.MicrosFromNanos(u.CostNanos)) }
	if v.Tokens {
		size = usageTokens
		words = func(u domain.UsageSum) string { return itoa(usageTokens(u)) + " tokens" }
	}
	var highest domain.UsageSum
	for _, row := range rows {
		for _, u := range row.days {
			if size(u) > size(highest) {
				highest = u
			}
		}
	}
	v.Highest = words(highest)
	for _, row := range rows {
		bot := web.UsageBot{ID: row.id, Name: row.name, Total: usageWords(row.all), Width: barStep * len(plot)}
		var told []string
		for d, u := range row.days {
			if size(u) == 0 {
				continue
			}
			height := max(2, int(100*float64(size(u))/float64(size(highest)))) // seen, however little
			label := plot[d].name + ": " + words(u)
			told = append(told, label)
			bot.Bars = append(bot.Bars, web.UsageBar{X: d*barStep + 1, Y: 100 - height, Height: height, Label: label})
		}
		bot.Label = "By day: " + cmp.Or(strings.Join(told, ", "), "nothing")
		v.Bots = append(v.Bots, bot)
	}
}

func usageWords(u domain.UsageSum) string {
	return fmt.Sprintf("%s, %s, %d tokens in and %d out", money(domain.MicrosFromNanos(u.CostNanos)), web.Plural(int(u.Steps), "step"), u.InputTokens, u.OutputTokens)
}
