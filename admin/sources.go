package admin

import (
	"context"
	"time"

	"footfall/db"
)

// LogsOfApp are the logs that were imported for an app.
type LogsOfApp struct {
	App  string
	Logs []db.LogsListRow
}

// Logs lists the logs that were imported for an app, or for each one, where name is "".
func (a *Admin) Logs(ctx context.Context, name string) (list []LogsOfApp, err error) {
	err = a.db.Read(ctx, func(q *db.Queries) error {
		apps, err := appsNamed(ctx, q, name)
		list = nil
		for _, app := range apps {
			logs, err := q.LogsList(ctx, app.ID)
			if err != nil {
				return err
			}
			list = append(list, LogsOfApp{app.Name, logs})
		}
		return err
	})
	return list, wrap("list the logs of apps", err)
}

// Queue is how far a part of a queue was counted for an app.
type Queue struct {
	App, Source, Part string
	Next              int64
	Refused           int64 // messages that are kept
	Opened            time.Time
}

// Queues lists the queues that were counted for an app, or for each one, where name is "".
func (a *Admin) Queues(ctx context.Context, name string) (list []Queue, err error) {
	err = a.db.Read(ctx, func(q *db.Queries) error {
		apps, err := appsNamed(ctx, q, name)
		list = nil
		for _, app := range apps {
			rows, err := q.QueuesList(ctx, app.ID)
			if err != nil {
				return err
			}
			for _, r := range rows {
				list = append(list, Queue{app.Name, r.Source, r.Part, r.Next, r.Refused, r.UsedAt})
			}
		}
		return err
	})
	return list, wrap("list the queues of apps", err)
}

// appsNamed is the app of a name, or each one, where that is "".
func appsNamed(ctx context.Context, q *db.Queries, name string) ([]db.App, error) {
	if name == "" {
		return q.AppsList(ctx)
	}
	app, err := appOf(ctx, q, name)
	if err != nil {
		return nil, err
	}
	return []db.App{*app}, nil
}
