package inbox

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"footfall/db"
	"footfall/visit"
)

// metrics contains the metrics of an Inbox. waiting and oldest describe the table inbox, so all instances report the same
// values.
type metrics struct {
	accepted *prometheus.CounterVec // visits sent to the inbox, by outcome
	drained  *prometheus.CounterVec // visits taken out of the inbox, by outcome
	waiting  prometheus.Gauge
	oldest   atomic.Int64 // when the oldest waiting visit arrived, in Unix nanoseconds; 0: no visit is waiting
}

func newMetrics(r prometheus.Registerer) *metrics {
	make := promauto.With(r) // if r is nil, nothing is registered
	m := &metrics{
		accepted: make.NewCounterVec(prometheus.CounterOpts{
			Name: "footfall_inbox_accepted_total",
			Help: "Visits sent to the inbox, by outcome: accepted, refused (not accepted), lost (perhaps accepted).",
		}, []string{"outcome"}),
		drained: make.NewCounterVec(prometheus.CounterOpts{
			Name: "footfall_inbox_drained_total",
			Help: "Visits that this instance has taken out of the inbox, by outcome: counted, dropped (they can no longer be counted).",
		}, []string{"outcome"}),
		waiting: make.NewGauge(prometheus.GaugeOpts{
			Name: "footfall_inbox_waiting", Help: "Visits in the inbox that are not counted yet. Measured every second, or less often if there " +
				"are many.",
		}),
	}
	make.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "footfall_inbox_oldest_seconds", Help: "Age of the oldest visit that is waiting in the inbox, at most; 0: none is waiting.",
	}, func() float64 { return m.age().Seconds() })
	for _, outcome := range []string{"accepted", "refused", "lost"} {
		m.accepted.WithLabelValues(outcome)
	}
	for _, outcome := range []string{"counted", "dropped"} {
		m.drained.WithLabelValues(outcome)
	}
	return m
}

// outcome counts a visit in the metric "accepted", by its outcome: err is nil if the visit was accepted.
func (m *metrics) outcome(err error) {
	var verr *visit.Error
	switch {
	case err == nil:
		m.accepted.WithLabelValues("accepted").Inc()
	case errors.As(err, &verr) && verr.Kind == visit.Lost:
		m.accepted.WithLabelValues("lost").Inc()
	default:
		m.accepted.WithLabelValues("refused").Inc()
	}
}

// age returns how long the oldest visit has been waiting, or 0 if no visit is waiting.
func (m *metrics) age() time.Duration {
	since := m.oldest.Load()
	if since == 0 {
		return 0
	}
	return max(time.Since(time.Unix(0, since)), 0)
}

// show updates the metrics about waiting visits. ahead is how far this machine's clock is ahead of the database's clock.
func (m *metrics) show(apps []db.InboxLookRow, ahead time.Duration) {
	waiting, oldest := int64(0), int64(0)
	for _, app := range apps {
		waiting += app.Visits
		if came := app.Oldest.Add(ahead).UnixNano(); oldest == 0 || came < oldest {
			oldest = came
		}
	}
	m.waiting.Set(float64(waiting))
	m.oldest.Store(oldest)
}
