package visit

import (
	"slices"
	"strings"
)

// isReserved reports whether the target is one of those that hold the sums of others. No URI leads
// to such a target, so people write it as reports do.
func isReserved(target string) bool {
	site, path, isPage := strings.Cut(target, "/")
	if site != OtherSite {
		read, err := normalizeTyped(site, nil)
		return err == nil && read.Site == site && isPage && slices.Contains([]string{OtherPage, DeletedPage}, "/"+path)
	}
	return !isPage || "/"+path == OtherPage || "/"+path == DeletedPage
}

// ParseTarget reads a page or a site as people write it. A URI is its page. Without http:// or
// https://, a host is a site, and a host with a path is a page, as reports write them. keepQuery
// lists the query parameters that the app keeps. Every error is an *Error about the field "uri".
func ParseTarget(text string, keepQuery []string) (string, error) {
	if isReserved(text) {
		return text, nil
	}
	target, err := normalizeTyped(text, keepQuery)
	if err != nil {
		return "", err
	}
	if !strings.Contains(text, "/") {
		return target.Site, nil
	}
	return target.Page, nil
}

// ParseSite reads a site as people write it: a host, a host and a port, or the URI of its home
// page. Every error is an *Error about the field "site".
func ParseSite(text string) (string, error) {
	if text == OtherSite {
		return text, nil
	}
	target, err := normalizeTyped(text, nil)
	switch {
	case err != nil:
		return "", Errorf(Invalid, "site", "%s", strings.TrimPrefix(err.Error(), "uri: "))
	case target.Page != target.Site+"/" || strings.ContainsAny(text, "?#@"):
		return "", Errorf(Invalid, "site", "%.128q is not a site: write a host like example.com, or a host and a port like localhost:3000", text)
	}
	return target.Site, nil
}

// normalizeTyped is Normalize for text that may have no scheme. It adds the scheme that does not
// change a site which is written in canonical form.
func normalizeTyped(text string, keepQuery []string) (Target, error) {
	// Behind a slash it is part of a path: example.com/https://other.example.
	if scheme, _, found := strings.Cut(text, "://"); found && !strings.Contains(scheme, "/") {
		return Normalize(text, keepQuery)
	}
	host, _, _ := strings.Cut(strings.Trim(text, " "), "/")
	if strings.ContainsAny(host, "@\\?#") {
		return Target{}, targetError("its host has characters that a host cannot have: write it like example.com/page or http://example.com/page")
	}
	if strings.HasSuffix(host, ":80") { // with http, the default port would be dropped
		return Normalize("https://"+text, keepQuery)
	}
	return Normalize("http://"+text, keepQuery)
}
