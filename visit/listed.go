package visit

import (
	"regexp"
	"strings"
)

// Subdomains is the prefix of an entry in a list of sites that matches all subdomains of a host, but not the host
// itself.
const Subdomains = "*."

// Overlap reports whether some site matches both entries. An entry of a list of sites is a site in canonical form, or
// *.host.
func Overlap(a, b string) bool { return covers(a, b) || covers(b, a) }

func covers(entry, other string) bool {
	below, wild := strings.CutPrefix(entry, Subdomains)
	if !wild {
		return entry == other
	}
	return strings.HasSuffix(strings.Replace(other, Subdomains, "a.", 1), "."+below)
}

var listable = regexp.MustCompile(`^([a-z0-9_-]+(\.[a-z0-9_-]+)*\.?|\[[0-9a-f:]+\])(:[0-9]+)?$`)

// IsListable reports whether a site in canonical form may be in a list of sites. Its host must consist of letters,
// digits, hyphens, underscores and single dots, or be an IPv6 address. A port is allowed. An app that accepts any
// site can still count other sites.
func IsListable(site string) bool { return listable.MatchString(site) }
