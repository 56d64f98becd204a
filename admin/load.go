package admin

import (
	"archive/zip"
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"footfall/counter/app"
	"footfall/db"
	"footfall/visit"
)

const (
	longestManifest = 16 << 20
	mostPacked      = 200     // times its size that a zip may unpack to
	anywayUnpacked  = 1 << 30 // bytes that any may unpack to
)

// LoadApp makes an app of what ExportApp has written with visitors: with its name, or another one. Its
// numbers are the same. unable says why nothing can be counted for it here; nil: it can.
func (a *Admin) LoadApp(ctx context.Context, from io.ReaderAt, size int64, as string) (m *Manifest, unable, err error) {
	m, files, err := openExport(from, size)
	if err != nil {
		return nil, nil, err
	}
	if as != "" {
		m.App = as
	}
	if err := app.CheckName(m.App); err != nil {
		return nil, nil, err
	}
	apps, err := a.Apps(ctx)
	if err != nil {
		return nil, nil, err
	}
	taken := visit.Errorf(visit.Invalid, "name", "there is an app %s already: load this one under another name with --as", m.App)
	if slices.ContainsFunc(apps, func(row db.App) bool { return row.Name == m.App }) {
		return nil, nil, taken
	}
	if err := a.prepareDays(ctx, m); err != nil {
		return nil, nil, wrap("load app "+m.App, err)
	}
	err = a.inTx(ctx, func(q queries) error { return load(ctx, q, m, files) })
	if db.Violates(err, "apps_name_is_unique") { // since a moment ago
		err = taken
	}
	if err := a.changed(ctx, "load app "+m.App, err); err != nil {
		return nil, nil, err
	}
	row, err := a.AppNamed(ctx, m.App)
	if err != nil {
		return nil, nil, err
	}
	loaded, err := app.New(row, a.secret)
	if err != nil {
		return nil, nil, err
	}
	return m, loaded.Fault, nil
}

// openExport reads what a zip is, and finds its files.
func openExport(from io.ReaderAt, size int64) (m *Manifest, files map[string]*zip.File, err error) {
	refuse := func(format string, args ...any) (*Manifest, map[string]*zip.File, error) {
		return nil, nil, visit.Errorf(visit.Invalid, "", format, args...)
	}
	all, err := zip.NewReader(from, size)
	if err != nil {
		return refuse("it is no zip, or not a whole one: %v", err)
	}
	files, unpacked := map[string]*zip.File{}, uint64(0)
	for _, file := range all.File {
		files[file.Name] = file
		unpacked += file.UncompressedSize64
	}
	if unpacked > anywayUnpacked && unpacked/mostPacked > uint64(size) { //nolint:gosec // of a file
		return refuse("it unpacks to more than %d times its size: no export does", mostPacked)
	}
	m = &Manifest{}
	if files[manifestFile] == nil {
		return refuse("it is no export of an app: it has no %s", manifestFile)
	}
	text, err := files[manifestFile].Open()
	if err == nil {
		err = json.NewDecoder(io.LimitReader(text, longestManifest)).Decode(m)
	}
	switch {
	case err != nil || m.Format < 1:
		return refuse("it is no export of an app: its %s cannot be read", manifestFile)
	case m.Format > exportFormat:
		return refuse("it was written by a newer Footfall, in format %d: this one reads %d", m.Format, exportFormat)
	case !m.Visitors:
		return refuse("it was exported without visitors, for other tools: only what app export --visitors writes can be loaded")
	}
	return m, files, nil
}

// prepareDays makes room for visits, and closes the days that were closed where they come from.
func (a *Admin) prepareDays(ctx context.Context, m *Manifest) error {
	for _, days := range [][]int32{m.Closed, m.Kept} {
		for _, day := range days {
			if _, err := visit.ParseDay(fmt.Sprint(day), 0); err != nil {
				return visit.Errorf(visit.Invalid, "", "%s: %v", manifestFile, err)
			}
		}
	}
	if len(m.Kept) > 0 {
		if _, err := a.db.MakeDays(ctx, m.Kept...); err != nil {
			return err
		}
	}
	var unclosed []int32
	err := a.db.Read(ctx, func(q *db.Queries) (err error) { unclosed, err = New(q.Tx()).DaysToClose(ctx, m.Closed); return err })
	for _, day := range unclosed {
		if err == nil {
			err = a.inTx(ctx, func(q queries) error { return errors.Join(q.EraseBegin(ctx), q.DayCloseNow(ctx, day)) })
		}
	}
	return err
}

// load copies all files, and makes an app of them.
func load(ctx context.Context, q queries, m *Manifest, files map[string]*zip.File) error {
	if err := errors.Join(q.EraseBegin(ctx), q.LoadBegin(ctx)); err != nil {
		return err
	}
	parts, err := q.TakeoutParts(ctx, 0)
	if err != nil {
		return err
	}
	for _, file := range m.Files {
		at := slices.IndexFunc(parts, func(p TakeoutPartsRow) bool { return p.Name == file.Name })
		if at < 0 {
			return visit.Errorf(visit.Invalid, "", "%.64q is no file that this Footfall knows: a newer one has written it", file.Name+".csv")
		}
		if err := loadFile(ctx, q, parts[at], file, files[file.Name+".csv"]); err != nil {
			return err
		}
	}
	if err := q.AppLoad(ctx, m.App); err != nil {
		return err
	}
	return q.note(ctx, m.App, "app", "", "loaded from an export")
}

// loadFile copies a file. One of an older Footfall may have fewer columns.
func loadFile(ctx context.Context, q queries, part TakeoutPartsRow, was Taken, packed *zip.File) error {
	if packed == nil {
		return visit.Errorf(visit.Invalid, "", "%s.csv is missing", was.Name)
	}
	file, err := packed.Open()
	if err != nil {
		return visit.Errorf(visit.Invalid, "", "%s.csv cannot be unpacked: %v", was.Name, err)
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	text := bufio.NewReaderSize(io.TeeReader(file, sum), 1<<16)
	head, _ := text.Peek(1 << 12)
	names, _, _ := strings.Cut(string(head), "\n")
	columns := strings.Split(names, ",")
	for _, column := range columns {
		if !slices.Contains(part.Columns, column) {
			return visit.Errorf(visit.Invalid, "", "%s.csv has a column %.64q that this Footfall does not know: a newer one has written it",
				was.Name, column)
		}
	}
	statement, err := q.LoadCopy(ctx, LoadCopyParams{Name: part.Name, Columns: columns})
	if err != nil {
		return err
	}
	rows, err := db.CopyIn(ctx, q.Tx(), statement, text)
	if err != nil {
		return fmt.Errorf("%s.csv: %w", was.Name, err)
	}
	if rows != was.Rows || hex.EncodeToString(sum.Sum(nil)) != was.SHA256 {
		return visit.Errorf(visit.Invalid, "", "%s.csv is not as it was written: load the zip as the export has left it", was.Name)
	}
	return nil
}
