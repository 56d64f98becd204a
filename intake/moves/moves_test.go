package moves_test

import (
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/counter"
	"footfall/db/dbtest"
	"footfall/intake/moves"
)

func TestReadCSV(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file string
		want []counter.Offset
		says string
	}{
		"all columns":                    {"uri,hot,uv,pv\nhttps://a/,9,3,5\na,7,,\n", []counter.Offset{{Line: 2, URI: "https://a/", Hot: 9, UV: 3, PV: 5}, {Line: 3, URI: "a", Hot: 7}}, ""},
		"pv is uv where it is not known": {"uri,hot,uv\na/,9,3", []counter.Offset{{Line: 2, URI: "a/", Hot: 9, UV: 3, PV: 3}}, ""},
		"as a spreadsheet writes it":     {"\ufeffHot, URI\r\n9,\"a/x,y\"\r\n\r\n8, a/b \r\n", []counter.Offset{{Line: 2, URI: "a/x,y", Hot: 9}, {Line: 4, URI: "a/b", Hot: 8}}, ""},
		"no lines":                       {"uri,hot\n", nil, ""},
		"faults of lines": {"uri,hot,uv\na/,\"1,204\",1\nb/,-1\nc/,,\nd/,1,x\n", []counter.Offset{
			{Line: 2, URI: "a/", UV: 1, PV: 1, Fault: `hot: "1,204" is not a number: write digits alone, like 1204`},
			{Line: 3, Fault: "the first line names 3 columns, and it has 2"},
			{Line: 4, URI: "c/", Fault: `hot: "" is not a number: write digits alone, like 1204`},
			{Line: 5, URI: "d/", Hot: 1, Fault: `uv: "x" is not a number: write digits alone, like 1204`},
		}, ""},
		"more than a number can be": {"uri,hot\na/,9223372036854775808", []counter.Offset{{Line: 2, URI: "a/", Hot: 1<<63 - 1, Fault: `hot: "9223372036854775808" is not a number: write digits alone, like 1204`}}, ""},
		"empty":                     {"", nil, "it is empty"},
		"no header":                 {"https://a/,9\n", nil, `line 1: "https://a/" is no column`},
		"another separator":         {"uri;hot\na/;9\n", nil, `line 1: "uri;hot" is no column`},
		"twice":                     {"uri,hot,hot\n", nil, "line 1: column hot is there twice"},
		"missing":                   {"uri,uv\n", nil, "line 1: column hot is missing"},
		"no CSV":                    {"uri,hot\na/,9\n\"b/,1\n", nil, "line 3: it is no CSV"},
	} {
		got, err := moves.ReadCSV(strings.NewReader(c.file))
		if c.says != "" {
			require.ErrorContains(t, err, c.says, name)
			continue
		}
		require.NoError(t, err, name)
		assert.Equal(t, c.want, got, name)
	}
}

func packed(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.Bytes()
}

const xmlHead = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"

func urlset(pages ...string) string {
	return xmlHead + `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc> ` + strings.Join(pages, "\n</loc><lastmod>2026-01-01</lastmod></url><url><loc>") + `</loc></url></urlset>`
}

func TestSitemap(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, is := files[r.URL.Path]
		if !is {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(text)
	}))
	t.Cleanup(server.Close)
	index := func(of ...string) []byte {
		return []byte(xmlHead + `<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><sitemap><loc>` + strings.Join(of, `</loc></sitemap><sitemap><loc>`) + `</loc></sitemap></sitemapindex>`)
	}
	files["/one.xml"] = []byte(urlset("https://a.example/1?x=1&amp;y=2", "https://a.example/2"))
	files["/two.xml.gz"] = packed(urlset("https://b.example/"))
	files["/index.xml"] = index(server.URL+"/one.xml", server.URL+"/two.xml.gz", server.URL+"/index.xml", server.URL+"/one.xml")
	files["/astray.xml"] = index("/etc/passwd")
	files["/gone.xml"] = index(server.URL + "/nowhere.xml")
	files["/page.html"] = []byte("<!doctype html><html><body><p>not found<br></body></html>")
	files["/feed.xml"] = []byte("<rss></rss>")
	folder := t.TempDir()
	write := func(name string, text []byte) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, text, 0o600))
		return path
	}
	one := []string{"https://a.example/1?x=1&y=2", "https://a.example/2"}
	for from, want := range map[string][]string{
		server.URL + "/one.xml":                                                 one,
		server.URL + "/index.xml":                                               append(one[:2:2], "https://b.example/"),
		write("sitemap.xml", files["/one.xml"]):                                 one,
		write("index.xml", files["/index.xml"]):                                 append(one[:2:2], "https://b.example/"),
		write("pages.txt", []byte("\ufeff"+strings.Join(one, "\r\n\r\n")+"\n")): one,
		write("pages.txt.gz", packed(strings.Join(one, "\n"))):                  one,
		write("empty.txt", nil):                                                 nil,
	} {
		pages, err := moves.Sitemap(t.Context(), from)
		require.NoError(t, err, from)
		assert.Equal(t, want, pages, from)
	}
	for from, says := range map[string]string{
		server.URL + "/astray.xml":        "/etc/passwd: it begins with neither http",
		server.URL + "/gone.xml":          "/nowhere.xml: it is answered with 404",
		server.URL + "/page.html":         "it is neither a sitemap nor a list",
		server.URL + "/feed.xml":          "it is no sitemap, but <rss>",
		filepath.Join(folder, "none"):     "no such file",
		write("cut.gz", packed("x")[:12]): "unexpected EOF",
	} {
		_, err := moves.Sitemap(t.Context(), from)
		require.ErrorContains(t, err, says)
	}
}

// startRedis starts a Redis of the test's own, and returns its URL and a client.
func startRedis(t *testing.T) (string, *redis.Client) {
	t.Helper()
	url := dbtest.Redis(t)
	options, err := redis.ParseURL(url)
	require.NoError(t, err)
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return url, client
}

func md(text string) string {
	sum := md5.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// A visit as soxft/busuanzi 2.8 counts it by default, and as it did before, with another prefix.
func countNew(t *testing.T, c *redis.Client, host, path, who string) {
	t.Helper()
	site, page := md(host)[8:24], md(path)[8:24]
	for _, err := range []error{
		c.Incr(t.Context(), "bsz:site_pv:"+site).Err(), c.ZIncrBy(t.Context(), "bsz:page_pv:"+site, 1, page).Err(),
		c.PFAdd(t.Context(), "bsz:site_uv:"+site, who).Err(), c.PFAdd(t.Context(), "bsz:page_uv:"+site+":"+page, who).Err(),
	} {
		require.NoError(t, err)
	}
}

func countOld(t *testing.T, c *redis.Client, host, path, who string) {
	t.Helper()
	site, page := md(host), md(host+"&"+path)
	for _, err := range []error{
		c.Incr(t.Context(), "old:site_pv:"+site).Err(), c.ZIncrBy(t.Context(), "old:page_pv:"+site, 1, page).Err(),
		c.SAdd(t.Context(), "old:site_uv:"+site, who).Err(), c.SAdd(t.Context(), "old:page_uv:"+page, who).Err(),
	} {
		require.NoError(t, err)
	}
}

func TestReadBusuanzi(t *testing.T) {
	t.Parallel()
	url, client := startRedis(t)
	for prefix, count := range map[string]func(*testing.T, *redis.Client, string, string, string){"bsz": countNew, "old": countOld} {
		for i := range 30 {
			who := fmt.Sprint(i % 7)
			count(t, client, "blog.example", "/", who)
			if i%3 == 0 {
				count(t, client, "blog.example", "/日本/", who)
			}
			if i%10 == 0 {
				count(t, client, "blog.example", "/gone", who)
			}
		}
		count(t, client, "www.blog.example", "/", "1")
		b, err := moves.ReadBusuanzi(t.Context(), url, prefix, []string{
			"https://blog.example", "https://blog.example/?page=2", "http://Blog.example/%E6%97%A5%E6%9C%AC/#top", "https://blog.example/new", "https://www.blog.example/", "https://never.example/a",
		})
		require.NoError(t, err, prefix)
		assert.Equal(t, moves.Busuanzi{
			Offsets: []counter.Offset{
				{URI: "blog.example", Hot: 43, PV: 7, UV: 7}, {URI: "https://blog.example/", Hot: 30, PV: 7, UV: 7},
				{URI: "https://blog.example/%E6%97%A5%E6%9C%AC/", Hot: 10, PV: 7, UV: 7},
				{URI: "www.blog.example", Hot: 1, PV: 1, UV: 1}, {URI: "https://www.blog.example/", Hot: 1, PV: 1, UV: 1},
			},
			Without: []string{"https://blog.example/new", "never.example", "https://never.example/a"},
			Unknown: 1, Hot: 3,
		}, b, prefix)
	}
	// More visitors than visits can only be an estimate, or what a restored backup has.
	require.NoError(t, client.PFAdd(t.Context(), "bsz:site_uv:"+md("www.blog.example")[8:24], "2", "3").Err())
	b, err := moves.ReadBusuanzi(t.Context(), url, "bsz", []string{"https://www.blog.example/"})
	require.NoError(t, err)
	assert.Equal(t, counter.Offset{URI: "www.blog.example", Hot: 1, PV: 1, UV: 1}, b.Offsets[0])

	for _, c := range []struct{ url, page, says string }{
		{url, "/about", `"/about" is not the address of a page`},
		{"http://127.0.0.1:6379", "https://a/", "redis: it cannot be read: write it as redis://"},
		{strings.Replace(url, "secret-of", "another", 1), "https://a/", "WRONGPASS"},
		{"redis://127.0.0.1:1/0?max_retries=-1", "https://a/", "connection refused"},
	} {
		_, err := moves.ReadBusuanzi(t.Context(), c.url, "bsz", []string{c.page})
		require.ErrorContains(t, err, c.says)
		assert.NotContains(t, err.Error(), "secret")
	}
	require.NoError(t, client.Set(t.Context(), "bsz:site_pv:"+md("odd.example")[8:24], "many", 0).Err())
	_, err = moves.ReadBusuanzi(t.Context(), url, "bsz", []string{"https://odd.example/"})
	require.ErrorContains(t, err, "read odd.example of 127.0.0.1")
}
