package moves

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// Bounds of sitemaps. The protocol lets a file have 50 MB, unpacked.
const (
	mostSitemapBytes = 50 << 20
	mostSitemaps     = 1000
	sitemapWithin    = time.Minute // for one file
)

// Sitemap returns the addresses of pages that a sitemap lists, with all others that it leads to. It
// is a file or a URL: of XML (urlset, sitemapindex) or of a text with an address on each line,
// packed with gzip or not.
func Sitemap(ctx context.Context, from string) (pages []string, err error) {
	left, seen := []string{from}, map[string]bool{from: true}
	for read := 0; len(left) > 0; read++ {
		if read == mostSitemaps {
			return nil, fmt.Errorf("sitemap: %s leads to more than %d sitemaps", from, mostSitemaps)
		}
		next := left[0]
		left = left[1:]
		found, err := readSitemap(ctx, next, read == 0)
		if err != nil {
			return nil, fmt.Errorf("sitemap: %s: %w", next, err)
		}
		pages = append(pages, found.pages...)
		for _, other := range found.sitemaps {
			if !seen[other] {
				seen[other] = true
				left = append(left, other)
			}
		}
	}
	return pages, nil
}

// sitemap is what one file has.
type sitemap struct{ pages, sitemaps []string }

// readSitemap reads one file. Only the first one may be named by its path: a sitemap from the web
// leads to no file of this machine.
func readSitemap(ctx context.Context, from string, mayBeFile bool) (s sitemap, err error) {
	ctx, cancel := context.WithTimeout(ctx, sitemapWithin)
	defer cancel()
	body, err := openSitemap(ctx, from, mayBeFile)
	if err != nil {
		return s, err
	}
	defer body.Close()
	text := bufio.NewReader(body)
	if mark, _ := text.Peek(2); bytes.Equal(mark, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(text)
		if err != nil {
			return s, err
		}
		text = bufio.NewReader(unpacked)
	}
	whole, err := io.ReadAll(io.LimitReader(text, mostSitemapBytes+1))
	if err != nil {
		return s, err
	}
	if len(whole) > mostSitemapBytes {
		return s, fmt.Errorf("it is larger than %d MB", mostSitemapBytes>>20)
	}
	whole = bytes.TrimSpace(bytes.TrimPrefix(whole, []byte("\ufeff")))
	if bytes.HasPrefix(whole, []byte("<")) {
		return readXML(whole)
	}
	for line := range strings.Lines(string(whole)) {
		if line = strings.TrimSpace(line); line != "" {
			s.pages = append(s.pages, line)
		}
	}
	return s, nil
}

func isWeb(address string) bool {
	return strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "https://")
}

func openSitemap(ctx context.Context, from string, mayBeFile bool) (io.ReadCloser, error) {
	switch {
	case !isWeb(from) && mayBeFile:
		return os.Open(from)
	case !isWeb(from):
		return nil, errors.New("it begins with neither http:// nor https://")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("it is answered with %s", response.Status)
	}
	return response.Body, nil
}

func readXML(whole []byte) (s sitemap, err error) {
	var file struct {
		XMLName xml.Name
		Pages   []string `xml:"url>loc"`
		Others  []string `xml:"sitemap>loc"`
	}
	if err := xml.Unmarshal(whole, &file); err != nil {
		return s, fmt.Errorf("it is neither a sitemap nor a list of addresses: %w", err)
	}
	if name := file.XMLName.Local; name != "urlset" && name != "sitemapindex" {
		return s, fmt.Errorf("it is no sitemap, but <%.64s>", name)
	}
	for i, list := range [][]string{file.Pages, file.Others} {
		for _, address := range list {
			if address = strings.TrimSpace(address); i == 0 {
				s.pages = append(s.pages, address)
			} else {
				s.sitemaps = append(s.sitemaps, address)
			}
		}
	}
	return s, nil
}
