// Package structures compares what can tell whether a key was seen before: the classic benchmark of
// a hash set, Bloom filters, a bitmap of hashes, buckets, HyperLogLog and rows, over the keys ip_0,
// ip_1, … ip_(n-1). Each is checked for and added once, in that order, so whatever is said to be there
// already is a false positive.
package structures

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"

	"footfall/bench"
)

// Report is what each structure did with so many keys.
type Report struct {
	Keys int   `json:"keys"`
	Rows []Row `json:"rows"`
}

// Row is what one structure did.
type Row struct {
	Name   string  `json:"name"`
	Stores string  `json:"stores"`
	Bytes  int64   `json:"bytes"`
	KeyNs  float64 `json:"keyNs"` // making one key; 0 where checking and adding includes it
	AddNs  float64 `json:"addNs"` // one check-and-add, the median over chunks of keys
	Count  int     `json:"count"` // how many different keys it says there were
}

// How many keys can be compared.
const (
	MinKeys    = 1_000
	MaxKeys    = 100_000_000 // the article's places are numbers of 31 bits
	bitsPerKey = 20          // given to every Bloom filter: 200 million bits for ten million keys
)

// Run measures all structures on so many keys, from MinKeys to MaxKeys, one after the other so that
// none shares the processor's caches with another. An error that wraps bench.ErrUntrue comes with a
// report in which something is not as it must be.
func Run(ctx context.Context, keys int, o bench.Options) (_ *Report, err error) {
	report := &Report{Keys: keys}
	server, err := bench.OpenServer(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	for _, c := range append(contenders[:len(contenders):len(contenders)], rows(ctx, server)) {
		o.Doing("%s, %d keys", c.name, keys)
		row, err := measure(ctx, c, keys)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		report.Rows = append(report.Rows, row)
	}
	err = report.check()
	return report, err
}

// measure feeds all keys to the contender, in chunks so that a moment's disturbance does not count.
func measure(ctx context.Context, c contender, keys int) (Row, error) {
	heap := bench.LiveHeap()
	s, err := c.open(keys, keys*bitsPerKey)
	if err != nil {
		return Row{}, err
	}
	chunk := min(keys, max(keys/100, 10_000))
	var keyNs, addNs []float64
	row := Row{Name: c.name, Stores: c.stores}
	for at := 0; at < keys; at += chunk {
		if err := ctx.Err(); err != nil {
			return Row{}, err
		}
		part := makeKeys(at, min(at+chunk, keys))
		making, adding, fresh, err := s.feed(part)
		if err != nil {
			return Row{}, err
		}
		keyNs, addNs = append(keyNs, float64(making)/float64(len(part))), append(addNs, float64(adding)/float64(len(part)))
		row.Count += fresh
	}
	row.AddNs, row.Bytes = bench.SpreadOf(addNs).Median, bench.LiveHeap()-heap
	if s.estimate != nil {
		row.Count = s.estimate()
	}
	if s.bytes != nil {
		row.Bytes = s.bytes()
	}
	if !c.hashesInside {
		row.KeyNs = bench.SpreadOf(keyNs).Median
	}
	runtime.KeepAlive(s)
	return row, nil
}

// check compares what does not depend on the machine with what it must be.
func (r *Report) check() error {
	for _, row := range r.Rows {
		wrong := r.Keys - row.Count
		switch want, checked := falsePositives[r.Keys]; {
		case row.Name == nameArticle && checked && wrong != want.article:
			return fmt.Errorf("%w: the article's filter has %d false positives, and must have %d", bench.ErrUntrue, wrong, want.article)
		case row.Name == nameBuckets && checked && wrong != want.buckets, row.Name == nameMended && checked && wrong != want.mended:
			return fmt.Errorf("%w: %s: %d false positives; there must be %d, or %d with all bits", bench.ErrUntrue, row.Name, wrong, want.buckets, want.mended)
		case slices.Contains([]string{nameSet, nameExact, nameRows}, row.Name) && wrong != 0:
			return fmt.Errorf("%w: %s: %d false positives", bench.ErrUntrue, row.Name, wrong)
		case row.Name == nameFootfall && checked && wrong > want.footfall:
			return fmt.Errorf("%w: the footfall filter has %d false positives, and may have %d", bench.ErrUntrue, wrong, want.footfall)
		case row.Name == nameFootfall && row.Bytes > int64(r.Keys)*bitsPerKey/8:
			return fmt.Errorf("%w: the footfall filter takes %d bytes, and may take %d", bench.ErrUntrue, row.Bytes, r.Keys*bitsPerKey/8)
		}
	}
	return nil
}

// Print writes the report as a table.
func (r *Report) Print(w io.Writer) {
	t := bench.Table{{"structure", "KB", "bytes/key", "key ns", "add ns", "false positives or error", "%"}}
	for _, row := range r.Rows {
		wrong := float64(r.Keys - row.Count)
		t = append(t, []string{
			row.Name, bench.Grouped(float64(row.Bytes) / 1000), fmt.Sprintf("%.3g", float64(row.Bytes)/float64(r.Keys)), bench.OrNone(row.KeyNs, bench.Grouped),
			bench.Grouped(row.AddNs), bench.Grouped(wrong), fmt.Sprintf("%+.2g", -100*wrong/float64(r.Keys)),
		})
	}
	fmt.Fprintf(w, "%s keys ip_0, ip_1, …; filters of %d bits a key; %s, %d CPUs\n\n%s", bench.Grouped(float64(r.Keys)), bitsPerKey, runtime.Version(), runtime.GOMAXPROCS(0), t)
	for _, row := range r.Rows {
		fmt.Fprintf(w, "  %s: %s\n", row.Name, row.Stores)
	}
}

// makeKeys is ip_from … ip_(to-1).
func makeKeys(from, to int) (keys []string) {
	for i := from; i < to; i++ {
		keys = append(keys, "ip_"+strconv.Itoa(i))
	}
	return keys
}
