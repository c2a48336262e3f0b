//go:build linux

package main

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"time"
)

// reading is what all counters show at one moment.
type reading struct {
	at       time.Time
	cpu      []time.Duration // of each watched process
	load     time.Duration   // CPU of this program
	host     time.Duration   // CPU of the whole machine
	commits  int64           // transaction IDs given out
	walBytes int64
	walSyncs int64
	commands int64 // of Redis
}

// read reads all counters.
func (s *subject) read(ctx context.Context) (r reading, err error) {
	r.at, r.load, r.host = time.Now(), ownCPU(), hostBusy()
	for _, w := range s.watched {
		used, err := cpuOf(w.pid)
		if err != nil {
			return r, fmt.Errorf("%s cannot be watched: %w", w.name, err)
		}
		r.cpu = append(r.cpu, used)
	}
	if s.database == nil {
		return r, nil
	}
	// Only what writes gets a transaction ID, so their difference is the number of
	// durable commits.
	err = s.database.QueryRow(ctx, `SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
		(pg_current_wal_insert_lsn() - '0/0')::bigint, wal_sync FROM pg_stat_wal`).Scan(&r.commits, &r.walBytes, &r.walSyncs)
	if err != nil {
		return r, err
	}
	info, err := s.redisInfo(ctx, "stats")
	if err != nil {
		return r, err
	}
	r.commands, err = strconv.ParseInt(info["total_commands_processed"], 10, 64)
	return r, err
}

// busy gives the CPU time of all watched processes between two readings.
func busy(before, after reading) (sum time.Duration) {
	for i := range after.cpu {
		sum += after.cpu[i] - before.cpu[i]
	}
	return sum
}

// keepCosts adds what each round cost between two readings.
func (s *subject) keepCosts(to *section, before, after reading, rounds int64) {
	n := float64(rounds)
	to.add("CPU a round, servers", "ms", milliseconds(busy(before, after))/n)
	for i, w := range s.watched {
		to.add("CPU a round, "+w.name, "ms", milliseconds(after.cpu[i]-before.cpu[i])/n)
	}
	to.add("CPU a round, this load", "ms", milliseconds(after.load-before.load)/n)
	if s.database != nil {
		to.add("durable commits a round", "", float64(after.commits-before.commits)/n)
		to.add("WAL a round", "KiB", float64(after.walBytes-before.walBytes)/1024/n)
		to.add("WAL syncs a round", "", float64(after.walSyncs-before.walSyncs)/n)
		to.add("Redis commands a round", "", float64(after.commands-before.commands)/n)
	}
	s.keepNoise(to, before, after)
}

// keepNoise adds how much of the machine was busy with something else, and the load
// of the last minute, which holds both.
func (s *subject) keepNoise(to *section, before, after reading) {
	all := after.at.Sub(before.at) * time.Duration(runtime.NumCPU())
	others := after.host - before.host - busy(before, after) - (after.load - before.load)
	to.add("machine busy with others", "%", max(0, 100*float64(others)/float64(all)))
	to.add("load average", "", loadAverage())
}

// keepIdle adds the CPU of each process between two readings at rest.
func (s *subject) keepIdle(to *section, when string, before, after reading) {
	length := float64(after.at.Sub(before.at))
	to.add("CPU at rest, "+when+", all", "% of a core", 100*float64(busy(before, after))/length)
	for i, w := range s.watched {
		to.add("CPU at rest, "+when+", "+w.name, "% of a core", 100*float64(after.cpu[i]-before.cpu[i])/length)
	}
}
