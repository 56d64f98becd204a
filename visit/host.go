package visit

import (
	"net/netip"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// targetIDNA converts domains as the URL standard requires: by UTS 46 with non-transitional processing. It does not
// check lengths, hyphens, or which ASCII characters a domain contains. (appendStandardHost refuses characters that
// are not allowed in a domain.)
var targetIDNA = idna.New(
	idna.MapForLookup(), // must be first, because it enables checks that the following options disable again
	idna.CheckHyphens(false),
	idna.CheckJoiners(true),
	idna.BidiRule(),
	idna.Transitional(false),
	idna.StrictDomainName(false),
	idna.VerifyDNSLength(false),
)

const (
	hostInvalid = "its host is not a valid domain name or address: check its spelling"
	hostTooLong = "its host has more characters than any domain name: check its spelling"
)

// appendTargetHost appends the canonical form of a host to out. Most hosts are already canonical. isPlainHost
// recognizes most of these, so that they need no slow conversion.
func appendTargetHost(out []byte, host string) (canonical []byte, problem string) {
	if isPlainHost(host) {
		return append(out, host...), ""
	}
	return appendStandardHost(out, host)
}

// isPlainHost reports whether a host is certainly canonical, which means that it needs no conversion. Such a host has
// only lower-case letters, digits, "-", "." and "_". It has no two hyphens in a row, because Punycode labels have
// these. Its last label starts with a letter, because a label that is a number belongs to an IPv4 address. For some
// canonical hosts the result is false.
func isPlainHost(host string) bool {
	label := 0
	for i := 0; i < len(host); i++ {
		c := host[i]
		if targetByte[c]&plainInHost == 0 || c == '-' && i > 0 && host[i-1] == '-' {
			return false
		}
		if c == '.' {
			label = i + 1
		}
	}
	return label < len(host) && 'a' <= host[label] && host[label] <= 'z'
}

// appendStandardHost converts a host to the form that the URL standard specifies, and appends it to out.
func appendStandardHost(out []byte, host string) (canonical []byte, problem string) {
	if host[0] == '[' {
		return appendIPv6Host(out, host)
	}
	var space [256]byte
	domain, problem := domainToASCII(string(appendDecoded(space[:0], host)))
	if problem != "" {
		return nil, problem
	}
	if strings.ContainsFunc(domain, unicode.IsControl) || strings.ContainsAny(domain, " #/:<>?@[\\]^|%") {
		return nil, hostInvalid
	}
	if !endsInNumber(domain) {
		return append(out, domain...), ""
	}
	address, ok := parseIPv4Host(domain)
	if !ok {
		return nil, "its host ends in a number but is not an IPv4 address: check its spelling"
	}
	return address.AppendTo(out), ""
}

// domainToASCII converts a domain to lower-case ASCII. The package idna accepts some Punycode labels that the
// standard refuses:
//
//   - empty labels: idna drops them, so that one host would become another host
//   - labels with non-ASCII characters
//   - labels that decode to text that looks like Punycode again
//
// domainToASCII refuses these labels. So converting its result a second time does not change it.
func domainToASCII(domain string) (ascii, problem string) {
	if strings.ContainsFunc(domain, isNotASCII) {
		if utf8.RuneCountInString(domain) > maxConvertedDomain {
			return "", hostTooLong
		}
		mapped, err := targetIDNA.ToASCII(domain)
		if err != nil || mapped == "" || !punycodeWithinIsValid(domain) {
			return "", hostInvalid
		}
		domain = mapped
	}
	domain = strings.ToLower(domain)
	if !hasPunycode(domain) {
		return domain, ""
	}
	if len(domain) > maxConvertedDomain {
		return "", hostTooLong
	}
	if !isPunycode(domain) {
		return "", hostInvalid
	}
	return domain, ""
}

func isNotASCII(r rune) bool { return r >= utf8.RuneSelf }

// maxConvertedDomain is the maximum length, in characters, of a domain that contains Punycode or must be converted to
// Punycode. It is twice the limit of DNS. The URL standard has no limit, but the time of a conversion grows with the
// square of the length. Without a limit, one request could take as long as thousands of normal requests.
const maxConvertedDomain = 512

const (
	punycodePrefix = "xn--"
	// hyphens contains "-" and the characters that UTS 46 maps to "-". A test checks that there are no others.
	hyphens = "-\ufe63\uff0d"
)

// isPunycode reports whether each Punycode label of a lower-case ASCII domain is valid. It needs the whole domain,
// because the rules for right-to-left text apply to all labels of a domain together.
func isPunycode(domain string) bool {
	if again, err := targetIDNA.ToASCII(domain); err != nil || again != domain {
		return false
	}
	if !strings.Contains(domain, punycodePrefix+punycodePrefix) {
		return true // only a label that has the prefix twice decodes to a Punycode label
	}
	decoded, err := targetIDNA.ToUnicode(domain)
	return err == nil && !hasPunycode(decoded)
}

func hasPunycode(domain string) bool {
	return strings.HasPrefix(domain, punycodePrefix) || strings.Contains(domain, "."+punycodePrefix)
}

// punycodeWithinIsValid checks the Punycode labels of a domain that also has non-ASCII characters. Some labels become
// Punycode only when they are mapped, for example if they have full-width letters. It checks these labels, too.
func punycodeWithinIsValid(domain string) bool {
	if !strings.ContainsAny(domain, hyphens) {
		return true
	}
	// Map each character separately. Replace a character that stays non-ASCII by "\x80", so that a Punycode label
	// that contains it is invalid.
	var mapped strings.Builder
	for _, r := range domain {
		character, _ := targetIDNA.ToASCII(string(r))
		if strings.HasPrefix(character, punycodePrefix) {
			character = "\x80"
		}
		mapped.WriteString(character)
	}
	for label := range strings.SplitSeq(mapped.String(), ".") {
		if strings.HasPrefix(label, punycodePrefix) && !isPunycode(label) {
			return false
		}
	}
	return true
}

// endsInNumber reports whether the last label of a domain is a number. If it is, the URL standard requires that the
// domain is an IPv4 address.
func endsInNumber(domain string) bool {
	domain = strings.TrimSuffix(domain, ".")
	last := domain[strings.LastIndexByte(domain, '.')+1:]
	if hexadecimal, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hexadecimal, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

// parseIPv4Host parses an IPv4 address of one to four numbers, which are decimal, octal (0…) or
// hexadecimal (0x…). The last number fills all remaining bytes.
func parseIPv4Host(domain string) (address netip.Addr, ok bool) {
	parts := strings.Split(strings.TrimSuffix(domain, "."), ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var bits uint64
	for i, part := range parts {
		number, ok := parseIPv4Number(part)
		limit, shift := uint64(1)<<8, 8*(3-i)
		if i == len(parts)-1 {
			limit, shift = uint64(1)<<(8*(4-i)), 0
		}
		if !ok || number >= limit {
			return netip.Addr{}, false
		}
		bits |= number << shift
	}
	return netip.AddrFrom4([4]byte{byte(bits >> 24), byte(bits >> 16), byte(bits >> 8), byte(bits)}), true
}

func parseIPv4Number(part string) (number uint64, ok bool) {
	base := 10
	switch {
	case part == "0x":
		return 0, true
	case strings.HasPrefix(part, "0x"):
		part, base = part[2:], 16
	case len(part) > 1 && part[0] == '0':
		part, base = part[1:], 8
	}
	number, err := strconv.ParseUint(part, base, 64)
	return number, err == nil
}

// appendIPv6Host appends an IPv6 host in brackets to out, in compressed form, with all its numbers in hexadecimal.
func appendIPv6Host(out []byte, host string) (canonical []byte, problem string) {
	inner, closed := strings.CutSuffix(host[1:], "]")
	address, err := netip.ParseAddr(inner)
	if !closed || err != nil || !address.Is6() || address.Zone() != "" {
		return nil, "its host in brackets is not an IPv6 address: write one like [2001:db8::1], without a zone"
	}
	if !address.Is4In6() {
		return append(address.AppendTo(append(out, '[')), ']'), ""
	}
	bytes := address.As16()
	out = append(out, "[::ffff:"...)
	out = strconv.AppendUint(out, uint64(bytes[12])<<8|uint64(bytes[13]), 16)
	out = append(out, ':')
	out = strconv.AppendUint(out, uint64(bytes[14])<<8|uint64(bytes[15]), 16)
	return append(out, ']'), ""
}
