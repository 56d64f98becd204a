// Package structures compares what can tell whether a key was seen before: the classic benchmark of
// a hash set, Bloom filters, a bitmap of hashes and HyperLogLog, over the keys ip_0, ip_1, …
// ip_(n-1). Each is checked for and added once, in that order, so whatever is said to be there
// already is a false positive.
package structures

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"time"

	"footfall/bench"
)

// Report is the outcome of a run.
type Report struct {
	Go     string  `json:"go"`
	CPUs   int     `json:"cpus"`
	Keys   int     `json:"keys"`
	Bits   int     `json:"filterBits"` // size given to every Bloom filter
	Rows   []Row   `json:"rows"`
	Checks []Check `json:"checks"`
}

// Row is what one structure did.
type Row struct {
	Name           string   `json:"name"`
	Stores         string   `json:"stores"` // and so, where its errors come from
	Bytes          int64    `json:"bytes"`
	KeyNs          *float64 `json:"keyNs"` // making one key; null where checking and adding includes it
	AddNs          float64  `json:"addNs"` // one check-and-add, the median over chunks of keys
	Count          int      `json:"count"` // how many different keys it says there were
	Error          float64  `json:"error"` // of Count, relative to the truth
	FalsePositives *int     `json:"falsePositives"`
}

// Check is a promise and what became of it.
type Check struct {
	Promise string `json:"promise"`
	Got     string `json:"got"`
	Held    bool   `json:"held"`
	// Exact ones make Run fail. The others depend on the machine and on what else it is doing.
	Exact bool `json:"exact"`
}

// How many keys can be compared.
const (
	usualKeys  = 10_000_000
	MinKeys    = 1_000
	MaxKeys    = 100_000_000 // the article's places are numbers of 31 bits
	bitsPerKey = 20          // 200 million bits for ten million keys
)

// Run measures all structures on so many keys, from MinKeys to MaxKeys, one after the other so that
// none shares the processor's caches with another. It tells which comes next. An error that wraps
// bench.ErrUntrue comes with a report of which an exact check does not hold.
func Run(ctx context.Context, keys int, progress func(string)) (*Report, error) {
	report := &Report{Go: runtime.Version(), CPUs: runtime.GOMAXPROCS(0), Keys: keys, Bits: keys * bitsPerKey}
	for _, c := range contenders(report.Keys, report.Bits) {
		progress(fmt.Sprintf("%s, %d keys", c.name, report.Keys))
		row, err := measure(ctx, c, report.Keys)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		report.Rows = append(report.Rows, row)
	}
	report.Checks = report.check()
	for _, c := range report.Checks {
		if c.Exact && !c.Held {
			return report, fmt.Errorf("%w: %s: got %s", bench.ErrUntrue, c.Promise, c.Got)
		}
	}
	return report, nil
}

// measure feeds all keys to the contender, in chunks so that a moment's disturbance does not count.
func measure(ctx context.Context, c contender, keys int) (Row, error) {
	heap := liveHeap()
	s, err := c.open()
	if err != nil {
		return Row{}, err
	}
	chunk := min(keys, max(keys/100, 10_000))
	var keyNs, addNs []float64
	count := 0
	for at := 0; at < keys; at += chunk {
		if err := ctx.Err(); err != nil {
			return Row{}, err
		}
		part := makeKeys(at, min(at+chunk, keys))
		keyNs = append(keyNs, perKey(len(part), func() { s.prepare(part) }))
		addNs = append(addNs, perKey(len(part), func() { count += s.checkAndAdd() }))
	}
	s.prepare(nil) // lets go of the last chunk
	row := Row{Name: c.name, Stores: c.stores, AddNs: median(addNs), Count: count, Bytes: liveHeap() - heap}
	if estimator, ok := s.(interface{ estimate() int }); ok {
		row.Count = estimator.estimate()
	} else {
		wrong := keys - count
		row.FalsePositives = &wrong
	}
	if outside, ok := s.(interface{ bytes() int64 }); ok {
		row.Bytes = outside.bytes()
	}
	if !c.hashesInside {
		ns := median(keyNs)
		row.KeyNs = &ns
	}
	row.Error = float64(row.Count-keys) / float64(keys)
	runtime.KeepAlive(s)
	return row, nil
}

// makeKeys is ip_from … ip_(to-1), all in one piece of memory.
func makeKeys(from, to int) []string {
	keys := make([]string, 0, to-from)
	text := make([]byte, 0, (to-from)*len("ip_99999999"))
	var ends []int
	for i := from; i < to; i++ {
		text = strconv.AppendInt(append(text, "ip_"...), int64(i), 10)
		ends = append(ends, len(text))
	}
	all, start := string(text), 0
	for _, end := range ends {
		keys = append(keys, all[start:end])
		start = end
	}
	return keys
}

func perKey(keys int, do func()) float64 {
	start := time.Now()
	do()
	return float64(time.Since(start)) / float64(keys)
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// liveHeap is the memory of what is reachable now.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // the first one may leave sweeping and clean-ups behind
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int64(memory.HeapAlloc)
}
