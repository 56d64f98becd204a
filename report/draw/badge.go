package draw

import (
	"fmt"
	"math"
	"strings"

	"golang.org/x/text/width"
)

// Badge is a small image with a label and a number. The image needs no other files.
type Badge struct {
	Label   string // text on the left; "": none
	Message string
}

// BadgeColor is the background color of a badge's message.
const BadgeColor = "#007ec6"

// Sizes of a badge in pixels, and its colors. Only the colors for dark mode are in a style element, because programs other
// than browsers may not support style elements.
const (
	badgeHigh, badgeFont       = 20, 11
	badgeLabel, badgeLabelDark = "#555", "#3d444d"
	badgeInk, badgePad         = "#fff", 6
)

// SVG returns the badge as an image.
func (b Badge) SVG() string {
	title := escaped(strings.TrimPrefix(b.Label+": "+b.Message, ": "))
	var boxes, texts strings.Builder
	x := 0
	part := func(text, class, box string) {
		wide := int(math.Ceil(textWide(text)))
		fmt.Fprintf(&boxes, `<rect class="%s" fill="%s" x="%d" width="%d" height="%d"/>`, class, box, x, wide+2*badgePad, badgeHigh)
		fmt.Fprintf(&texts, `<text class="%s-ink" fill="%s" x="%d" y="14" textLength="%d">%s</text>`, class, badgeInk, x+badgePad, wide,
			escaped(text))
		x += wide + 2*badgePad
	}
	if b.Label != "" {
		part(b.Label, "label", badgeLabel)
	}
	part(b.Message, "message", BadgeColor)
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" `+
		`aria-label="%[3]s" font-family="Verdana,Geneva,'DejaVu Sans',sans-serif" font-size="%[4]d"><title>%[3]s</title>`, x, badgeHigh, title,
		badgeFont)
	out.WriteString(`<style>@media (prefers-color-scheme:dark){.label{fill:` + badgeLabelDark + `}}</style>`)
	fmt.Fprintf(&out, `<clipPath id="round"><rect width="%d" height="%d" rx="3"/></clipPath>`+
		`<linearGradient id="gloss" x2="0" y2="100%%"><stop offset="0" stop-color="#bbb" stop-opacity=".1"/>`+
		`<stop offset="1" stop-opacity=".1"/></linearGradient>`+
		`<g clip-path="url(#round)">%[3]s<rect fill="url(#gloss)" width="%[1]d" height="%[2]d"/></g>`, x, badgeHigh, boxes.String())
	return out.String() + texts.String() + "</svg>\n"
}

// verdana holds the widths of Verdana's characters, starting with the space, in thousandths of the font size. DejaVu
// Sans, which replaces Verdana on Linux, has nearly the same widths.
var verdana = [...]int{
	352, 394, 459, 818, 636, 1076, 727, 269, 454, 454, 636, 818, 364, 454, 364, 454,
	636, 636, 636, 636, 636, 636, 636, 636, 636, 636, 454, 454, 818, 818, 818, 545,
	1000, 684, 686, 698, 771, 632, 575, 775, 751, 421, 455, 693, 557, 843, 748, 787,
	603, 787, 695, 684, 616, 732, 684, 989, 685, 615, 685, 454, 454, 454, 818, 636,
	636, 601, 623, 521, 623, 596, 352, 623, 633, 274, 344, 592, 274, 973, 633, 607,
	623, 623, 427, 521, 394, 633, 592, 818, 592, 592, 525, 635, 454, 635, 818,
}

const (
	wideLetter  = 1000 // width of Chinese, Japanese and Korean characters
	otherLetter = 700  // estimated width of Cyrillic, Greek and other characters, rather too wide than too narrow
)

func textWide(text string) float64 {
	wide := 0
	for _, r := range Text(text) {
		switch kind := width.LookupRune(r).Kind(); {
		case r >= ' ' && int(r-' ') < len(verdana):
			wide += verdana[r-' ']
		case kind == width.EastAsianWide || kind == width.EastAsianFullwidth:
			wide += wideLetter
		case runeColumns(r) > 0:
			wide += otherLetter
		}
	}
	return float64(wide*badgeFont) / 1000
}
