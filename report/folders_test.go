package report_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
	"footfall/report"
	"footfall/visit"
)

// folderOf is the folder of a path, found letter by letter.
func folderOf(path string) string {
	folder, levels := "/", 0
	for i := 1; i < len(path)-1 && !strings.ContainsRune("?#", rune(path[i])); i++ {
		if path[i] == '/' && levels < 7 {
			levels++
			if !strings.ContainsRune("/?#", rune(path[i+1])) {
				folder = path[:i+1]
			}
		}
	}
	if len(folder) > 250 {
		return "/"
	}
	return folder
}

func TestFolders(t *testing.T) {
	t.Parallel()
	r := newReading(t)
	random := rand.New(rand.NewPCG(1, 2))
	paths := []string{"/", "//", "/a", "/a/", "/a/b/c?q=/x/y", "/#/a/b", "/a//b", "/(deleted)", "/a/" + strings.Repeat("l", 260) + "/b", "/1/2/3/4/5/6/7/8/9", "/1/2/3/4/5/6/7/8/", "/it's/100%25/x"}
	for range 150 {
		path := ""
		for range 1 + random.IntN(4) {
			path += "/" + []string{"a", "b", "docs", "é", fmt.Sprint(random.IntN(40))}[random.IntN(5)]
		}
		paths = append(paths, path+[]string{"", "", "/", "?p=1"}[random.IntN(4)])
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	r.exec(t, `
		INSERT INTO pages (app_id, uri) VALUES (1, 'a.example'), (1, 'b.example');
		INSERT INTO pages (app_id, site_id, uri) VALUES (1, 2, 'b.example/a/b');
		INSERT INTO counters (page_id) VALUES (1), (2), (3)`)
	type counted struct{ day, pv, hot int64 }
	sums := map[string][]counted{}
	for i, path := range paths {
		r.exec(t, `INSERT INTO pages (app_id, site_id, uri) VALUES (1, 1, 'a.example' || $1)`, path)
		r.exec(t, `INSERT INTO counters (page_id, hot, pv) VALUES ($1, 9, 9)`, 4+i)
		require.Equal(t, folderOf(path), one[string](t, r, `SELECT folder FROM pages WHERE id = $1`, 4+i), path)
		for range random.IntN(6) {
			c := counted{day: 20190601 + random.Int64N(10), pv: 1 + random.Int64N(20)}
			c.hot = c.pv + random.Int64N(5)
			if !slices.ContainsFunc(sums[path], func(o counted) bool { return o.day == c.day }) {
				sums[path] = append(sums[path], c)
				r.exec(t, `INSERT INTO days (page_id, site_id, day_id, hot, pv, new_visitors) VALUES ($1, 1, $2, $3, $4, 0)`, 4+i, c.day, c.hot, c.pv)
			}
		}
	}
	r.exec(t, `INSERT INTO days (page_id, day_id, hot, pv, new_visitors) SELECT 1, day_id, sum(hot), sum(pv), 0 FROM days GROUP BY day_id`)
	r.exec(t, `INSERT INTO days (page_id, site_id, day_id, hot, pv, new_visitors) VALUES (3, 2, 20190603, 7, 7, 7), (2, NULL, 20190603, 7, 7, 7)`)
	r.exec(t, `INSERT INTO closed_days (day_id) SELECT 20190600 + d FROM generate_series(1, 8) AS d; SELECT make_tops()`)

	in := visit.Range{From: 20190604, To: 20190609}
	want := func(folder string, before int) (rows []report.InFolder) {
		found := map[string]report.InFolder{}
		for path, days := range sums {
			at := folderOf(path)
			rest, below := strings.CutPrefix(at, folder)
			if !below {
				continue
			}
			row := report.InFolder{Path: path}
			if rest != "" {
				first, _, _ := strings.Cut(rest, "/")
				row = report.InFolder{Path: folder + first + "/", IsFolder: true}
			}
			key := fmt.Sprint(row.Path, row.IsFolder)
			if o, is := found[key]; is {
				row = o
			}
			for _, c := range days {
				if c.day >= 20190604 && c.day <= 20190609 {
					row.PV, row.Hot = row.PV+c.pv, row.Hot+c.hot
				}
				if c.day >= 20190604-int64(before) && c.day <= 20190609-int64(before) && before > 0 {
					row.PVBefore, row.HotBefore = row.PVBefore+c.pv, row.HotBefore+c.hot
				}
			}
			if row.PV > 0 || row.IsFolder && row.PVBefore > 0 {
				found[key] = row
			} else if row.PVBefore > 0 { // a page that nobody opened in the range is one of the others
				o := found[""]
				o.PVBefore, o.HotBefore = o.PVBefore+row.PVBefore, o.HotBefore+row.HotBefore
				found[""] = o
			}
		}
		for _, row := range found {
			rows = append(rows, row)
		}
		slices.SortFunc(rows, func(a, b report.InFolder) int {
			if (a.Path == "") != (b.Path == "") {
				return strings.Compare(b.Path, a.Path)
			}
			return cmp.Or(cmp.Compare(b.PV, a.PV), cmp.Compare(b.PVBefore, a.PVBefore), strings.Compare(a.Path, b.Path))
		})
		return rows
	}
	look := report.Look{App: "demo", Target: "a.example", In: in}
	check := func() {
		for _, folder := range []string{"/", "/a/", "/docs/", "/a/b/", "/a//", "/it's/", "/it's/100%25/", "/1/2/3/4/5/6/7/", "/none/", "/é/"} {
			for _, look.Before = range []int{0, 3} {
				all, err := r.Folders(t.Context(), look, folder, 1000)
				require.NoError(t, err)
				rows := want(folder, look.Before)
				require.ElementsMatch(t, rows, all.Rows, "%s, %d", folder, look.Before)
				some, err := r.Folders(t.Context(), look, folder, 2)
				require.NoError(t, err)
				require.Equal(t, sumOf(rows), sumOf(some.Rows), "what is not shown is among the others: %s, %d", folder, look.Before)
				require.LessOrEqual(t, len(some.Rows), 5)
			}
		}
	}
	check()
	for range dbtest.LongOrShort(4, 1) {
		r.exec(t, `DELETE FROM tops WHERE random() < 0.3`)
		r.exec(t, `UPDATE tops SET folders = NULL, folder_numbers = NULL WHERE random() < 0.2`)
		check()
	}
	look.Target = "never.example"
	never, err := r.Folders(t.Context(), look, "/", 5)
	require.NoError(t, err)
	assert.Empty(t, never.Rows)
}

func sumOf(rows []report.InFolder) (sum report.InFolder) {
	for _, r := range rows {
		sum.PV, sum.Hot, sum.PVBefore, sum.HotBefore = sum.PV+r.PV, sum.Hot+r.Hot, sum.PVBefore+r.PVBefore, sum.HotBefore+r.HotBefore
	}
	return sum
}
