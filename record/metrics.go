package record

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics of a recorder. No label bears an address or a URI.
type metrics struct {
	visits  *prometheus.CounterVec // by outcome
	faults  *prometheus.CounterVec // of batches, by what they met
	sizes   prometheus.Histogram
	flushes prometheus.Histogram
	waiting prometheus.Gauge

	other prometheus.Counter

	asked      prometheus.Counter
	skipped    *prometheus.CounterVec // by what spared it
	recalled   *prometheus.CounterVec // by whether the memory knew
	wrongHints prometheus.Counter
	dropped    prometheus.Counter
	remembers  bool // there is a memory
	register   promauto.Factory
}

func newMetrics(r prometheus.Registerer) *metrics {
	if r == nil {
		r = prometheus.NewRegistry() // read by nobody
	}
	make := promauto.With(r)
	return &metrics{
		register: make,
		visits: make.NewCounterVec(prometheus.CounterOpts{
			Name: "footfall_visits_total",
			Help: "Visits by what became of them: counted, refused (not counted), lost (counted or not, its numbers unknown).",
		}, []string{"outcome"}),
		faults: make.NewCounterVec(prometheus.CounterOpts{
			Name: "footfall_batch_faults_total",
			Help: "Batches that did not commit at once, by what they met.",
		}, []string{"fault"}),
		sizes: make.NewHistogram(prometheus.HistogramOpts{
			Name: "footfall_batch_visits", Help: "Visits in a batch.", Buckets: prometheus.ExponentialBuckets(1, 2, 13),
		}),
		flushes: make.NewHistogram(prometheus.HistogramOpts{
			Name: "footfall_batch_seconds", Help: "Time from taking a batch up to its answers.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
		}),
		waiting: make.NewGauge(prometheus.GaugeOpts{
			Name: "footfall_visits_waiting", Help: "Visits accepted and not yet answered.",
		}),
		other: make.NewCounter(prometheus.CounterOpts{
			Name: "footfall_visits_other_total",
			Help: "Visits counted for the page (other) of their site, since their app had had its new pages of the day.",
		}),
		asked: make.NewCounter(prometheus.CounterOpts{
			Name: "footfall_existence_queries_total",
			Help: "Keys looked up in the tables to decide whether a visitor, or his day, is new, in batches that committed. Every visit has two: of its page and of its site.",
		}),
		skipped: make.NewCounterVec(prometheus.CounterOpts{
			Name: "footfall_existence_queries_skipped_total",
			Help: "Keys that were not looked up, by what spared it: batch (the same key came before in it), memory (known to be counted), " +
				"filter (surely new).",
		}, []string{"by"}),
		recalled: make.NewCounterVec(prometheus.CounterOpts{
			Name: "footfall_memory_recalls_total",
			Help: "What the memory of recent visitors was asked for, by result: hit (known to be counted on the day) or miss.",
		}, []string{"result"}),
		wrongHints: make.NewCounter(prometheus.CounterOpts{
			Name: "footfall_filter_wrong_hints_total",
			Help: "Batches written a second time because the filter had called a visitor new who had been counted by another instance.",
		}),
		dropped: make.NewCounter(prometheus.CounterOpts{
			Name: "footfall_caches_dropped_total",
			Help: "How often memory and filter began anew: after an erasure, a restore, or a connection that was lost under a batch.",
		}),
	}
}

// spared counts what a batch that has committed asked the tables for, and what it did not have to.
func (m *metrics) spared(s *savings) {
	m.asked.Add(float64(s.asked))
	m.skipped.WithLabelValues("batch").Add(float64(s.batch))
	m.skipped.WithLabelValues("memory").Add(float64(s.memory))
	m.skipped.WithLabelValues("filter").Add(float64(s.filter))
	if m.remembers {
		m.recalled.WithLabelValues("hit").Add(float64(s.memory))
		m.recalled.WithLabelValues("miss").Add(float64(s.asked + s.filter))
	}
}

// describe shows the size and state of the caches at the moment of a scrape.
func (m *metrics) describe(c *caches) {
	m.remembers = c.options.Memory > 0
	gauge := func(name, help string, value func(*generation) float64) {
		m.register.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			if now := c.current.Load(); now != nil {
				return value(now)
			}
			return 0
		})
	}
	gauge("footfall_filter_ready", "1 when the filter has read every visitor of the tables, and gives hints; 0 before, and where it is off.",
		func(now *generation) float64 { return flag(now.filter != nil && now.filter.ready.Load()) })
	gauge("footfall_filter_saturated", "1 when the filter's memory is used up, so that it is of no use.",
		func(now *generation) float64 { return flag(now.filter.stats().Saturated) })
	gauge("footfall_filter_keys", "(target, visitor) pairs in the filter.",
		func(now *generation) float64 { return float64(now.filter.stats().Keys) })
	gauge("footfall_filter_bytes", "Memory of the filter.",
		func(now *generation) float64 { return float64(now.filter.stats().Bytes) })
	gauge("footfall_filter_fill", "Share of the filter's bits that are set, estimated from a sample.",
		func(now *generation) float64 { return now.filter.stats().Fill })
	gauge("footfall_filter_error", "Chance that the filter takes a new visitor for a known one, estimated from a sample.",
		func(now *generation) float64 { return now.filter.stats().Error })
	gauge("footfall_memory_pairs", "(target, visitor) pairs in the memory of recent visitors.",
		func(now *generation) float64 { return float64(now.memory.count()) })
	gauge("footfall_memory_bytes", "What the memory of recent visitors takes, at most.",
		func(now *generation) float64 { return float64(now.memory.count() * memoryEntry) })
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
