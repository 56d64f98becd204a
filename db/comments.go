package db

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"

	"footfall/migrations"
)

// commentOn matches an SQL statement of migrations.Comments. Its groups are the table, the column (empty for a comment
// on the table), and the text.
var commentOn = regexp.MustCompile(`(?m)^COMMENT ON (?:TABLE|COLUMN) +(\w+)(?:\.(\w+))? +IS '((?:[^'\n]|'')*)';$`)

// setComments writes the comments of migrations.Comments to the tables and columns, unless a newer program has
// migrated the database. A comment needs a lock on its table that blocks neither visits nor reports. So setComments
// may wait longer for a lock than a migration step does. It waits long enough for an autovacuum of the table, which
// gives way after a second. If a table is locked for longer, it keeps its old comments until the next start.
func (d *DB) setComments(ctx context.Context, conn *pgx.Conn) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("set the comments of tables: %w", err)
		}
	}()
	q := New(conn)
	_, hash := functionFiles()
	files, err := schemaFiles(ctx, q)
	if err != nil || files[functionsKey] != hash {
		return err
	}
	var all CommentsOutdatedParams
	statements := commentOn.FindAllStringSubmatch(migrations.Comments, -1)
	for _, s := range statements {
		all.Tables, all.Columns = append(all.Tables, s[1]), append(all.Columns, s[2])
		all.Texts = append(all.Texts, strings.ReplaceAll(s[3], "''", "'"))
	}
	outdated, err := q.CommentsOutdated(ctx, all)
	if err != nil {
		return err
	}
	byTable, tables := map[string]string{}, []string(nil)
	for _, i := range outdated {
		table := statements[i][1]
		if byTable[table] == "" {
			tables = append(tables, table)
		}
		byTable[table] += statements[i][0] + "\n"
	}
	for _, table := range tables {
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if err := New(tx).CommentsWait(ctx); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, byTable[table])
			return err
		})
		if FaultOf(err) == FaultBusy {
			d.options.Log.Warn("a table is locked, so its comments are updated at the next start", "table", table)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}
