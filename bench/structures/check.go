package structures

import (
	"fmt"
	"math"
)

// articleFalsePositives of the article's filter with twenty bits a key. Its hashes have no secret,
// so the numbers are exact; they were found with a second implementation.
var articleFalsePositives = map[int]int{10_000: 5, 100_000: 11, 1_000_000: 921, 10_000_000: 7_017}

func (r *Report) check() (checks []Check) {
	promise := func(exact, held bool, promise, got string, args ...any) {
		checks = append(checks, Check{promise, fmt.Sprintf(got, args...), held, exact})
	}
	if want, known := articleFalsePositives[r.Keys]; known {
		got := *r.row(nameArticle).FalsePositives
		promise(true, got == want, fmt.Sprintf("the article's filter has %d false positives", want), "%d", got)
	}
	own, fourteen := r.row(nameFootfall), r.row(nameFourteen)
	most := mostFalsePositives(r.Keys)
	promise(true, *own.FalsePositives <= most,
		fmt.Sprintf("the footfall filter has at most %d false positives", most), "%d", *own.FalsePositives)
	promise(true, own.Bytes <= int64(r.Bits)/8,
		fmt.Sprintf("it takes at most %d bytes", r.Bits/8), "%d", own.Bytes)
	promise(false, own.AddNs <= max(100, fourteen.AddNs/2),
		"its check-and-add takes at most 100 ns, or half the time of bits-and-blooms with 14 hashes",
		"%.0f ns, %.2f of %.0f ns", own.AddNs, own.AddNs/fourteen.AddNs, fourteen.AddNs)
	if two := r.row(nameTwoCores); two != nil {
		promise(false, two.AddNs < own.AddNs, "two cores are faster than one", "%.2f times as fast", own.AddNs/two.AddNs)
	}
	return checks
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

func (r *Report) row(name string) *Row {
	for i := range r.Rows {
		if r.Rows[i].Name == name {
			return &r.Rows[i]
		}
	}
	return nil
}
