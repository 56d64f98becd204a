package admin

import (
	"archive/zip"
	"bufio"
	"bytes"
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

// Manifest says what a zip is that has all of an app: it lies in it, behind the files.
type Manifest struct {
	Format     int       `json:"format"`
	App        string    `json:"app"`
	ExportedAt time.Time `json:"exported_at"`
	Visitors   bool      `json:"visitors"` // those who came are in it, too
	Kept       []int32   `json:"kept"`     // days of which there are rows of visits
	Closed     []int32   `json:"closed"`   // days that were over and summed up
	Files      []Taken   `json:"files"`
}

// Taken is a file of an export.
type Taken struct {
	Name   string `json:"name"`
	Rows   int64  `json:"rows"`
	SHA256 string `json:"sha256"`
}

const (
	exportFormat = 1 // rises when a file or a column is there that must not be left out
	manifestFile = "manifest.json"
	exportMemory = "64MB"
	// What takes part in a day by a tag is in two tables: tag_news has the last second or so.
	tagDaysPart = "tag_days"
)

// ExportApp writes all that an app has to a zip of CSV files, as it stood at one moment, while visits are
// counted. Only with visitors it says who came, by keyed hashes: such a zip can be loaded again.
func (a *Admin) ExportApp(ctx context.Context, name string, visitors bool, w io.Writer) (m *Manifest, err error) {
	snapshots, err := a.db.OpenSnapshots(ctx, exportMemory)
	if err != nil {
		return nil, err
	}
	defer snapshots.Close()
	err = snapshots.Take(ctx, func(tx db.Tx) (err error) {
		m, err = a.export(ctx, queries{Queries: New(tx), shared: db.New(tx)}, name, visitors, w)
		return err
	})
	return m, wrap("export app "+name, err)
}

func (a *Admin) export(ctx context.Context, q queries, name string, visitors bool, w io.Writer) (*Manifest, error) {
	row, err := appOf(ctx, q, name)
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
		if e.hash, err = a.hashOnTheWay(ctx, q, *row); err != nil {
			return nil, err
		}
	}
	days, err := q.TakeoutDays(ctx, row.ID)
	if err != nil {
		return nil, err
	}
	for _, d := range days {
		if d.Kept {
			e.Kept = append(e.Kept, d.Day)
		}
		if d.Closed {
			e.Closed = append(e.Closed, d.Day)
		}
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
		if err := e.write(ctx, row.ID, part); err != nil {
			return nil, fmt.Errorf("%s.csv: %w", part.Name, err)
		}
	}
	manifest, err := json.MarshalIndent(e.Manifest, "", "  ")
	if err != nil {
		return nil, err
	}
	for name, text := range map[string][]byte{"README.md": []byte(readme.String()), manifestFile: manifest} {
		file, err := e.create(name)
		if err == nil {
			_, err = file.Write(text)
		}
		if err != nil {
			return nil, err
		}
	}
	return &e.Manifest, e.zip.Close()
}

const readmeHead = `# %s

All that Footfall has of this app, as it stood at %s. Each file is CSV with a line of names, in UTF-8;
a value that is empty, without quotes, is not there. Days are numbers like 20190629, in the time zone of
the app. Lists are written as {a,b}. manifest.json says how many rows each file has, and its SHA-256.
`

// export is one that is being written.
type export struct {
	Manifest
	q    queries
	zip  *zip.Writer
	hash func(netip.Addr) netip.Addr // of addresses; nil: they are hashes, or left out
}

func (e *export) create(name string) (io.Writer, error) {
	return e.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: e.ExportedAt})
}

// write writes a file.
func (e *export) write(ctx context.Context, id int32, part TakeoutPartsRow) error {
	file, err := e.create(part.Name + ".csv")
	if err != nil {
		return err
	}
	sum := sha256.New()
	out := bufio.NewWriterSize(io.MultiWriter(file, sum), 1<<16)
	var to io.Writer = out
	if e.hash != nil && part.OfVisitors && part.Columns[0] == "visitor" {
		to = &hashing{to: out, hash: e.hash, header: true}
	}
	rows, err := db.CopyOut(ctx, e.q.Tx(), part.Reading, to)
	if err == nil && part.Name == tagDaysPart {
		var news int64
		news, err = e.writeTagNews(ctx, id, out)
		rows += news
	}
	if err := errors.Join(err, out.Flush()); err != nil {
		return err
	}
	e.Files = append(e.Files, Taken{part.Name, rows, hex.EncodeToString(sum.Sum(nil))})
	return nil
}

// Tx is what the queries are asked on.
func (q queries) Tx() db.Tx { return q.shared.Tx() }

// writeTagNews writes the tags of an app that batches have brought, and tag_days does not have yet.
func (e *export) writeTagNews(ctx context.Context, id int32, to io.Writer) (rows int64, err error) {
	news, err := e.q.TagNewsAll(ctx)
	if err != nil || len(news) == 0 {
		return 0, err
	}
	ids, err := e.q.TagIDs(ctx, id)
	if err != nil {
		return 0, err
	}
	ours, all := map[int32]bool{}, make([]db.TagNews, len(news))
	for _, id := range ids {
		ours[id] = true
	}
	for i, n := range news {
		all[i] = db.TagNews(n)
	}
	sums, err := db.SumTags(all)
	for i, tag := range sums.Tags {
		if ours[tag] {
			rows++
			fmt.Fprintf(to, "%d,%d,%d,%d,%d\n", sums.Pages[i], sums.Days[i], tag, sums.Pvs[i], sums.Newcomers[i])
		}
	}
	return rows, err
}

// hashOnTheWay returns what hashes the addresses of an app's visitors while they are written: those whom
// it will have then are told apart as those of an app with hashed visitors are.
func (a *Admin) hashOnTheWay(ctx context.Context, q queries, row db.App) (func(netip.Addr) netip.Addr, error) {
	if len(a.secret) == 0 {
		return nil, visit.Errorf(visit.Invalid, "secret-file", "an export has no addresses of visitors, but keyed hashes of them: "+
			"name the secret with which app %s goes on counting where it is loaded", row.Name)
	}
	row.Visitor, row.SecretID = app.ByHash, a.secret.ID()
	hashed, err := app.New(row, a.secret)
	if err != nil {
		return nil, err
	}
	return func(ip netip.Addr) netip.Addr {
		if ip == app.BadgeVisitor { // who is no address
			return ip
		}
		hash, _ := hashed.VisitorByAddress(a.secret, ip, tag.Agent{}, nil)
		return hash
	}, q.TakeoutSecret(ctx, hex.EncodeToString(row.SecretID))
}

// hashing puts the hash of an address in its place, which begins each line of a file but the header.
type hashing struct {
	to     *bufio.Writer
	hash   func(netip.Addr) netip.Addr
	header bool
	rest   []byte // of a line that has not ended yet
}

func (h *hashing) Write(text []byte) (int, error) {
	h.rest = append(h.rest, text...)
	for {
		line, rest, ended := bytes.Cut(h.rest, []byte("\n"))
		if !ended {
			return len(text), nil
		}
		if address, others, _ := bytes.Cut(line, []byte(",")); !h.header {
			ip, err := netip.ParseAddr(string(address))
			if err != nil {
				return 0, err
			}
			_, _ = h.to.WriteString(h.hash(ip).String()) // errors stay in to, here and below
			_ = h.to.WriteByte(',')
			line = others
		}
		h.header = false
		_, _ = h.to.Write(line)
		if err := h.to.WriteByte('\n'); err != nil {
			return 0, err
		}
		h.rest = append(h.rest[:0], rest...)
	}
}
