// Package structures compares what can tell whether a key was seen before: the classic benchmark of
// a hash set, Bloom filters, a bitmap of hashes and HyperLogLog, over the keys ip_0, ip_1, …
// ip_(n-1). Each is checked for and added once, in that order, so whatever is said to be there
// already is a false positive.
package structures

import (
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"strconv"
	"text/tabwriter"
	"time"

	"footfall/bench"
)

// Report is the outcome of a run.
type Report struct {
	Go   string `json:"go"`
	CPUs int    `json:"cpus"`
	Keys int    `json:"keys"`
	Bits int    `json:"filterBits"` // size given to every Bloom filter
	Rows []Row  `json:"rows"`
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

// How many keys can be compared.
const (
	usualKeys  = 10_000_000
	MinKeys    = 1_000
	MaxKeys    = 100_000_000 // the article's places are numbers of 31 bits
	bitsPerKey = 20          // 200 million bits for ten million keys
)

// Run measures all structures on so many keys, from MinKeys to MaxKeys, one after the other so that
// none shares the processor's caches with another. It says which comes next. An error that wraps
// bench.ErrUntrue comes with a report in which something is not as it must be.
func Run(ctx context.Context, keys int, progress func(string)) (*Report, error) {
	report := &Report{Go: runtime.Version(), CPUs: runtime.GOMAXPROCS(0), Keys: keys, Bits: keys * bitsPerKey}
	for _, c := range contenders() {
		progress(fmt.Sprintf("%s, %d keys", c.name, keys))
		row, err := report.measure(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		report.Rows = append(report.Rows, row)
	}
	err := report.check()
	return report, err
}

// measure feeds all keys to the contender, in chunks so that a moment's disturbance does not count.
func (r *Report) measure(ctx context.Context, c contender) (Row, error) {
	heap := liveHeap()
	s, err := c.open(r.Keys, r.Bits)
	if err != nil {
		return Row{}, err
	}
	chunk := min(r.Keys, max(r.Keys/100, 10_000))
	var keyNs, addNs []float64
	count := 0
	for at := 0; at < r.Keys; at += chunk {
		if err := ctx.Err(); err != nil {
			return Row{}, err
		}
		part := makeKeys(at, min(at+chunk, r.Keys))
		keyNs = append(keyNs, perKey(len(part), func() { s.prepare(part) }))
		addNs = append(addNs, perKey(len(part), func() { count += s.checkAndAdd() }))
	}
	s.prepare(nil) // lets go of the last chunk
	row := Row{Name: c.name, Stores: c.stores, AddNs: bench.SpreadOf(addNs).Median, Count: count, Bytes: liveHeap() - heap}
	if s.estimate != nil {
		row.Count = s.estimate()
	} else {
		wrong := r.Keys - count
		row.FalsePositives = &wrong
	}
	if s.bytes != nil {
		row.Bytes = s.bytes()
	}
	if !c.hashesInside {
		ns := bench.SpreadOf(keyNs).Median
		row.KeyNs = &ns
	}
	row.Error = float64(row.Count-r.Keys) / float64(r.Keys)
	runtime.KeepAlive(s)
	return row, nil
}

// check compares what does not depend on the machine with what it must be.
func (r *Report) check() error {
	for _, row := range r.Rows {
		switch want, exact := articleFalsePositives[r.Keys]; {
		case row.Name == nameArticle && exact && *row.FalsePositives != want:
			return fmt.Errorf("%w: the article's filter has %d false positives, and must have %d", bench.ErrUntrue, *row.FalsePositives, want)
		case row.Name == nameFootfall && *row.FalsePositives > mostFalsePositives(r.Keys):
			return fmt.Errorf("%w: the footfall filter has %d false positives, and may have %d", bench.ErrUntrue, *row.FalsePositives, mostFalsePositives(r.Keys))
		case row.Name == nameFootfall && row.Bytes > int64(r.Bits)/8:
			return fmt.Errorf("%w: the footfall filter takes %d bytes, and may take %d", bench.ErrUntrue, row.Bytes, r.Bits/8)
		}
	}
	return nil
}

// mostFalsePositives that the footfall filter may have: a hundred in ten million keys, where 66 are
// expected. Fewer keys scatter more; what is allowed then is crossed by chance once in some ten
// thousand runs.
func mostFalsePositives(keys int) int {
	if keys >= usualKeys {
		return keys / 100_000
	}
	expected := float64(keys) * 66 / usualKeys
	return int(expected + 4*math.Sqrt(expected) + 4)
}

// Print writes the report as a table.
func (r *Report) Print(w io.Writer) {
	fmt.Fprintf(w, "%s keys ip_0, ip_1, …; filters of %s bits; %s, %d CPUs\n\n", grouped(r.Keys), grouped(r.Bits), r.Go, r.CPUs)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "KB\tbytes/key\tkey ns\tadd ns\tfalse pos.\tcount\terror\t  structure\t")
	for _, row := range r.Rows {
		key, wrong := "(in add)", bench.Untold
		if row.KeyNs != nil {
			key = fmt.Sprintf("%.0f", *row.KeyNs)
		}
		if row.FalsePositives != nil {
			wrong = grouped(*row.FalsePositives)
		}
		fmt.Fprintf(table, "%s\t%.3g\t%s\t%.0f\t%s\t%s\t%+.2g %%\t  %s\t\n", bench.Grouped(float64(row.Bytes)/1000),
			float64(row.Bytes)/float64(r.Keys), key, row.AddNs, wrong, grouped(row.Count), 100*row.Error, row.Name)
	}
	_ = table.Flush() // w is a person's
	for _, row := range r.Rows {
		fmt.Fprintf(w, "  %s: %s\n", row.Name, row.Stores)
	}
}

func grouped(n int) string { return bench.Grouped(float64(n)) }

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

// liveHeap is the memory of what is reachable now.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // the first one may leave sweeping and clean-ups behind
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int64(memory.HeapAlloc)
}
