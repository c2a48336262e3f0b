//go:build linux

package main

// aim is what a figure is measured against.
type aim struct {
	workload string
	figure   string
	limit    float64
	atLeast  bool   // else it is the most that is meant
	label    string // what the figure is called beside its aim
}

// aims are meant for two cores that hold everything: load, servers and databases.
var aims = []aim{
	{approvalRounds, roundsPerSecond, 300, true, "rounds a second"},
	{approvalRounds, "CPU a round, servers", 5, false, "CPU a round"},
	{approvalRounds, "durable commits a round", 6, false, "durable commits a round"},
	{answerLatency, "answer to end of the Turn, p50", 5, false, "answer to end, p50"},
	{answerLatency, "answer to end of the Turn, p95", 12, false, "answer to end, p95"},
	{answerLatency, "answer to end of the Turn, p99", 25, false, "answer to end, p99"},
	{parkedTurns, "database a parked Turn", 6144, false, "database a parked Turn"},
	{parkedTurns, "CPU at rest, parked, all", 2, false, "CPU at rest beside parked Turns"},
	{parkedTurns, "start to the end of a round", 5, false, "start to the end of a round"},
	{releases, "all ended after", 30, false, "10,000 answered, all ended"},
	{expiries, "due to denied, p99", 60_000, false, "due to denied, p99"},
	{expiries, "answer to end meanwhile, p99", 250, false, "answer to end meanwhile, p99"},
	{givenWork, "root at its limit until all is paused", 1000, false, "limit of a tree's root, all paused"},
	{givenWork, "root let go on until all goes on", 1000, false, "root let go on, all goes on"},
	{givenWork, "root cancelled, in force for all", 1000, false, "root cancelled, in force"},
	{inboxPages, "first page, p99", 50, false, "inbox, first page, p99"},
	{inboxPages, "next page, p99", 50, false, "inbox, next page, p99"},
	{inboxPages, "new Request decided to its live event, p99", 200, false, "inbox, live event, p99"},
}

// aimOf gives the aim of a figure; nil when there is none.
func aimOf(workload, figure string) *aim {
	for i := range aims {
		if aims[i].workload == workload && aims[i].figure == figure {
			return &aims[i]
		}
	}
	return nil
}

// met reports whether a value is within the aim.
func (a *aim) met(value float64) bool {
	if a.atLeast {
		return value >= a.limit
	}
	return value <= a.limit
}

// share says how much of the aim is used up: 1 at it, less is better.
func (a *aim) share(value float64) float64 {
	if a.atLeast {
		return a.limit / value
	}
	return value / a.limit
}
