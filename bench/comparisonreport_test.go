package bench

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"
)

// sample is a comparison that nobody measured, with the longest figures that a table must have room for.
func sample(through string) *Comparison {
	c := &Comparison{
		Machine: Machine{CPUs: 2, Go: "go1.26", PostgreSQL: "15.18", Fsync: "on", Commit: "on", Began: "2019-06-29T12:00:00Z"},
		Through: through, Command: "footfall bench --seed 7 --dir '<b>'", Clients: 256, Rounds: 5, Seed: 7,
		Workloads: []WorkloadAbout{
			{"first", "every visit is a new visitor's", 100_000, 1},
			{"returning", "19 of 20 visits repeat an earlier one", 100_000, 0.05},
		},
	}
	for i, name := range []string{"naive", "naive+filter", "baseline", "batched", "batched+filter", "batched+memory", "batched+both", "approx"} {
		c.Contenders = append(c.Contenders, ContenderAbout{name, "About " + name + " & <others>", strings.HasPrefix(name, "ba")})
		for _, workload := range c.Workloads {
			perSecond := 1655 * float64(1+i*i)
			row := ComparisonRow{
				Contender: name, Workload: workload.Name, PerSecond: spread{perSecond, perSecond * 0.9, perSecond * 2.2},
				P50Ms: 97 / float64(i+1), P95Ms: 1234 / float64(i+1), P99Ms: 2345 / float64(i+1),
				Asked: 4 / float64(1+i), Written: 5.25, WAL: 1512, Memory: 1234 << 20, Helpers: 85 << 20, Visits: 500_000,
				ToBaseline: perSecond / 1655, ToNaive: perSecond / 1655, ToBatched: perSecond / 16550, ToConstant: 0.5,
			}
			if name == "naive" {
				row.Errors = Errors{UV: 1234, PV: 1235, Hot: 7, Ranks: 24321}
			}
			c.Rows = append(c.Rows, row)
			c.Runs = append(c.Runs, Run{Contender: name, Workload: workload.Name, Round: 1, Visits: 100_000, PerSecond: perSecond})
		}
	}
	return c
}

func printed(c *Comparison) string {
	var b strings.Builder
	c.Print(&b)
	return b.String()
}

func html(t *testing.T, c *Comparison) string {
	t.Helper()
	var b strings.Builder
	if err := c.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(b.String(), "&#43;", "+") // which the template writes so, for no reason here
}

// lineOf is the first line that begins with a word.
func lineOf(t *testing.T, text, word string) string {
	t.Helper()
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] == word {
			return line
		}
	}
	t.Fatalf("no line begins with %s:\n%s", word, text)
	return ""
}

func TestPrintShowsEveryFigure(t *testing.T) {
	t.Parallel()
	text := printed(sample(throughHTTP))
	got := strings.Fields(lineOf(t, text, "batched"))
	want := []string{
		"batched", "16,550", "14,895..36,410", "24.2", "308", "586", "1", "5.25", "1,512", "1,294", "0", "0", "×10", "×10", "×1.00", "×0.50",
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the row is\n%q, want\n%q", got, want)
	}
	for _, part := range []string{"2 CPUs", "256 connections", "medians of 5 rounds", "seed 7", "first: every visit is a new visitor's (100 % first visits)",
		"returning:", "About approx", "Repeat it: footfall bench --seed 7", "divided by those of baseline"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not told:\n%s", part, text)
		}
	}
	if strings.Contains(printed(sample("recorder")), "/constant") {
		t.Error("there is a column for what is measured over HTTP only")
	}
}

func TestPrintFitsTheTerminal(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(printed(sample(throughHTTP))) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 160 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// A contender that breaks its promise must not look like one that made none.
func TestErrorsAreMarked(t *testing.T) {
	t.Parallel()
	c := sample("recorder")
	naive := "naive does not promise to be exact, and is not: in 500,000 visits uv is off by 1,234, pv by 1,235, hot by 7; 24,321 ranks are wrong"
	if text := printed(c); strings.Count(text, naive) != 2 || strings.Contains(text, "BREAKS") {
		t.Errorf("the errors of naive are not told on both workloads:\n%s", text)
	}
	page := html(t, c)
	for _, mark := range []string{naive, `class="inexact wrong"`, `<tr class="wrong"><th>naive<`, `<td class="wrong">`, "✗ uv off by 1,234, ranks by 24,321"} {
		if !strings.Contains(page, mark) {
			t.Errorf("%s is not in the page", mark)
		}
	}
	if strings.Contains(page, `"exact wrong"`) || strings.Contains(page, "fault broken") {
		t.Error("an exact contender without errors is marked")
	}
	for i, run := range c.Runs {
		if run.Contender == "batched+both" && run.Workload == "first" {
			c.Runs[i].Fault = "3 sums are not what their rows say" // which no other figure tells
		}
	}
	broken := "batched+both BREAKS ITS PROMISE: in 500,000 visits uv is off by 0, pv by 0, hot by 0; 0 ranks are wrong (round 1: 3 sums are not what their rows say)"
	if text := printed(c); !strings.Contains(text, broken) || strings.Count(text, "BREAKS") != 1 {
		t.Errorf("a broken promise is not told:\n%s", text)
	}
	if page := html(t, c); !strings.Contains(page, "fault broken\">✗ "+broken) || !strings.Contains(page, `"exact wrong"`) ||
		!strings.Contains(page, `<tr class="wrong"><th>batched+both<`) {
		t.Error("a broken promise is not marked in the page")
	}
}

func TestPageShowsEveryFigure(t *testing.T) {
	t.Parallel()
	page := html(t, sample(throughHTTP))
	for _, part := range []string{"2 CPUs", "2019-06-29", "About approx &amp; &lt;others&gt;", "--dir &#39;&lt;b&gt;&#39;", "16,550  ×10<", "24.2 / 308 / 586",
		"<td>14,895..36,410</td>", "<td>×0.50</td>", "<td>89</td>", "every visit is a new visitor&#39;s", "5 % of the visits", ">/constant</th>"} {
		if !strings.Contains(page, part) {
			t.Errorf("%q is not in the page", part)
		}
	}
	if n := strings.Count(page, "<svg "); n != 8 {
		t.Errorf("%d charts, want 4 for each of 2 workloads", n)
	}
}

// The page must work from a disk, without a network and without scripts.
func TestPageNeedsNothingElse(t *testing.T) {
	t.Parallel()
	page := html(t, sample("recorder"))
	for _, foreign := range []string{"http://", "https://", "<script", "<link", "<img", "@import", "url(", "<b>", "ZgotmplZ", "NaN", "Inf", "%!"} {
		if strings.Contains(page, foreign) {
			t.Errorf("%s is in the page", foreign)
		}
	}
	wellFormed(t, page)
}

func wellFormed(t *testing.T, page string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("the page is not well-formed: %v", err)
		}
	}
}

// What was stopped early, or measured with one contender, is shown as far as it goes.
func TestLittleToShow(t *testing.T) {
	t.Parallel()
	bare := sample("recorder")
	bare.Rows, bare.Runs = nil, nil
	empty := sample(throughHTTP)
	for i, row := range empty.Rows {
		empty.Rows[i] = ComparisonRow{Contender: row.Contender, Workload: row.Workload}
	}
	stranger := sample("recorder")
	stranger.Contenders = nil
	for name, c := range map[string]*Comparison{"nothing": {}, "no rows": bare, "rows of nothing": empty, "a contender not described": stranger} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wellFormed(t, html(t, c))
			if text := printed(c) + html(t, c); strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
				t.Errorf("figures that are none:\n%s", text)
			}
		})
	}
}

func TestRowsComeInTheOrderOfTheContenders(t *testing.T) {
	t.Parallel()
	c := sample("recorder")
	c.Rows[0], c.Rows[4] = c.Rows[4], c.Rows[0]
	c.Contenders = c.Contenders[:7] // approx is not described
	rows := c.rowsOf("first")
	if len(rows) != 8 || rows[0].Contender != "naive" || rows[2].Contender != "baseline" || rows[7].Contender != "approx" {
		t.Errorf("the order is %v", rows)
	}
}

// No bar or whisker may leave the plot, and each must begin where the axis does.
func TestChartsKeepToTheirPlot(t *testing.T) {
	t.Parallel()
	for _, most := range []float64{0, 0.003, 0.7, 1, 4, 9.99, 10, 11, 1512, 99_999, 100_001} {
		for _, shape := range []chartShape{wholeChart, halfChart} {
			for _, logarithmic := range []bool{false, true} {
				s := newScale(most/37, most, logarithmic, shape)
				ticks := s.ticks()
				if n := len(ticks); n < 2 || n > 8 {
					t.Errorf("up to %v (logarithmic: %v) there are %d ticks", most, logarithmic, n)
				}
				if first, last := ticks[0].X, ticks[len(ticks)-1].X; first != float64(shape.left) || last != float64(shape.right) {
					t.Errorf("up to %v the ticks go from %v to %v", most, first, last)
				}
				if most > s.high || s.at(most) > float64(shape.right) || s.at(most) < s.at(most/2) {
					t.Errorf("%v is drawn at %v, its half at %v", most, s.at(most), s.at(most/2))
				}
			}
		}
	}
}

func TestFiguresAsText(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{grouped(0), "0"}, {grouped(999.4), "999"}, {grouped(999.6), "1,000"}, {grouped(1234567), "1,234,567"}, {grouped(-1000), "-1,000"}, {grouped(-0.1), "0"},
		{millis(0.123), "0.12"}, {millis(12.34), "12.3"}, {millis(1234), "1,234"},
		{upTo(2, 3), "2"}, {upTo(0.0004, 3), "0"}, {upTo(0.0125, 3), "0.013"},
		{megabytes(0), "-"}, {megabytes(2_340_000), "2.3"}, {megabytes(1_500_000_000), "1,500"},
		{times(0), "-"}, {times(1.234), "×1.23"}, {times(69.54), "×69.5"},
	} {
		if c[0] != c[1] {
			t.Errorf("got %s, want %s", c[0], c[1])
		}
	}
}
