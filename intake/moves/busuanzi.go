package moves

import (
	"context"
	"crypto/md5" //nolint:gosec // by which busuanzi names what it has counted
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"

	"footfall/counter"
)

// Busuanzi is what a database of soxft/busuanzi has of some pages and their sites.
type Busuanzi struct {
	Offsets []counter.Offset
	Without []string // pages and sites of which it has nothing
	Unknown int      // pages that it has, and that are not among those asked for: only their hashes are there
	Hot     int64    // visits of these
}

// ReadBusuanzi reads the numbers of pages, and of their sites, from the Redis of a busuanzi whose
// keys begin with a prefix. page_pv and site_pv are all visits, which is hot.
func ReadBusuanzi(ctx context.Context, address, prefix string, pages []string) (b Busuanzi, err error) {
	options, err := redis.ParseURL(address)
	if err != nil {
		return b, fault("redis: it cannot be read: write it as redis://user:password@host:6379/0") // err has the password
	}
	options.DisableIdentity = true // it asks for nothing that an old server does not know
	redis.SetLogger(quiet{})
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	bySite, order := map[string][]string{}, []string{}
	seen := map[string]bool{}
	for _, page := range pages {
		u, err := url.Parse(page)
		if err != nil || u.Host == "" {
			return b, fault("sitemap: %.256q is not the address of a page", page)
		}
		if u.Path == "" { // as a browser asks for it
			u.Path = "/"
		}
		u.Scheme, u.Host, u.User, u.RawQuery, u.Fragment, u.RawFragment = "https", strings.ToLower(u.Host), nil, "", "", ""
		if seen[u.Host+u.Path] {
			continue
		}
		seen[u.Host+u.Path] = true
		if bySite[u.Host] == nil {
			order = append(order, u.Host)
		}
		bySite[u.Host] = append(bySite[u.Host], u.String())
	}
	r := reading{client: client, prefix: prefix, into: &b}
	for _, host := range order {
		if err := r.site(ctx, host, bySite[host]); err != nil {
			return b, fmt.Errorf("read %s of %s: %w", host, options.Addr, err)
		}
	}
	return b, nil
}

// quiet keeps the client from logging what is told as an error.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// reading is the reading of one database.
type reading struct {
	client *redis.Client
	prefix string
	into   *Busuanzi
}

// sum is how busuanzi names a host or a path: its MD5, of which newer ones use the middle.
func sum(text string, short bool) string {
	hash := md5.Sum([]byte(text)) //nolint:gosec // as busuanzi does
	name := hex.EncodeToString(hash[:])
	if short {
		return name[8:24]
	}
	return name
}

func (r *reading) key(parts ...string) string {
	return r.prefix + ":" + strings.Join(parts, ":")
}

// site reads a site and its pages. How names are hashed is a setting of busuanzi: the one by which
// the site is there holds for its pages.
func (r *reading) site(ctx context.Context, host string, pages []string) error {
	short := true
	var hot int64
	var err error
	for _, short = range []bool{true, false} {
		if hot, err = r.client.Get(ctx, r.key("site_pv", sum(host, short))).Int64(); !errors.Is(err, redis.Nil) {
			break
		}
	}
	if errors.Is(err, redis.Nil) {
		r.into.Without = append(append(r.into.Without, host), pages...)
		return nil
	}
	if err != nil {
		return err
	}
	name := sum(host, short)
	uv, err := r.visitors(ctx, r.key("site_uv", name))
	if err != nil {
		return err
	}
	r.found(host, hot, uv)
	visits, err := r.visits(ctx, r.key("page_pv", name))
	if err != nil {
		return err
	}
	for _, page := range pages {
		if err := r.page(ctx, host, name, page, short, visits); err != nil {
			return err
		}
	}
	for _, hot := range visits {
		r.into.Unknown++
		r.into.Hot += hot
	}
	return nil
}

// visits are those of all pages of a site, by the names of these.
func (r *reading) visits(ctx context.Context, key string) (map[string]int64, error) {
	all, err := r.client.ZRangeWithScores(ctx, key, 0, -1).Result()
	visits := make(map[string]int64, len(all))
	for _, one := range all {
		visits[fmt.Sprint(one.Member)] = int64(one.Score)
	}
	return visits, err
}

// page reads a page, and takes it out of the visits. Older databases name it by host and path, and
// its visitors without the site.
func (r *reading) page(ctx context.Context, host, site, page string, short bool, visits map[string]int64) error {
	u, err := url.Parse(page)
	if err != nil {
		return err
	}
	for _, named := range []string{u.Path, host + "&" + u.Path} {
		name := sum(named, short)
		hot, is := visits[name]
		if !is {
			continue
		}
		delete(visits, name)
		uv, err := r.visitors(ctx, r.key("page_uv", site, name), r.key("page_uv", name))
		if err != nil {
			return err
		}
		r.found(page, hot, uv)
		return nil
	}
	r.into.Without = append(r.into.Without, page)
	return nil
}

// visitors is how many visitors the first of some keys has that is there: a HyperLogLog, or a set
// where the database is old.
func (r *reading) visitors(ctx context.Context, keys ...string) (int64, error) {
	for _, key := range keys {
		kind, err := r.client.Type(ctx, key).Result()
		switch {
		case err != nil:
			return 0, err
		case kind == "set":
			return r.client.SCard(ctx, key).Result()
		case kind == "string":
			return r.client.PFCount(ctx, key).Result()
		}
	}
	return 0, nil
}

// found notes numbers. A HyperLogLog may estimate more visitors than there were visits.
func (r *reading) found(uri string, hot, uv int64) {
	uv = min(uv, hot)
	r.into.Offsets = append(r.into.Offsets, counter.Offset{URI: uri, Hot: hot, PV: uv, UV: uv})
}
