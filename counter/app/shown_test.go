package app

import (
	"fmt"
	"runtime"
	"testing"

	"footfall/db"
	"footfall/visit"
)

// BenchmarkShown measures the time and memory that 100,000 offsets cost a response.
func BenchmarkShown(b *testing.B) {
	const many = 100_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	read := newOffsets(&db.Access{OffsetsEpoch: "1", Offsets: func() (rows []db.OffsetsAllRow) {
		for i := range many {
			rows = append(rows, db.OffsetsAllRow{AppID: 1, Uri: fmt.Sprintf("blog.example/2026/%d/a-title-of-some-words", i), Hot: 3, Pv: 2, Uv: 1})
		}
		return rows
	}()}, &offsets{})
	runtime.GC()
	runtime.ReadMemStats(&after)
	for name, a := range map[string]*App{"none": {}, "100,000": {offsets: read.ofApps[1]}} {
		b.Run(name, func(b *testing.B) {
			targets := make([]visit.Target, 1024)
			for i := range targets {
				targets[i] = visit.Target{Site: "blog.example", Page: fmt.Sprintf("blog.example/2026/%d/a-title-of-some-words", i*97)}
			}
			var sum int64
			for i := range b.N {
				sum += a.AddOffsets(targets[i%1024], visit.Answer{Page: visit.Counts{Hot: 1}}).Page.Hot
			}
			if sum == 0 {
				b.Fatal("nothing was shown")
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MB")
		})
	}
	runtime.KeepAlive(read)
}
