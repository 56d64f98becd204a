package admin

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/flate"

	"footfall/counter/app"
	"footfall/db"
	"footfall/visit"
)

const (
	longestManifest     = 16 << 20
	mostPacked          = 200     // maximum ratio of unpacked size to zip size
	alwaysAcceptedBytes = 1 << 30 // an export that unpacks to at most this many bytes is accepted at any ratio
)

// LoadApp adds an app from an export with visitors. as is the name of the new app, or "" for the name in the export. The app
// has the same numbers as in the export. unable is the reason why this instance cannot count visits for the app, or nil if it
// can.
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
	err = a.RunLong(ctx, m.App, func(ctx context.Context, a *Admin) error {
		if err := a.prepareDays(ctx, m); err != nil {
			return err
		}
		return a.inTx(ctx, func(q queries) error { return load(ctx, q, m, files) })
	})
	if db.Violates(err, "apps_name_is_unique") { // another command has added the app since the check above
		err = taken
	}
	if err := a.waitForChange(ctx, "load app "+m.App, err); err != nil {
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

// openExport reads the manifest of a zip, and finds its files.
func openExport(from io.ReaderAt, size int64) (m *Manifest, files map[string]*zip.File, err error) {
	refuse := func(format string, args ...any) (*Manifest, map[string]*zip.File, error) {
		return nil, nil, visit.Errorf(visit.Invalid, "", format, args...)
	}
	all, err := zip.NewReader(from, size)
	if err != nil {
		return refuse("it is not a complete zip file: %v", err)
	}
	all.RegisterDecompressor(zip.Deflate, flate.NewReader)
	files, unpacked := map[string]*zip.File{}, uint64(0)
	for _, file := range all.File {
		files[file.Name] = file
		unpacked += file.UncompressedSize64
	}
	if unpacked > alwaysAcceptedBytes && unpacked/mostPacked > uint64(size) { //nolint:gosec // the size of a file
		return refuse("it unpacks to more than %d times its size, so it is not an export", mostPacked)
	}
	m = &Manifest{}
	if files[manifestFile] == nil {
		return refuse("it is not an export of an app: it has no %s", manifestFile)
	}
	text, err := files[manifestFile].Open()
	if err == nil {
		err = json.NewDecoder(io.LimitReader(text, longestManifest)).Decode(m)
	}
	switch {
	case err != nil || m.Format < 1:
		return refuse("it is not an export of an app: its %s cannot be read", manifestFile)
	case m.Format > exportFormat:
		return refuse("a newer version of Footfall wrote it, in format %d: this version reads format %d", m.Format, exportFormat)
	case !m.Visitors:
		return refuse("it was exported without visitors: only an export made with app export --visitors can be loaded")
	}
	return m, files, nil
}

// prepareDays creates the partitions for the days in m.Kept. It closes the days in m.Closed that have ended by this database's
// clock.
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

// load copies all files of an export into the database, and adds the app.
func load(ctx context.Context, q queries, m *Manifest, files map[string]*zip.File) error {
	if err := errors.Join(q.EraseBegin(ctx), q.LoadBegin(ctx)); err != nil {
		return err
	}
	parts, err := q.TakeoutParts(ctx, 0)
	if err != nil {
		return err
	}
	place := func(file ExportedFile) int {
		return slices.IndexFunc(parts, func(p TakeoutPartsRow) bool { return p.Name == file.Name })
	}
	slices.SortFunc(m.Files, func(a, b ExportedFile) int { return cmp.Compare(place(a), place(b)) })
	l := loader{q: q, untrusted: true}
	for _, file := range m.Files {
		at := place(file)
		if at < 0 {
			return visit.Errorf(visit.Invalid, "", "this version of Footfall does not know the file %.64q, which a newer version wrote",
				file.Name+".csv")
		}
		if err := l.file(ctx, parts[at], file, files[file.Name+".csv"]); err != nil {
			return err
		}
	}
	if err := q.AppLoad(ctx, m.App); err != nil {
		return err
	}
	row, err := q.AppLock(ctx, m.App)
	if err != nil {
		return err
	}
	if err := app.CheckSites(row.Sites); err != nil {
		return err
	}
	return q.note(ctx, m.App, "app", "", "loaded from an export")
}

// loader copies the rows of an app from an export or from another database. The app's pages, sites and tags get new IDs.
type loader struct {
	q             queries
	untrusted     bool // the rows are from a file that anyone can change, so pages and sites are checked
	numbered      bool
	targets, tags idMap
	app           int32 // new id of a moved app; not used for an export, which has no column app_id
	logs          idMap // new ids of the log files of a moved app
}

// file copies the rows of a file in the zip. It returns an error if the file does not match the manifest.
func (l *loader) file(ctx context.Context, part TakeoutPartsRow, was ExportedFile, packed *zip.File) error {
	if packed == nil {
		return visit.Errorf(visit.Invalid, "", "%s.csv is missing", was.Name)
	}
	file, err := packed.Open()
	if err != nil {
		return visit.Errorf(visit.Invalid, "", "%s.csv cannot be unpacked: %v", was.Name, err)
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	rows, err := l.part(ctx, part, io.TeeReader(file, sum))
	if err != nil {
		return fmt.Errorf("%s.csv: %w", was.Name, err)
	}
	if rows != was.Rows || hex.EncodeToString(sum.Sum(nil)) != was.SHA256 {
		return visit.Errorf(visit.Invalid, "", "%s.csv was changed after the export: load the original zip file", was.Name)
	}
	return nil
}

// part copies the rows of one file of an export or, during a move, of one table. An export from an older Footfall may have
// fewer columns.
func (l *loader) part(ctx context.Context, part TakeoutPartsRow, from io.Reader) (rows int64, err error) {
	if !l.numbered && !slices.Contains(leadingFiles, part.Name) {
		if err := l.number(ctx); err != nil {
			return 0, err
		}
	}
	text := bufio.NewReaderSize(from, 1<<16)
	head, _ := text.Peek(1 << 12)
	names, _, _ := strings.Cut(string(head), "\n")
	columns := strings.Split(names, ",")
	for _, column := range columns {
		if !slices.Contains(part.Columns, column) {
			return 0, visit.Errorf(visit.Invalid, "",
				"%s.csv has a column %.64q that this version of Footfall does not know: a newer version wrote it", part.Name, column)
		}
	}
	statement, err := l.q.LoadCopy(ctx, part.Name, columns)
	if err != nil {
		return 0, err
	}
	r, w := io.Pipe()
	read := make(chan error, 1)
	go func() { // writes to the pipe from which CopyIn reads
		_, err := text.WriteTo(&rewriting{target: w, fields: l.rewrites(part.Name, columns)})
		_ = w.CloseWithError(err)
		read <- err
	}()
	rows, err = db.CopyIn(ctx, l.q.Tx(), statement, r)
	_ = r.CloseWithError(io.ErrClosedPipe)
	if bad := <-read; bad != nil && !errors.Is(bad, io.ErrClosedPipe) {
		err = visit.Errorf(visit.Invalid, "", "%s.csv: %v", part.Name, bad)
	}
	// Allocate the lists at once. There may be many pages and sites, and growing the lists would need several times the
	// memory.
	if part.Name == "targets" && err == nil {
		l.targets = idMap{old: make([]int64, 0, rows), newIDs: make([]int64, 0, rows), sites: make([]int64, 0, rows)}
	}
	return rows, err
}

// leadingFiles lists the files that are copied first, because the other files refer to the IDs in these files.
var leadingFiles = []string{"app", "targets", "tags"}

// portionOfNumbers is the maximum number of rows in one query. There may be too many pages and sites to read them at once.
const portionOfNumbers = 20_000

func (l *loader) number(ctx context.Context) error {
	l.numbered = true
	if err := l.q.LoadNumber(ctx); err != nil {
		return err
	}
	for n, tags := range map[*idMap]bool{&l.targets: false, &l.tags: true} {
		portion := LoadedNumbersParams{Tags: tags, After: -1, Portion: portionOfNumbers}
		for {
			rows, err := l.q.LoadedNumbers(ctx, portion)
			if err != nil {
				return err
			}
			for _, row := range rows {
				n.old, n.newIDs, n.sites = append(n.old, row.Old), append(n.newIDs, row.New), append(n.sites, row.Site)
				portion.After = row.Old
			}
			if len(rows) < portionOfNumbers {
				break
			}
		}
	}
	return nil
}

// rewrites returns, for each column of a file, the function that changes the column's fields, or nil.
func (l *loader) rewrites(name string, columns []string) []rewrite {
	all := make([]rewrite, len(columns))
	for i, column := range columns {
		switch {
		case l.untrusted && (column == "uri" || column == "site" && name != "targets"):
			all[i] = checkTarget
		case !l.numbered:
		case column == "target" && name == "days":
			all[i] = func(to, field []byte) ([]byte, error) {
				to, err := l.targets.rewrite(to, field)
				if err != nil {
					return nil, err
				}
				if site := l.targets.sites[l.targets.last]; site != 0 {
					return strconv.AppendInt(append(to, ','), site, 10), nil
				}
				return append(to, ','), nil
			}
		case column == "target":
			all[i] = l.targets.rewrite
		case column == "tag":
			all[i] = l.tags.rewrite
		case column == "tags":
			all[i] = l.tags.rewriteSet
		case column == "app_id":
			all[i] = func(to, _ []byte) ([]byte, error) { return strconv.AppendInt(to, int64(l.app), 10), nil }
		case column == "log_id", name == "logs" && column == "id":
			all[i] = l.logs.rewrite
		}
	}
	return all
}

// checkTarget copies the field of a page or a site, which may be empty. It returns an error if counting could not have stored
// this page or site.
func checkTarget(to, field []byte) ([]byte, error) {
	if len(field) == 0 {
		return to, nil
	}
	if err := visit.CheckStored(string(field)); err != nil {
		return nil, err
	}
	return append(append(append(to, '"'), field...), '"'), nil // quoted, because a URI may contain commas
}

// idMap maps old IDs to new IDs: newIDs[i] is the new ID for old[i]. The IDs in old are sorted. For pages and sites, sites[i]
// is the new ID of the page's site, or 0 for a site.
type idMap struct {
	old, newIDs, sites []int64
	last               int // index in old of the ID that was looked up last
}

func (n *idMap) rewrite(to, field []byte) ([]byte, error) {
	old, err := strconv.ParseInt(string(field), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%.64q is not a number", field)
	}
	if n.last >= len(n.old) || n.old[n.last] != old {
		at, there := slices.BinarySearch(n.old, old)
		if !there {
			return nil, fmt.Errorf("no target, tag or log has the number %d", old)
		}
		n.last = at
	}
	return strconv.AppendInt(to, n.newIDs[n.last], 10), nil
}

// rewriteSet replaces the IDs in a set like {1,2} by the new IDs. An empty field stays empty.
func (n *idMap) rewriteSet(to, field []byte) (_ []byte, err error) {
	list, is := bytes.CutPrefix(field, []byte("{"))
	if !is {
		return append(to, field...), nil
	}
	to = append(to, `"{`...)
	for i, old := range bytes.Split(bytes.TrimSuffix(list, []byte("}")), []byte(",")) {
		if i > 0 {
			to = append(to, ',')
		}
		if len(old) > 0 {
			if to, err = n.rewrite(to, old); err != nil {
				return nil, err
			}
		}
	}
	return append(to, `}"`...), nil
}
