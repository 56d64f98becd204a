package queues

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"footfall/record/feed"
)

// outcomes maps the fates of messages to values of the metric label outcome.
var outcomes = map[feed.Fate]string{feed.Counted: "counted", feed.Repeated: "repeated", feed.Skipped: "skipped", feed.Refused: "refused"}

// Metrics contains the metrics of one consumer.
type Metrics struct {
	messages *prometheus.CounterVec // processed messages, by outcome
	missing  prometheus.Counter
	ahead    prometheus.Counter
	behind   *prometheus.GaugeVec // number of messages that are not counted yet, by part

	mu      sync.Mutex      // guards the following fields
	read    map[string]bool // the parts (partitions) that this consumer reads
	waiting int             // number of messages that were read, but not counted, skipped or refused yet
	since   time.Time       // when waiting last decreased, or increased from 0
}

// NewMetrics creates the metrics and registers them with r, unless r is nil.
func NewMetrics(r prometheus.Registerer) *Metrics {
	make := promauto.With(r) // if r is nil, nothing is registered
	m := &Metrics{
		read: map[string]bool{},
		messages: make.NewCounterVec(prometheus.CounterOpts{
			Name: "footfall_queue_messages_total",
			Help: "Messages that this consumer has processed, by outcome: counted, repeated (counted before, with the same id), " +
				"skipped on purpose, refused.",
		}, []string{"outcome"}),
		missing: make.NewCounter(prometheus.CounterOpts{
			Name: "footfall_queue_missing_total", Help: "Messages that the queue no longer had when they were to be counted.",
		}),
		ahead: make.NewCounter(prometheus.CounterOpts{
			Name: "footfall_queue_ahead_total", Help: "Messages that this consumer has counted at the present time, because their own time was " +
				"more than five minutes ahead.",
		}),
		behind: make.NewGaugeVec(prometheus.GaugeOpts{
			Name: "footfall_queue_behind", Help: "Messages that a partition of the queue still had after the last counted message, when that " +
				"message was received.",
		}, []string{"part"}),
	}
	make.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "footfall_queue_stands_seconds",
		Help: "Time since the last message was processed, while other messages are waiting; 0 while none are waiting.",
	}, m.stalledSeconds)
	for _, outcome := range outcomes {
		m.messages.WithLabelValues(outcome)
	}
	return m
}

// moved adds read to the number of waiting messages. If messages were processed, read is negative.
func (m *Metrics) moved(read int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if read < 0 || m.waiting == 0 {
		m.since = time.Now()
	}
	m.waiting += read
}

func (m *Metrics) stalledSeconds() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting == 0 {
		return 0
	}
	return time.Since(m.since).Seconds()
}

// begin records that this consumer reads a part of the queue from now on.
func (m *Metrics) begin(part string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.read[part] = true
}

// setBehind sets the metric that shows how many messages of a part are not counted yet. It does nothing if this consumer no
// longer reads the part.
func (m *Metrics) setBehind(part string, messages int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.read[part] {
		m.behind.WithLabelValues(part).Set(float64(messages))
	}
}

// leave records that this consumer no longer reads a part of the queue.
func (m *Metrics) leave(part string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.read, part)
	m.behind.DeleteLabelValues(part)
}

// leaveAll records that this consumer no longer reads any part, because it has closed the queue.
func (m *Metrics) leaveAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.read)
	m.waiting = 0
	m.behind.Reset()
}
