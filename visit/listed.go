package visit

import (
	"regexp"
	"strings"
)

// Subdomains is the prefix of a list entry for all subdomains of a host. Such an entry does not match the host
// itself.
const Subdomains = "*."

// Overlap reports whether a site exists that both entries match. An entry is a site in canonical form, or "*." and a
// host.
func Overlap(a, b string) bool { return covers(a, b) || covers(b, a) }

func covers(entry, other string) bool {
	below, wild := strings.CutPrefix(entry, Subdomains)
	if !wild {
		return entry == other
	}
	return strings.HasSuffix(strings.Replace(other, Subdomains, "a.", 1), "."+below)
}

var listable = regexp.MustCompile(`^([a-z0-9_-]+(\.[a-z0-9_-]+)*\.?|\[[0-9a-f:]+\])(:[0-9]+)?$`)

// IsListable reports whether a list of sites may contain a site, which must be in canonical form. Its host must be an
// IPv6 address, or consist of letters, digits, hyphens, underscores and single dots. It may have a port. An app that
// accepts any site can also count other sites.
func IsListable(site string) bool { return listable.MatchString(site) }
