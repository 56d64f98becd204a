package admin

import (
	"context"
	"fmt"
	"time"

	"footfall/db"
)

// OfApp is a row with the name of its app.
type OfApp[Row any] struct {
	App string
	Row Row
}

// Lines lists how many lines of access logs were counted, by server and day, for one app. If name is "", it lists them for all
// apps.
func (a *Admin) Lines(ctx context.Context, name string) ([]OfApp[LinesListRow], error) {
	return listEach(ctx, a, "counted lines", name, queries.LinesList)
}

// ForgetLines forgets that lines of access logs were counted, so that they can be counted again. server is the web server that
// wrote these lines; nil: all servers. from and to are the first and the last day, by the dates in the lines. ForgetLines
// returns the number of lines.
func (a *Admin) ForgetLines(ctx context.Context, name string, server *string, from, to int32) (forgotten int64, err error) {
	err = a.withApp(ctx, name, func(q queries, row *db.App) error {
		p := LinesForgetParams{AppID: row.ID, Server: server, FromHour: hourOf(from), ToHour: hourOf(to) + 23}
		if forgotten, err = q.LinesForget(ctx, p); err != nil || forgotten == 0 {
			return err
		}
		return q.note(ctx, name, "log", fmt.Sprintf("%d to %d", from, to), "")
	})
	return forgotten, wrap("forget lines of logs of app "+name, err)
}

// hourOf returns the first hour of a day, as the number of hours since 1970.
func hourOf(day int32) int32 {
	at := time.Date(int(day/10000), time.Month(day/100%100), int(day%100), 0, 0, 0, 0, time.UTC)
	return int32(at.Unix() / 3600) //nolint:gosec // some hundred thousand
}

// Queues lists how far the queues of an app were counted. If name is "", it lists the queues of all apps.
func (a *Admin) Queues(ctx context.Context, name string) ([]OfApp[QueuesListRow], error) {
	return listEach(ctx, a, "queues", name, queries.QueuesList)
}

func listEach[Row any](ctx context.Context, a *Admin, what, name string, query listing[Row]) (all []OfApp[Row], err error) {
	err = a.db.Read(ctx, func(shared *db.Queries) error {
		q := queries{Queries: New(shared.Tx()), shared: shared}
		apps, err := appsNamed(ctx, q, name)
		all = nil
		for _, app := range apps {
			rows, err := query(q, ctx, app.ID)
			if err != nil {
				return err
			}
			for _, row := range rows {
				all = append(all, OfApp[Row]{app.Name, row})
			}
		}
		return err
	})
	return all, wrap("list the "+what+" of apps", err)
}
