//go:build linux

package main

import (
	"context"
	"fmt"
)

// sizes gives the bytes of each table with its indexes and texts beside it.
func (s *subject) sizes(ctx context.Context) (map[string]int64, error) {
	rows, err := s.database.Query(ctx, "SELECT relname, pg_total_relation_size(oid) FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	sizes := map[string]int64{}
	for rows.Next() {
		var name string
		var size int64
		if err := rows.Scan(&name, &size); err != nil {
			return nil, err
		}
		sizes[name] = size
	}
	return sizes, rows.Err()
}

// keepSizes lists by how much each table has grown for each of n.
func (to *section) keepSizes(before, after map[string]int64, n float64) {
	table := listing{Name: "bytes of the database for each, by table with its indexes"}
	for _, name := range sortedKeys(after) {
		if grown := after[name] - before[name]; grown > 0 {
			table.Lines = append(table.Lines, fmt.Sprintf("%8.0f  %s", float64(grown)/n, name))
		}
	}
	to.Tables = append(to.Tables, table)
}
