package admin

import (
	"context"

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
