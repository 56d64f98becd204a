package handler

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"footfall/admin"
	"footfall/intake/moves"
	"footfall/visit"
	"footfall/web"
)

// Limits for uploads. Larger files can be imported on the command line.
const (
	mostUploaded   = 256 << 20 // maximum number of bytes, both before and after decompression
	mostLines      = 2_000_000
	mostInMemory   = 8 << 20 // bytes; the rest of an upload is stored in temporary files
	uploadedWithin = 10 * time.Minute
)

// readUpload reads a form with files.
func readUpload(w http.ResponseWriter, r *http.Request) error {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(uploadedWithin)) // echo's response writer supports it
	r.Body = http.MaxBytesReader(w, r.Body, mostUploaded)
	if err := r.ParseMultipartForm(mostInMemory); err != nil {
		if here := (*fs.PathError)(nil); errors.As(err, &here) {
			return fmt.Errorf("keep an upload in a temporary file: %w", err)
		}
		return visit.Errorf(visit.Invalid, "file", "it could not be read, or has more than %d MB: import it with footfall history import",
			mostUploaded>>20)
	}
	_, _ = io.Copy(io.Discard, r.Body) // net/http detects that the caller has left only after the body was read to its end
	return nil
}

// importHistory imports the uploaded files. If the form's field try is set, it imports nothing and shows a preview.
func (p *settingsPage) importHistory() error {
	sent := p.c.Request().MultipartForm
	if sent == nil || len(sent.File["file"]) == 0 {
		return visit.Errorf(visit.Invalid, "file", "choose a file")
	}
	ctx, leave := context.WithCancel(p.slot)
	defer leave()
	h := &moves.History{Source: p.form.Get("from"), Skip: p.form.Get("skip") == "true", MostBytes: mostUploaded, MostLines: mostLines}
	into := admin.History{App: p.app, Site: strings.TrimSpace(p.form.Get("site")), Offsets: p.form.Get("offsets") == "true",
		DryRun: p.form.Get("try") == "true"}
	if into.DryRun { // a preview stops when its caller leaves
		defer context.AfterFunc(p.c.Request().Context(), leave)()
	}
	for _, header := range sent.File["file"] {
		file, err := header.Open()
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }() //nolint:gocritic // the import reads all files
		h.Files = append(h.Files, moves.File{Name: header.Filename, From: file})
	}
	done, err := h.Import(ctx, p.admin, into)
	if err != nil && !admin.IsBehind(err) {
		return err
	}
	if p.page.Said = p.translate("Imported. %s", h.Describe(&done, p.page.Words.Say)); into.DryRun {
		p.page.Said = p.translate("Nothing has been imported yet. %s", h.Describe(&done, p.page.Words.Say))
		s := web.Section{ID: "first", Title: "The first days", Columns: []string{"Day", "Page or site", "Page views", "Visits", "Visitors",
			"New"}}
		for _, d := range done.First {
			row := web.Row{Cells: []string{visit.DayText(d.DayID), visit.Shown(d.Uri)}}
			for _, n := range []int64{d.PageViews, d.Visits, d.Visitors, d.NewVisitors} {
				row.Cells = append(row.Cells, strings.Replace(strconv.FormatInt(n, 10), "-1", "–", 1))
			}
			s.Rows = append(s.Rows, row)
		}
		if len(s.Rows) > 0 { // an import that has only totals has no days
			p.shown = append(p.shown, s)
		}
		p.showTotals(done.Totals)
	}
	return err
}

// showTotals shows the first offsets that an import, or its removal, would change. An offset is a number that is added to a
// counted total.
func (p *settingsPage) showTotals(first []admin.OffsetsPutRow) {
	s := web.Section{ID: "totals", Title: "Totals", Columns: []string{"Page or site", "Before", "After"}}
	for _, o := range first {
		s.Rows = append(s.Rows, web.Row{Cells: []string{visit.Shown(o.Uri), fmt.Sprintf("hot %d, pv %d, uv %d", o.WasHot, o.WasPv, o.WasUv),
			fmt.Sprintf("hot %d, pv %d, uv %d", o.Hot, o.Pv, o.Uv)}})
	}
	if len(first) > 0 {
		p.shown = append(p.shown, s)
	}
}

// removeHistory removes an import. one is the number of the import. The page that asks for confirmation shows the numbers that
// would change.
func (p *settingsPage) removeHistory(one string) (then string, err error) {
	number, err := strconv.ParseInt(one, 10, 32)
	if err != nil {
		return "", visit.Errorf(visit.Invalid, "one", "%.64q is not a number", one)
	}
	if !p.confirmed("Remove it", "", visit.Textf("All days from this import will be removed. You can import the same files again.")) {
		done, err := p.admin.TakeBackHistory(extendDeadline(p.c), p.app, true, []int32{int32(number)})
		if p.showTotals(done.Totals); err != nil {
			p.confirmation = nil
		} else if len(p.shown) > 0 {
			p.confirmation.Columns, p.confirmation.Rows = p.shown[0].Columns, p.shown[0].Rows
		}
		return "", err
	}
	return p.donePath("removed"), p.admin.RunLong(extendDeadline(p.c), p.app, func(ctx context.Context, a *admin.Admin) error {
		_, err := a.RemoveHistory(ctx, p.app, int32(number))
		return err
	})
}

// history returns the section that lists the imports of an app, with a form to import more files.
func (p *settingsPage) history() (s web.Section, err error) {
	imports, err := p.admin.HistoryImports(p.c.Request().Context(), p.app)
	s = web.Section{ID: "history", Title: "History by day", Text: p.helpFor("history"),
		Columns: []string{"Number", "Counted by", "Hosts", "Days", "Files"}}
	for _, i := range imports {
		one := fmt.Sprint(i.ID)
		f := p.newForm("Remove …", "remove history", "", one)
		f.Of = one
		in := visit.Range{From: i.FirstDay, To: i.LastDay}
		s.Rows = append(s.Rows, web.Row{Cells: []string{one, visit.CountedBy(i.Source), i.Sites, fmt.Sprintf("%d %s", i.Days, in),
			strings.Join(i.Files, ", ")}, Forms: []web.Form{f}})
	}
	from := web.Field{Name: "from", Label: "Who counted", Kind: "select", Help: p.helpFor("history import --from")}
	for _, source := range moves.Sources() {
		shown := p.translate(visit.CountedBy(source))
		if !strings.EqualFold(shown, source) {
			shown += " (" + source + ")"
		}
		from.Choices = append(from.Choices, web.Choice{Value: source, Shown: shown})
	}
	f := p.newForm("Import", "import history", "", "", from,
		web.Field{Name: "file", Label: "Files", Kind: "file", Help: p.translate(p.service.helpFor("history import")+" Up to %d MB.",
			mostUploaded>>20)},
		web.Field{Name: "site", Label: "Host", Kind: "text", Optional: true, Help: p.helpFor("history import --site")},
		web.Field{Name: "offsets", Label: "Also add to the totals", Kind: "check", Help: p.helpFor("history import --offsets")},
		web.Field{Name: "skip", Label: "Leave out lines that cannot be read", Kind: "check", Help: p.helpFor("history import --skip")},
		web.Field{Name: "try", Label: "Try it first", Kind: "check", Help: p.helpFor("history import --dry-run")})
	f.Folded = "Import numbers from elsewhere"
	s.Forms = []web.Form{f}
	return s, err
}
