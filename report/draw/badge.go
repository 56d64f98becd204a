package draw

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"golang.org/x/text/width"
)

// Badge is a number with a label, as small as a word in a text. It is shown in a picture of its own
// and refers to nothing outside itself.
type Badge struct {
	Style   string // one of BadgeStyles
	Label   string // "": none
	Message string
	Color   string // behind the message, as #rrggbb; in the plain style, of the line
	Line    []int64
}

// BadgeStyles are how badges may look, the usual first.
var BadgeStyles = []string{"flat", "flat-square", "for-the-badge", "plain"}

// badgeLook is a style: measures in pixels.
type badgeLook struct {
	high, pad, font, base int
	round                 int
	gloss, plain, bold    bool
	spread                float64 // more between letters
}

var badgeLooks = map[string]badgeLook{
	"flat":          {high: 20, pad: 6, font: 11, base: 14, round: 3, gloss: true},
	"flat-square":   {high: 20, pad: 6, font: 11, base: 14},
	"for-the-badge": {high: 28, pad: 11, font: 10, base: 18, spread: 1, bold: true},
	"plain":         {high: 20, pad: 2, font: 11, base: 14, plain: true},
}

// Colours of a badge. A style, which programs other than browsers may not know, has those for the
// dark.
const (
	badgeLabel, badgeLabelDark = "#555", "#3d444d"
	badgeSoft, badgeSoftDark   = "#57606a", "#9198a1"
	badgeInk, badgeInkDark     = "#1f2328", "#f0f6fc"
	badgeLineWide              = 60
)

// SVG draws the badge.
func (b Badge) SVG() string {
	look := badgeLooks[b.Style]
	if b.Style == "for-the-badge" {
		b.Label, b.Message = strings.ToUpper(b.Label), strings.ToUpper(b.Message)
	}
	title := escaped(strings.TrimPrefix(b.Label+": "+b.Message, ": "))
	var boxes, texts strings.Builder
	x := 0
	part := func(text, class, box, ink string) {
		wide := int(math.Ceil(textWide(text, look)))
		if !look.plain {
			fmt.Fprintf(&boxes, `<rect class="%s" fill="%s" x="%d" width="%d" height="%d"/>`, class, box, x, wide+2*look.pad, look.high)
		}
		more := ""
		if look.spread > 0 {
			more = fmt.Sprintf(` letter-spacing="%g"`, look.spread)
		}
		if look.bold {
			more += ` font-weight="bold"`
		}
		fmt.Fprintf(&texts, `<text class="%s-ink" fill="%s" x="%d" y="%d" textLength="%d"%s>%s</text>`, class, ink, x+look.pad, look.base, wide, more, escaped(text))
		x += wide + 2*look.pad
	}
	soft, strong := "#fff", inkOn(b.Color)
	if look.plain {
		soft, strong = badgeSoft, badgeInk
	}
	if b.Label != "" {
		part(b.Label, "label", badgeLabel, soft)
	}
	part(b.Message, "message", b.Color, strong)
	if len(b.Line) > 1 {
		stroke := strong
		if look.plain {
			stroke = b.Color
		} else {
			fmt.Fprintf(&boxes, `<rect fill="%s" x="%d" width="%d" height="%d"/>`, b.Color, x, badgeLineWide+look.pad, look.high)
		}
		fmt.Fprintf(&texts, `<polyline fill="none" stroke="%s" stroke-width="1.5" stroke-linejoin="round" points="%s"/>`, stroke, b.points(x, look.high))
		x += badgeLineWide + look.pad
	}
	return b.whole(look, x, title, boxes.String(), texts.String())
}

func (b Badge) whole(look badgeLook, wide int, title, boxes, texts string) string {
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" aria-label="%[3]s" `+
		`font-family="Verdana,Geneva,'DejaVu Sans',sans-serif" font-size="%[4]d"><title>%[3]s</title>`, wide, look.high, title, look.font)
	if look.plain {
		out.WriteString(`<style>@media (prefers-color-scheme:dark){.label-ink{fill:` + badgeSoftDark + `}.message-ink{fill:` + badgeInkDark + `}}</style>`)
	} else {
		out.WriteString(`<style>@media (prefers-color-scheme:dark){.label{fill:` + badgeLabelDark + `}}</style>`)
	}
	group := "<g>"
	if look.round > 0 {
		fmt.Fprintf(&out, `<clipPath id="round"><rect width="%d" height="%d" rx="%d"/></clipPath>`, wide, look.high, look.round)
		group = `<g clip-path="url(#round)">`
	}
	if look.gloss {
		out.WriteString(`<linearGradient id="gloss" x2="0" y2="100%"><stop offset="0" stop-color="#bbb" stop-opacity=".1"/><stop offset="1" stop-opacity=".1"/></linearGradient>`)
		boxes += fmt.Sprintf(`<rect fill="url(#gloss)" width="%d" height="%d"/>`, wide, look.high)
	}
	out.WriteString(group + boxes + "</g>" + texts + "</svg>\n")
	return out.String()
}

func (b Badge) points(x, high int) string {
	most := mostOf(b.Line)
	var points []string
	for i, n := range b.Line {
		points = append(points, fmt.Sprintf("%.1f,%.1f", float64(x)+float64(badgeLineWide*i)/float64(len(b.Line)-1),
			float64(high)-5-float64(high-10)*float64(n)/float64(most)))
	}
	return strings.Join(points, " ")
}

// verdana is how wide the letters of Verdana are from the space on, in thousandths of their size.
// DejaVu Sans, which stands in for it on Linux, has nearly the same.
var verdana = [...]int{
	352, 394, 459, 818, 636, 1076, 727, 269, 454, 454, 636, 818, 364, 454, 364, 454,
	636, 636, 636, 636, 636, 636, 636, 636, 636, 636, 454, 454, 818, 818, 818, 545,
	1000, 684, 686, 698, 771, 632, 575, 775, 751, 421, 455, 693, 557, 843, 748, 787,
	603, 787, 695, 684, 616, 732, 684, 989, 685, 615, 685, 454, 454, 454, 818, 636,
	636, 601, 623, 521, 623, 596, 352, 623, 633, 274, 344, 592, 274, 973, 633, 607,
	623, 623, 427, 521, 394, 633, 592, 818, 592, 592, 525, 635, 454, 635, 818,
}

// verdanaBold is the same of Verdana Bold.
var verdanaBold = [...]int{
	342, 402, 587, 867, 711, 1272, 862, 332, 543, 543, 711, 867, 361, 480, 361, 689,
	711, 711, 711, 711, 711, 711, 711, 711, 711, 711, 402, 402, 867, 867, 867, 617,
	964, 776, 762, 724, 830, 683, 650, 811, 837, 546, 555, 771, 637, 948, 847, 850,
	733, 850, 782, 710, 682, 812, 764, 1128, 764, 737, 692, 543, 689, 543, 867, 711,
	711, 668, 699, 588, 699, 664, 422, 699, 712, 342, 403, 671, 342, 1058, 712, 687,
	699, 699, 497, 593, 456, 712, 650, 979, 669, 651, 597, 711, 543, 711, 867,
}

const (
	wideLetter  = 1000 // of Chinese, Japanese and Korean
	otherLetter = 700  // of Cyrillic, Greek and the like: rather too wide than too narrow
)

func textWide(text string, look badgeLook) float64 {
	wide, letters := 0, 0
	letter := verdana
	if look.bold {
		letter = verdanaBold
	}
	for _, r := range Text(text) {
		switch kind := width.LookupRune(r).Kind(); {
		case r >= ' ' && int(r-' ') < len(letter):
			wide += letter[r-' ']
		case kind == width.EastAsianWide || kind == width.EastAsianFullwidth:
			wide += wideLetter
		case runeColumns(r) > 0:
			wide += otherLetter
		}
		letters++
	}
	return float64(wide*look.font)/1000 + float64(letters)*look.spread
}

func inkOn(color string) string {
	rgb, err := strconv.ParseUint(strings.TrimPrefix(color, "#"), 16, 32)
	if err != nil {
		return "#fff"
	}
	luminance := 0.0
	for i, share := range []float64{0.0722, 0.7152, 0.2126} {
		luminance += share * math.Pow(float64(rgb>>(8*i)&0xff)/255, 2.2)
	}
	if luminance > 0.22 { // from here on black has more contrast than white
		return badgeInk
	}
	return "#fff"
}
