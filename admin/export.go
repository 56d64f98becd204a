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
	"net/netip"
	"strings"
	"time"

	"github.com/klauspost/compress/flate"

	"footfall/counter/app"
	"footfall/db"
	"footfall/visit"
	"footfall/visit/tag"
)

// Manifest describes an export. It is the last file in the zip.
type Manifest struct {
	Format     int            `json:"format"`
	App        string         `json:"app"`
	ExportedAt time.Time      `json:"exported_at"`
	Visitors   bool           `json:"visitors"` // whether the export contains the visitors
	Kept       []int32        `json:"kept"`     // days that have visit rows
	Closed     []int32        `json:"closed"`   // closed days: days that have ended, with their final sums
	Files      []ExportedFile `json:"files"`
}

// ExportedFile is a file of an export.
type ExportedFile struct {
	Name   string `json:"name"`
	Rows   int64  `json:"rows"`
	SHA256 string `json:"sha256"`
}

const (
	exportFormat = 1 // increment it if a file or column is added that older versions of Footfall must not ignore
	manifestFile = "manifest.json"
	exportMemory = "64MB"
)

// ExportApp writes all data of an app to a zip of CSV files, as of one moment. Counting continues in the meantime. An export
// with visitors contains keyed hashes of their addresses. Only an export with visitors can be loaded again.
func (a *Admin) ExportApp(ctx context.Context, name string, visitors bool, w io.Writer) (m *Manifest, err error) {
	err = a.RunLong(ctx, name, func(ctx context.Context, a *Admin) error {
		snapshots, err := a.db.OpenSnapshots(ctx, exportMemory)
		if err != nil {
			return err
		}
		defer snapshots.Close()
		return snapshots.Take(ctx, func(tx db.Tx) (err error) {
			m, err = a.export(ctx, queries{Queries: New(tx), shared: db.New(tx)}, name, visitors, w)
			return err
		})
	})
	return m, wrap("export app "+name, err)
}

func (a *Admin) export(ctx context.Context, q queries, name string, visitors bool, w io.Writer) (*Manifest, error) {
	row, err := findApp(ctx, q, name)
	if err != nil {
		return nil, err
	}
	if row.DeletedAt != nil {
		return nil, errBeingDeleted
	}
	e := export{q: q, zip: zip.NewWriter(w)}
	e.Manifest = Manifest{Format: exportFormat, App: name, ExportedAt: time.Now().UTC(), Visitors: visitors}
	e.zip.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
	if visitors && row.Visitor == app.ByAddress {
		if e.hash, err = a.newAddressHasher(ctx, q, *row); err != nil {
			return nil, err
		}
	}
	if err := e.addDays(ctx, q, row.ID); err != nil {
		return nil, err
	}
	if err := passTagNews(ctx, q); err != nil {
		return nil, err
	}
	parts, err := q.TakeoutParts(ctx, row.ID)
	if err != nil {
		return nil, err
	}
	readme := strings.Builder{}
	fmt.Fprintf(&readme, readmeHead, name, e.ExportedAt.Format(time.RFC3339))
	for _, part := range parts {
		if part.OfVisitors && !visitors {
			continue
		}
		fmt.Fprintf(&readme, "\n## %s.csv\n\n%s\n\n    %s\n", part.Name, part.About, strings.Join(part.Columns, ","))
		if err := e.write(ctx, part); err != nil {
			return nil, fmt.Errorf("%s.csv: %w", part.Name, err)
		}
	}
	manifest, err := json.MarshalIndent(e.Manifest, "", "  ")
	if err != nil {
		return nil, err
	}
	for _, last := range []struct{ name, text string }{{"README.md", readme.String()}, {manifestFile, string(manifest)}} {
		file, err := e.create(last.name)
		if err == nil {
			_, err = io.WriteString(file, last.text)
		}
		if err != nil {
			return nil, err
		}
	}
	return &e.Manifest, e.zip.Close()
}

func (m *Manifest) addDays(ctx context.Context, q queries, id int32) error {
	days, err := q.TakeoutDays(ctx, id)
	for _, d := range days {
		if d.Kept {
			m.Kept = append(m.Kept, d.Day)
		}
		if d.Closed {
			m.Closed = append(m.Closed, d.Day)
		}
	}
	return err
}

const readmeHead = `# %s

All data that Footfall stores about this app, as of %s. Each file is CSV in UTF-8 with a header line.
An empty field without quotes means that there is no value. Days are numbers like 20190629, in the time
zone of the app. Lists are written as {a,b}. manifest.json has the number of rows and the SHA-256 of each file.
`

// export is an export in progress.
type export struct {
	Manifest
	q    queries
	zip  *zip.Writer
	hash rewrite // replaces visitors' addresses by hashes; nil: the export contains no addresses
}

func (e *export) create(name string) (io.Writer, error) {
	return e.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: e.ExportedAt})
}

func (e *export) write(ctx context.Context, part TakeoutPartsRow) error {
	file, err := e.create(part.Name + ".csv")
	if err != nil {
		return err
	}
	sum := sha256.New()
	out := bufio.NewWriterSize(io.MultiWriter(file, sum), 1<<16)
	var to io.Writer = out
	if e.hash != nil && part.OfVisitors && part.Columns[0] == "visitor" {
		to = &rewriting{target: out, fields: []rewrite{e.hash}}
	}
	rows, err := db.CopyOut(ctx, e.q.Tx(), part.Reading, to)
	if err := errors.Join(err, out.Flush()); err != nil {
		return err
	}
	e.Files = append(e.Files, ExportedFile{part.Name, rows, hex.EncodeToString(sum.Sum(nil))})
	return nil
}

// Tx returns the transaction of the queries.
func (q queries) Tx() db.Tx { return q.shared.Tx() }

// passTagNews passes recently counted tags to the view takeout_tag_days. They are still in the table tag_news, and are not yet
// added to tag_days. passTagNews passes the tags of all apps, because the export selects the rows of its app from the view.
func passTagNews(ctx context.Context, q queries) error {
	brought, err := q.TagNewsAll(ctx)
	if err != nil {
		return err
	}
	all := make([]db.TagNews, len(brought))
	for i, n := range brought {
		all[i] = db.TagNews(n)
	}
	sums, err := db.SumTags(all)
	if err != nil {
		return err
	}
	rows := make([]map[string]any, len(sums.Tags))
	for i := range rows {
		rows[i] = map[string]any{
			"page_id": sums.Pages[i], "day_id": sums.Days[i], "tag_id": sums.Tags[i], "pv": sums.Pvs[i], "newcomers": sums.Newcomers[i],
		}
	}
	text, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	return q.TakeoutNews(ctx, string(text))
}

// newAddressHasher returns a function that hashes the visitors' addresses during an export, in the same way as for an app that
// stores hashes.
func (a *Admin) newAddressHasher(ctx context.Context, q queries, row db.App) (rewrite, error) {
	if len(a.secret) == 0 {
		return nil, visit.Errorf(visit.Invalid, "secret-file", "an export has keyed hashes of visitors instead of their addresses: "+
			"name the secret with which app %s will count after it is loaded", row.Name)
	}
	row.Visitor, row.SecretID = app.ByHash, a.secret.ID()
	hashed, err := app.New(row, a.secret)
	if err != nil {
		return nil, err
	}
	return func(to, address []byte) ([]byte, error) {
		ip, err := netip.ParseAddr(string(address))
		if err != nil {
			return nil, err
		}
		if ip != app.BadgeVisitor { // BadgeVisitor is not an address: it is the one visitor for all visits that badges count
			ip, _ = hashed.VisitorByAddress(a.secret, ip, tag.Agent{}, nil)
		}
		return ip.AppendTo(to), nil
	}, q.TakeoutSecret(ctx, hex.EncodeToString(row.SecretID))
}
