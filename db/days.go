package db

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// LastDays returns the last day on which each site was counted, by site id.
func (d *DB) LastDays(ctx context.Context, sites []int64) (map[int64]int32, error) {
	rows, err := New(d.writers).SitesLastDays(ctx, sites)
	if err != nil {
		return nil, fmt.Errorf("read the last days of sites: %w", err)
	}
	last := make(map[int64]int32, len(rows))
	for _, row := range rows {
		last[row.Site] = row.Day
	}
	return last, nil
}

// MayBeLate reports whether one of the visits may be late: its day is closed, or its site was already counted on a
// later day. The parameters describe the visits: visit i is to the site sites[i] on the day days[i].
func (d *DB) MayBeLate(ctx context.Context, sites []int64, days []int32) (late bool, err error) {
	err = d.readForBatch(ctx, "check whether visits are late", func(q *Queries) (err error) {
		late, err = q.PastDaysAreLate(ctx, days, sites)
		return err
	})
	return late, err
}

// FirstDay returns the first day for which an app accepts visits, or 0 if it accepts any day.
func (d *DB) FirstDay(ctx context.Context, app int32) (day int32, err error) {
	err = withRetry(ctx, d.writers, func(conn *pgxpool.Conn) (err error) { day, err = New(conn).FirstPossibleDay(ctx, app); return err })
	return day, err
}

// MakeDays creates the missing partitions of the table visits for these days, and returns the days of the new
// partitions. It also makes every session read the list of partitions again, because a session may not have noticed a
// partition that already existed.
func (d *DB) MakeDays(ctx context.Context, days ...int32) (made []int32, err error) {
	err = d.Read(ctx, func(q *Queries) (err error) {
		made = nil
		for _, day := range days {
			isNew, makeErr := q.VisitsDayMake(ctx, day)
			if makeErr != nil {
				err = fmt.Errorf("create the partition of day %d: %w", day, makeErr)
				break
			}
			if isNew {
				made = append(made, day)
			}
		}
		return errors.Join(err, q.VisitsDaysAnnounce(ctx))
	})
	return made, err
}
