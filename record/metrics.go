package record

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"footfall/db"
	"footfall/visit"
)

// metrics are a recorder's metrics. No label contains an address or a URI.
type metrics struct {
	register promauto.Factory

	visits  *prometheus.CounterVec // by outcome
	other   prometheus.Counter
	faults  *prometheus.CounterVec // number of batches that did not commit at once, by fault
	sizes   prometheus.Histogram
	flushes prometheus.Histogram
	waiting prometheus.Gauge

	lookUps       prometheus.Counter
	savedLookUps  *prometheus.CounterVec // by the reason why no look-up was needed
	memoryLookUps *prometheus.CounterVec // by result
	hasMemory     bool
	wrongHints    prometheus.Counter
	dropped       prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	make := promauto.With(r) // if r is nil, the metrics are not registered
	m := &metrics{
		register: make,
		visits: make.NewCounterVec(prometheus.CounterOpts{
			Name: "footfall_visits_total",
			Help: "Visits by outcome: counted, repeated (with an id that was counted before), refused (not counted, and not tried " +
				"again by Footfall itself, unlike those of queues, imports and the inbox), lost (it is unknown whether they were counted).",
		}, []string{"outcome"}),
		faults: make.NewCounterVec(prometheus.CounterOpts{
			Name: "footfall_batch_faults_total",
			Help: "Batches that did not commit at once, by fault.",
		}, []string{"fault"}),
		sizes: make.NewHistogram(prometheus.HistogramOpts{
			Name: "footfall_batch_visits", Help: "Visits in a batch.", Buckets: prometheus.ExponentialBuckets(1, 2, 13),
		}),
		flushes: make.NewHistogram(prometheus.HistogramOpts{
			Name: "footfall_batch_duration_seconds", Help: "Time from the moment when a lane takes a batch until its visits get their responses.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
		}),
		waiting: make.NewGauge(prometheus.GaugeOpts{
			Name: "footfall_visits_waiting", Help: "Accepted visits that have no response yet.",
		}),
		other: make.NewCounter(prometheus.CounterOpts{
			Name: "footfall_visits_other_total",
			Help: "Visits to new pages that were counted for the page (other) of their site, because their app has reached its limit of new " +
				"pages per day.",
		}),
		lookUps: make.NewCounter(prometheus.CounterOpts{
			Name: "footfall_existence_queries_total",
			Help: "(target, visitor) pairs looked up in the tables, in batches that committed, to decide whether the visitor or their day is new. " +
				"Every visit has two pairs: for its page and for its site.",
		}),
		savedLookUps: make.NewCounterVec(prometheus.CounterOpts{
			Name: "footfall_existence_queries_skipped_total",
			Help: "Pairs that did not have to be looked up, by reason: batch (the same pair is earlier in the batch), " +
				"memory (the visitor has been counted on the day), filter (the visitor is certainly new).",
		}, []string{"by"}),
		memoryLookUps: make.NewCounterVec(prometheus.CounterOpts{
			Name: "footfall_memory_lookups_total",
			Help: "Pairs looked up in the memory of recent visitors, by result: hit (counted on the day) or miss.",
		}, []string{"result"}),
		wrongHints: make.NewCounter(prometheus.CounterOpts{
			Name: "footfall_filter_wrong_hints_total",
			Help: "Batches written a second time because another instance had already counted a visitor that the filter reported as new.",
		}),
		dropped: make.NewCounter(prometheus.CounterOpts{
			Name: "footfall_caches_dropped_total",
			Help: "How often the caches of targets and visitors were dropped: after an erasure, an import, a restore, or a connection " +
				"that was lost during a batch.",
		}),
	}
	// Export each counter as 0 first. Otherwise Prometheus does not see its increase from 0 to 1.
	for _, outcome := range []string{"counted", "repeated", "refused", "lost"} {
		m.visits.WithLabelValues(outcome)
	}
	for fault := db.FaultBusy; fault <= db.FaultUnknown; fault++ {
		m.faults.WithLabelValues(fault.String())
	}
	return m
}

// outcome adds a visit to the metrics under its outcome: counted, repeated, refused or lost.
func (m *metrics) outcome(e *entry) {
	if !m.counted(e) {
		m.notCounted(e.err)
	}
}

// counted adds a visit to the metrics if it was counted now (as counted) or before (as repeated). Otherwise it
// changes no metric and returns false.
func (m *metrics) counted(e *entry) bool {
	switch {
	case e.err == nil, errors.Is(e.err, ErrNumbersLost):
		m.visits.WithLabelValues("counted").Inc()
		if e.other.Page != "" {
			m.other.Inc()
		}
	case errors.Is(e.err, ErrRepeated):
		m.visits.WithLabelValues("repeated").Inc()
	default:
		return false
	}
	return true
}

// notCounted adds a visit to the metrics as refused, or as lost if it is unknown whether the visit was counted.
func (m *metrics) notCounted(why error) {
	outcome := "refused"
	if verr, ok := errors.AsType[*visit.Error](why); ok && verr.Kind == visit.Lost {
		outcome = "lost"
	}
	m.visits.WithLabelValues(outcome).Inc()
}

// countLookUps adds two numbers of a committed batch to the metrics: the pairs that were looked up, and the pairs for
// which no look-up was needed.
func (m *metrics) countLookUps(l *lookUps) {
	m.lookUps.Add(float64(l.needed))
	m.savedLookUps.WithLabelValues("batch").Add(float64(l.batch))
	m.savedLookUps.WithLabelValues("memory").Add(float64(l.memory))
	m.savedLookUps.WithLabelValues("filter").Add(float64(l.filter))
	if m.hasMemory {
		m.memoryLookUps.WithLabelValues("hit").Add(float64(l.memory))
		m.memoryLookUps.WithLabelValues("miss").Add(float64(l.needed + l.filter))
	}
}

// describe adds gauges for the caches. Each gauge shows the value at the time when the metrics are read.
func (m *metrics) describe(c *caches) {
	m.hasMemory = c.options.Memory > 0
	gauge := func(name, help string, value func(*generation) float64) {
		m.register.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			if now := c.current.Load(); now != nil {
				return value(now)
			}
			return 0
		})
	}
	gauge("footfall_filter_ready", "1 when the filter has read every visitor of the tables and reports new visitors; 0 before, and if there "+
		"is no filter.",
		func(now *generation) float64 { return flag(now.filter != nil && now.filter.ready.Load()) })
	gauge("footfall_filter_saturated", "1 when the filter's memory is used up, so that it no longer reports new visitors, and "+
		"every visitor is looked up.",
		func(now *generation) float64 { return flag(now.filter.stats().Saturated) })
	gauge("footfall_filter_keys", "(target, visitor) pairs in the filter.",
		func(now *generation) float64 { return float64(now.filter.stats().Keys) })
	gauge("footfall_filter_bytes", "Memory of the filter.",
		func(now *generation) float64 { return float64(now.filter.stats().Bytes) })
	gauge("footfall_filter_fill_ratio", "Share of the bits of the filter that are set, estimated from a sample.",
		func(now *generation) float64 { return now.filter.stats().Fill })
	gauge("footfall_filter_error_ratio", "Chance that the filter does not recognise a new visitor as new, estimated from a sample.",
		func(now *generation) float64 { return now.filter.stats().Error })
	gauge("footfall_memory_pairs", "(target, visitor) pairs in the memory of recent visitors.",
		func(now *generation) float64 { return float64(now.memory.count()) })
	gauge("footfall_memory_bytes", "Largest size of the memory of recent visitors, in bytes.",
		func(now *generation) float64 { return float64(now.memory.count() * memoryEntry) })
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
