package db

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"footfall/migrations"
)

// functionsAndViews is what MigrateUp calls the files of functions/ and report/.
const functionsAndViews = "functions and views"

// functionFiles are the texts of all functions and views in the order in which they are run, and
// what schema_files remembers of them.
func functionFiles() (texts []string, hash string, err error) {
	sum := sha256.New()
	for _, pattern := range []string{"functions/*.sql", "report/*.sql"} {
		paths, err := fs.Glob(migrations.FS, pattern)
		if err != nil {
			return nil, "", err
		}
		for _, path := range paths {
			text, err := fs.ReadFile(migrations.FS, path)
			if err != nil {
				return nil, "", err
			}
			fmt.Fprintf(sum, "%s %d\n%s", path, len(text), text)
			texts = append(texts, string(text))
		}
	}
	return texts, hex.EncodeToString(sum.Sum(nil)), nil
}

// functionsKey is the row of schema_files that stands for functionFiles.
const functionsKey = "functions"

// stepHash is what schema_files remembers of a step.
func stepHash(name string) (string, error) {
	text, err := fs.ReadFile(migrations.FS, name)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

// stepStore is goose's own table of versions. Besides, it notes the text of a step in the transaction
// that applies it.
type stepStore struct {
	database.Store
	names map[int64]string // by version
}

func newStepStore() (*stepStore, error) {
	store, err := database.NewStore(goose.DialectPostgres, goose.DefaultTablename)
	return &stepStore{store, map[int64]string{}}, err
}

// Insert notes that a step was applied.
func (s *stepStore) Insert(ctx context.Context, conn database.DBTxConn, req database.InsertRequest) error {
	if name, ok := s.names[req.Version]; ok { // version 0 is goose's own
		hash, err := stepHash(name)
		if err != nil {
			return err
		}
		if _, err := conn.ExecContext(ctx, StepNote, name, hash); err != nil {
			return fmt.Errorf("note the text of %s: %w", name, err)
		}
	}
	return s.Store.Insert(ctx, conn, req)
}

// checkSteps returns an error if the steps that made a database, up to a version, are not those of
// this program.
func checkSteps(ctx context.Context, q *Queries, steps []*goose.Source, version int64) error {
	files, err := schemaFiles(ctx, q)
	if err != nil {
		return err
	}
	for _, step := range steps {
		hash, err := stepHash(step.Path)
		if err != nil {
			return err
		}
		if step.Version <= version && files[step.Path] != hash {
			return fmt.Errorf("the tables were made by another commit of footfall, whose %s was a different one: "+
				"until a version is released, steps are changed in place, and no database is carried over; "+
				"use the footfall that made this one, or begin with an empty database (embedded: another folder for --data)", step.Path)
		}
	}
	return nil
}

// schemaFiles are the hashes of the files that made the database, by name; none where it does not
// remember any.
func schemaFiles(ctx context.Context, q *Queries) (map[string]string, error) {
	rows, err := q.SchemaFiles(ctx)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "42P01" { // no such table
		return nil, nil
	}
	files := map[string]string{}
	for _, row := range rows {
		files[row.Name] = row.Hash
	}
	return files, err
}

// makeFunctions drops and makes all functions and views, unless those that are there come from the
// same files. Nobody sees a moment without them, or without the rights to them.
func makeFunctions(ctx context.Context, conn *pgx.Conn) (made bool, err error) {
	texts, hash, err := functionFiles()
	if err != nil {
		return false, err
	}
	files, err := schemaFiles(ctx, New(conn))
	if err != nil || files[functionsKey] == hash {
		return false, err
	}
	return true, dropThen(ctx, conn, func(tx pgx.Tx) error {
		for _, text := range texts {
			if _, err := tx.Exec(ctx, text); err != nil {
				return err
			}
		}
		q := New(tx)
		if err := q.FunctionsNote(ctx, hash); err != nil {
			return err
		}
		_, err := q.RolesGrant(ctx)
		return err
	})
}

// dropThen drops all functions and views, and runs f in the same transaction. Where a report holds
// one of them, it lets go of those that it has, and of the reports that wait for them, and tries again.
func dropThen(ctx context.Context, conn *pgx.Conn, f func(tx pgx.Tx) error) error {
	for {
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			q := New(tx)
			if err := q.FunctionsBegin(ctx); err != nil {
				return err
			}
			if err := q.FunctionsDrop(ctx); err != nil {
				return err
			}
			return f(tx)
		})
		if FaultOf(err) != FaultBusy {
			return err
		}
		select {
		case <-time.After(dropAgainAfter):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// dropAgainAfter is how long reports that have waited are left alone.
const dropAgainAfter = 200 * time.Millisecond

// newestOf is the version of the last of some steps.
func newestOf(steps []*goose.Source) int64 {
	return slices.MaxFunc(steps, func(a, b *goose.Source) int { return int(a.Version - b.Version) }).Version
}
