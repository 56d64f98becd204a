package db

import (
	"context"
	"fmt"
	"io"
	"regexp"

	"github.com/jackc/pgx/v5"
)

// CopyOut runs the statement COPY … TO STDOUT, writes its output to w, and returns the number of rows.
func CopyOut(ctx context.Context, tx Tx, statement string, w io.Writer) (rows int64, err error) {
	tag, err := tx.(pgx.Tx).Conn().PgConn().CopyTo(ctx, w, statement)
	return tag.RowsAffected(), err
}

var lineOfCopy = regexp.MustCompile(`line \d+(, column \w+)?`)

// CopyIn runs the statement COPY … FROM STDIN with the input r, and returns the number of rows.
func CopyIn(ctx context.Context, tx Tx, statement string, r io.Reader) (rows int64, err error) {
	tag, err := tx.(pgx.Tx).Conn().PgConn().CopyFrom(ctx, r, statement)
	if line := lineOfCopy.FindString(serverError(err).Where); line != "" {
		err = fmt.Errorf("%s: %w", line, err)
	}
	return tag.RowsAffected(), err
}
