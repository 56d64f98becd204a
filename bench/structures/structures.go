// Package structures compares data structures that can check whether a key was added before: a hash set, Bloom filters, and
// a bitmap of hashes. The keys are ip_0, ip_1, … ip_(n-1). Each key is checked once, and then added. So if a structure
// reports that a key was added before, the report is wrong: it is a false positive.
package structures

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	reference "github.com/bits-and-blooms/bloom/v3"
	"github.com/cespare/xxhash/v2"

	"footfall/bench"
	"footfall/record/bloom"
)

// Report contains the results of a comparison of structures.
type Report struct {
	Machine string
	Keys    int
	Rows    []Row
}

// Row contains the results for one structure.
type Row struct {
	Name   string
	Stores string
	Bytes  int64
	AddNs  float64 // time to hash, check and add one key, in nanoseconds: median over chunks of keys
	Count  int     // number of keys that the structure reported as new
}

// bitsPerKey is the size of every Bloom filter in bits, divided by the number of keys. The positions in articleFilter have
// 31 bits, so at most 100 million keys are possible.
const bitsPerKey = 20

// Run measures all structures with the same keys. It measures one structure after the other, so that they do not share the
// processor's caches. keys is the number of keys, and must be at least 1,000. If a result is wrong, Run returns both the
// report and an error that wraps bench.ErrUntrue.
func Run(ctx context.Context, keys int, doing func(format string, of ...any)) (*Report, error) {
	report := &Report{Machine: bench.Machine(), Keys: keys}
	for _, c := range contenders {
		doing("%s, %d keys", c.name, keys)
		row, err := measure(ctx, c, keys)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		report.Rows = append(report.Rows, row)
	}
	err := report.check()
	return report, err
}

// measure adds all keys to a structure. It measures the time for each chunk of keys separately, so that a short disturbance
// does not affect the median.
func measure(ctx context.Context, c contender, keys int) (Row, error) {
	heap := bench.LiveHeap()
	s, err := c.open(keys, keys*bitsPerKey)
	if err != nil {
		return Row{}, err
	}
	chunk := min(keys, max(keys/100, 10_000))
	var addNs []float64
	row := Row{Name: c.name, Stores: c.stores}
	for at := 0; at < keys; at += chunk {
		part := makeKeys(at, min(at+chunk, keys))
		began := time.Now()
		for _, key := range part {
			if s.add(key) {
				row.Count++
			}
		}
		addNs = append(addNs, float64(time.Since(began))/float64(len(part)))
		if ctx.Err() != nil {
			return Row{}, ctx.Err()
		}
	}
	row.AddNs, row.Bytes = bench.SpreadOf(addNs).Median, bench.LiveHeap()-heap
	if s.bytes != nil {
		row.Bytes = s.bytes()
	}
	runtime.KeepAlive(s)
	return row, nil
}

// check compares the results with the expected ones, except results that depend on the machine.
func (r *Report) check() error {
	var faults []string
	for _, row := range r.Rows {
		wrong, most := r.Keys-row.Count, int64(r.Keys)*bitsPerKey/8
		may, checked := falsePositives[row.Name][r.Keys] // may is {0, 0} for the hash set, which makes no errors
		if (checked || row.Name == nameSet) && (wrong < may[0] || wrong > may[1]) {
			faults = append(faults, fmt.Sprintf("%s: %d false positives, but %d to %d are expected", row.Name, wrong, may[0], may[1]))
		}
		if row.Name == nameFootfall && row.Bytes > most {
			faults = append(faults, fmt.Sprintf("%s: it takes %d bytes, but may take only %d", row.Name, row.Bytes, most))
		}
	}
	return bench.Untrue(faults)
}

// Print writes the report as a table.
func (r *Report) Print(w io.Writer) {
	t := bench.Table{{"structure", "KB", "bytes/key", "add ns", "false positives", "%"}}
	for _, row := range r.Rows {
		wrong := float64(r.Keys - row.Count)
		t = append(t, []string{
			row.Name, bench.Grouped(float64(row.Bytes) / 1000), fmt.Sprintf("%.3g", float64(row.Bytes)/float64(r.Keys)),
			bench.Grouped(row.AddNs), bench.Grouped(wrong), fmt.Sprintf("%+.2g", -100*wrong/float64(r.Keys)),
		})
	}
	fmt.Fprintf(w, "\n%s\n%s keys ip_0, ip_1, …; filters of %d bits per key\n\n%s", r.Machine,
		bench.Grouped(float64(r.Keys)), bitsPerKey, t)
	for _, row := range r.Rows {
		fmt.Fprintf(w, "  %s: %s\n", row.Name, row.Stores)
	}
}

// makeKeys returns the keys ip_from to ip_(to-1).
func makeKeys(from, to int) (keys []string) {
	for i := from; i < to; i++ {
		keys = append(keys, "ip_"+strconv.Itoa(i))
	}
	return keys
}

// structure is a data structure that is being measured. Its memory is freed when there is no reference to it.
type structure struct {
	add   func(key string) (fresh bool)
	bytes func() int64 // returns the size of the structure if a part of it is outside the Go heap; otherwise nil
}

type contender struct {
	name, stores string
	open         func(keys, bits int) (structure, error)
}

// Names of the structures whose results are checked.
const (
	nameArticle  = "article's filter, 4 hashes"
	nameFootfall = "footfall filter"
	nameSet      = "hash set"
)

// filterError is the configured error rate of the footfall filter. With this rate, the filter uses twenty bits per key,
// like the other filters.
const filterError = 0.0000748

var contenders = []contender{
	{nameSet, "every key: exact", func(int, int) (structure, error) {
		keys := map[string]struct{}{}
		return structure{add: func(key string) bool {
			_, seen := keys[key]
			keys[key] = struct{}{}
			return !seen
		}}, nil
	}},
	{nameArticle, "4 bits per key, by 31-bit hashes that are not independent", func(_, bits int) (structure, error) {
		return structure{add: newArticleFilter(bits).add}, nil
	}},
	{"bits-and-blooms, 4 hashes", "4 bits per key", referenceFilter(4)},
	{"bits-and-blooms, 14 hashes", "14 bits per key", referenceFilter(14)},
	{nameFootfall, "2 bits in each of 7 words per key; for concurrent use", func(keys, bits int) (structure, error) {
		filter, err := bloom.New(bloom.Config{Keys: uint64(keys), Error: filterError, MaxBytes: int64(bits) / 8})
		if err != nil {
			return structure{}, err
		}
		return structure{
			add:   func(key string) bool { return filter.Add(bloom.String(key)) },
			bytes: func() int64 { return filter.Stats().Bytes },
		}, nil
	}},
	{"roaring bitmap", "32-bit hashes: keys with the same hash are treated as one", func(int, int) (structure, error) {
		bitmap := roaring.New()
		return structure{add: func(key string) bool { return bitmap.CheckedAdd(uint32(xxhash.Sum64String(key))) }}, nil
	}},
}

func referenceFilter(hashes uint) func(keys, bits int) (structure, error) {
	return func(_, bits int) (structure, error) {
		filter := reference.New(uint(bits), hashes)
		return structure{add: func(key string) bool { return !filter.TestAndAddString(key) }}, nil
	}
}

// articleFilter is the Bloom filter from the article that first described this comparison. It uses the article's four hash
// functions, which return 31 bits. Two of them are the same function with different suffixes of the key, and a third one
// reads only half of the key. So a key's four bits are not independent, and the filter is wrong three times as often as a
// filter with four good hash functions.
type articleFilter struct {
	bits []uint64
	size uint32
}

func newArticleFilter(bits int) *articleFilter {
	return &articleFilter{make([]uint64, (bits+63)/64), uint32(bits)}
}

// add adds a key, and reports whether the key is certainly new.
func (f *articleFilter) add(key string) (fresh bool) {
	for _, hash := range articleHashes(key) {
		i := hash % f.size
		fresh = fresh || f.bits[i/64]>>(i%64)&1 == 0
		f.bits[i/64] |= 1 << (i % 64)
	}
	return fresh
}

// falsePositives contains the expected minimum and maximum number of false positives, by structure and number of keys. The
// article's filter always has the same number, because its hashes have no seed. A second implementation has produced the
// same numbers. The footfall filter has 66 on average with ten million keys. Its maximum allows for random variation.
var falsePositives = map[string]map[int][2]int{
	nameArticle:  {10_000: {5, 5}, 100_000: {11, 11}, 1_000_000: {921, 921}, 10_000_000: {7_017, 7_017}},
	nameFootfall: {10_000: {0, 5}, 100_000: {0, 8}, 1_000_000: {0, 20}, 10_000_000: {0, 100}},
}

func articleHashes(key string) [4]uint32 {
	return [4]uint32{multiplied(key, 5381, 33), multiplied(key+"key2", 0, 131), alternating(key + "keykey3"),
		multiplied(key+"keykeyke4", 5381, 33)}
}

// The article's hash functions use signed integers that overflow, like Go's int32. At the end, they clear the sign bit.

// multiplied computes the hash djb2 if h is 5381 and factor is 33. It computes the hash BKDR if h is 0 and factor is 131.
func multiplied(s string, h, factor int32) uint32 {
	for i := range len(s) {
		h = h*factor + int32(s[i])
	}
	return uint32(h) & 0x7fffffff
}

// alternating computes the article's third hash. It reads only half of the text, like the original: the loop's limit
// shrinks while its index grows.
func alternating(s string) uint32 {
	h := int32(0)
	for i, left := 0, len(s); i < left; i, left = i+1, left-1 {
		c := int32(s[i])
		if i%2 == 0 {
			h ^= (h << 7) ^ c ^ (h >> 3)
		} else {
			h ^= ^((h << 11) ^ c ^ (h >> 5))
		}
	}
	return uint32(h) & 0x7fffffff
}
