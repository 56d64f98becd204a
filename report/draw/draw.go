// Package draw renders numbers as tables with bars, sparklines, and SVG. The texts may be attackers' input, so they
// are escaped for terminals and browsers.
package draw

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Style describes the capabilities of a terminal or file.
type Style struct {
	Width int  // number of columns of the terminal, to which long lines are cut; 0: not a terminal, nothing is cut
	ASCII bool // only ASCII characters in bars
}

const (
	barWidth  = 20
	barNarrow = 8 // width of bars on narrow terminals
)

var (
	eighths = []rune(" ▏▎▍▌▋▊▉█") // bars that fill 0 to 8 eighths of a terminal column, from the left
	levels  = []rune("▁▂▃▄▅▆▇█")  // bars that fill 1 to 8 eighths of the height of a terminal line, from the bottom

	levelsASCII = []rune("_.:-=+*#")
)

// bar draws n as a bar. If n equals most, the bar fills all columns. If n is greater than 0, the bar is visible.
func (s Style) bar(n, most int64, columns int) string {
	if n <= 0 || most <= 0 {
		return ""
	}
	full := min(float64(n)/float64(most), 1) * float64(columns)
	if s.ASCII {
		return strings.Repeat("#", max(int(math.Round(full)), 1))
	}
	parts := max(int(math.Round(full*8)), 1)
	bar := strings.Repeat("█", parts/8)
	if parts%8 > 0 {
		bar += string(eighths[parts%8])
	}
	return bar
}

// Sparkline draws numbers as columns next to each other, on one line of text. A column of the lowest height always means 0.
func (s Style) Sparkline(numbers []int64) string {
	steps := levels
	if s.ASCII {
		steps = levelsASCII
	}
	most := mostOf(numbers)
	var line strings.Builder
	for _, n := range numbers {
		step := 0
		if n > 0 {
			step = max(int(math.Round(float64(n)/float64(most)*float64(len(steps)-1))), 1)
		}
		line.WriteRune(steps[step])
	}
	return line.String()
}

// mostOf returns the largest number, at least 1.
func mostOf(numbers []int64) int64 { return slices.Max(append([]int64{1}, numbers...)) }

// Number formats a number like 1,234,567.
func Number(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// Count formats a number of things: 1 visit, 1,204 visits.
func Count(n int64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return Number(n) + " " + thing
}

// Day formats a day like 20190629 as 2019-06-29.
func Day(day int32) string { return fmt.Sprintf("%04d-%02d-%02d", day/10000, day/100%100, day%100) }

// Text escapes characters that are not printable, and bytes that are not UTF-8, to make a string safe for terminals.
func Text(s string) string {
	harmless := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) < 0
	if harmless {
		return s
	}
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// Columns returns the number of terminal columns that a text takes.
func Columns(text string) int {
	columns := 0
	for _, r := range text {
		columns += runeColumns(r)
	}
	return columns
}

func runeColumns(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0 // a combining mark, which is drawn over the previous character
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// cut removes the middle of a text that is wider than this number of columns. In a page's URI, the start that remains shows
// the site, and the end shows the page.
func (s Style) cut(text string, columns int) string {
	if Columns(text) <= columns {
		return text
	}
	gap := "…"
	if s.ASCII {
		gap = "..."
	}
	room := columns - len([]rune(gap))
	if room < 2 {
		return strings.Repeat(".", max(columns, 0))
	}
	parts := unbreakable.FindAllString(text, -1)
	head, taken := 0, 0
	for taken+Columns(parts[head]) <= (room+1)/2 {
		taken += Columns(parts[head])
		head++
	}
	tail := len(parts)
	for taken+Columns(parts[tail-1]) <= room {
		tail--
		taken += Columns(parts[tail])
	}
	return strings.Join(parts[:head], "") + gap + strings.Join(parts[tail:], "")
}

// unbreakable matches the units of a text that cut does not split. A unit is a percent-encoded character, an escape written by
// Text, a flag emoji, or any other character, each with its combining marks.
var unbreakable = regexp.MustCompile(`(?s)(?:%[CD][0-9A-F]%[89AB][0-9A-F]|%E[0-9A-F](?:%[89AB][0-9A-F]){2}|%F[0-7](?:%[89AB][0-9A-F]){3}|` +
	`%[0-9A-F]{2}|\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|\\U[0-9a-f]{8}|\\[abfnrtv\\]|[\x{1F1E6}-\x{1F1FF}]{2}|.)[\pM\x{1F3FB}-\x{1F3FF}]*`)
