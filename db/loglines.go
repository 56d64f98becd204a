package db

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// LogLine is a line of an access log that a batch records as counted.
type LogLine struct {
	Hour *LogHour // nil if the visit is not from a log
	Hash uint64
	At   int64 // seconds since 1970
}

// LogHour identifies an hour of an app's access logs. Version is the state of this hour when an import decided which of
// its lines count.
type LogHour struct {
	App    int32
	Server string
	Hour   int32
	// Version adds up the hour's elements of log_hours.versions, one for each server whose lines the import compared.
	// Package record adds one to Version for each line of this import that was committed. If the sum in the database
	// differs from Version, the database refuses the batch with FaultMoved.
	Version int64
}

// queueLines queues the statement that records the lines of a batch. All lines must be of one app and server.
func queueLines(q *pgx.Batch, lines []LogLine) {
	if len(lines) == 0 {
		return
	}
	lines = slices.Clone(lines)
	slices.SortStableFunc(lines, func(a, b LogLine) int { return int(a.Hour.Hour) - int(b.Hour.Hour) })
	p := LinesCountParams{AppID: lines[0].Hour.App, Server: lines[0].Hour.Server}
	for i, l := range lines {
		at := time.Unix(l.At, 0)
		if i == 0 || l.Hour.Hour != lines[i-1].Hour.Hour {
			p.Hours, p.Expected = append(p.Hours, l.Hour.Hour), append(p.Expected, l.Hour.Version)
			p.Latest, p.Hashes = append(p.Latest, at), append(p.Hashes, nil)
		}
		last := len(p.Hours) - 1
		if at.After(p.Latest[last]) {
			p.Latest[last] = at
		}
		p.Hashes[last] = binary.BigEndian.AppendUint64(p.Hashes[last], l.Hash)
	}
	q.Queue(LinesCount, p.AppID, p.Server, p.Hours, p.Expected, p.Latest, p.Hashes)
}
