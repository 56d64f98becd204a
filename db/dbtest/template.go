package dbtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"footfall/db"
	"footfall/migrations"
)

// template returns the name of a database with every migration applied. Copying this database is much faster than
// applying the migrations.
func (s *server) template(ctx context.Context) (string, error) {
	s.templateOnce.Do(func() { s.templateName, s.templateErr = s.makeTemplate(ctx) })
	return s.templateName, s.templateErr
}

// makeTemplate makes the template, unless the server has a template with the same migrations. The template is made
// under another name and renamed when it is complete, so an existing template is complete.
func (s *server) makeTemplate(ctx context.Context) (string, error) {
	hash, err := hashOf(migrations.FS)
	if err != nil {
		return "", err
	}
	name, unfinished := "footfall_template_"+hash, "footfall_unfinished_"+hash

	// If other processes use the same server, one makes the template, and the others wait.
	lock, err := s.admin.Acquire(ctx)
	if err != nil {
		return "", err
	}
	defer lock.Release()
	if _, err := lock.Exec(ctx, "SELECT pg_advisory_lock(hashtext('footfall.dbtest'))"); err != nil {
		return "", err
	}
	defer unlock(lock)

	var exists bool
	err = lock.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&exists)
	if err != nil || exists {
		return name, err
	}
	if err := s.drop(ctx, unfinished); err != nil {
		return "", err
	}
	if err := s.create(ctx, unfinished, "template0"); err != nil {
		return "", err
	}
	if err := migrate(ctx, s.url(unfinished)); err != nil {
		return "", err
	}
	from, to := pgx.Identifier{unfinished}.Sanitize(), pgx.Identifier{name}.Sanitize()
	// Forbid connections to the template, because a database with connections cannot be copied.
	_, errClose := lock.Exec(ctx, "ALTER DATABASE "+from+" ALLOW_CONNECTIONS false")
	_, errRename := lock.Exec(ctx, "ALTER DATABASE "+from+" RENAME TO "+to)
	return name, errors.Join(errClose, errRename)
}

func unlock(lock *pgxpool.Conn) {
	if _, err := lock.Exec(context.Background(), "SELECT pg_advisory_unlock_all()"); err != nil {
		_ = lock.Conn().Close(context.Background())
	}
}

func migrate(ctx context.Context, url string) error {
	d, err := db.Open(ctx, url, db.Options{})
	if err != nil {
		return err
	}
	defer d.Close()
	_, err = d.MigrateUp(ctx)
	return err
}

// hashOf returns a short hash of every file's name and content.
func hashOf(files fs.FS) (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		fmt.Fprintf(sum, "%s %d\n%s", path, len(text), text)
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)[:8]), err
}
