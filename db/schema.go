package db

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"footfall/migrations"
)

// functionsAndViews is the name under which MigrateUp reports the files of functions/ and report/.
const functionsAndViews = "functions and views"

// functionFiles returns the SQL texts of all functions and views in the order of execution, and their version. The
// version is a number, which never falls, and a hash, like "1 6c0d…". The hash also covers the comments of tables.
func functionFiles() (texts []string, hash string) {
	sum := sha256.New()
	for _, pattern := range []string{"functions/*.sql", "report/*.sql"} {
		paths, _ := fs.Glob(migrations.FS, pattern) // fails only for an invalid pattern
		for _, path := range paths {
			text, _ := fs.ReadFile(migrations.FS, path) // the file is embedded
			fmt.Fprintf(sum, "%s %d\n%s", path, len(text), text)
			texts = append(texts, string(text))
		}
	}
	// MigrateUp replaces these texts together with the functions, so the hash includes them.
	fmt.Fprint(sum, migrations.Cell, migrations.CellNodes, migrations.Comments)
	steps, _ := fs.Glob(migrations.FS, "*.sql")
	// A new step raises the number, too, because a cell's views must be created again to get new columns.
	return texts, fmt.Sprintf("%d %x", len(steps)+migrations.Functions, sum.Sum(nil))
}

// mayStay reports whether the present functions and views work with this program. present and needed are versions
// as returned by functionFiles. Newer functions may stay, too, because they also work with older programs.
func mayStay(present, needed string) bool {
	number := func(hash string) int {
		digits, _, _ := strings.Cut(hash, " ")
		n, err := strconv.Atoi(digits)
		if err != nil {
			return 0
		}
		return n
	}
	return present == needed || number(present) > number(needed)
}

// functionsKey is the name of the row in schema_files that stores the version from functionFiles.
const functionsKey = "functions"

func stepHash(name string) (string, error) {
	text, err := fs.ReadFile(migrations.FS, name)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

// stepStore gives goose access to its table of applied steps. It also writes the hash of each step's text to
// schema_files, in the transaction that applies the step.
type stepStore struct {
	database.Store
	names map[int64]string // by version
}

// Insert records an applied step and the hash of its text.
func (s *stepStore) Insert(ctx context.Context, conn database.DBTxConn, req database.InsertRequest) error {
	if name, ok := s.names[req.Version]; ok { // there is no step for version 0, which goose inserts
		hash, err := stepHash(name)
		if err != nil {
			return err
		}
		if _, err := conn.ExecContext(ctx, StepNote, name, hash); err != nil {
			return fmt.Errorf("record the hash of %s: %w", name, err)
		}
	}
	return s.Store.Insert(ctx, conn, req)
}

// checkSteps returns an error if a step up to this version was applied with a text that differs from the step's text in
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
			return fmt.Errorf("the tables were created by another commit of footfall, whose %s is different: "+
				"only tables of a released version can be upgraded; "+
				"use the footfall that created them, or start with an empty database (embedded: another folder for --data)", step.Path)
		}
	}
	return nil
}

// schemaFiles returns the stored hashes of the files from which the database was made, by file name. The map is nil
// if the table schema_files is missing.
func schemaFiles(ctx context.Context, q *Queries) (map[string]string, error) {
	rows, err := q.SchemaFiles(ctx)
	if serverError(err).Code == "42P01" { // no such table
		return nil, nil
	}
	files := map[string]string{}
	for _, row := range rows {
		files[row.Name] = row.Hash
	}
	return files, err
}

// makeFunctions replaces all functions and views, unless mayStay accepts the present ones. One transaction drops the
// old ones, creates the new ones and grants the rights to them, so that no session ever finds them missing.
func (d *DB) makeFunctions(ctx context.Context, conn *pgx.Conn) (made bool, err error) {
	texts, hash := functionFiles()
	files, err := schemaFiles(ctx, New(conn))
	if err != nil || mayStay(files[functionsKey], hash) {
		return false, err
	}
	return true, d.dropThen(ctx, conn, func(tx pgx.Tx) error {
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

// dropThen drops all functions and views, and runs f in the same transaction. If a running report uses one of them,
// dropThen rolls back and tries again later, so that other reports need not wait.
func (d *DB) dropThen(ctx context.Context, conn *pgx.Conn, f func(tx pgx.Tx) error) error {
	return d.untilLocked(ctx, functionsAndViews, func() error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			q := New(tx)
			if err := q.FunctionsBegin(ctx); err != nil {
				return err
			}
			if err := q.FunctionsDrop(ctx); err != nil {
				return err
			}
			return f(tx)
		})
	})
}

func newestOf(steps []*goose.Source) int64 {
	return slices.MaxFunc(steps, func(a, b *goose.Source) int { return int(a.Version - b.Version) }).Version
}
