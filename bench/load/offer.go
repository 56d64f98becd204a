package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// offerConnections are those over which visits are offered: more than are under way at a time, as
// far as each is answered within a fraction of a second.
const offerConnections = 2000

// Offered is what became of visits that came at a rate.
type Offered struct {
	Measure
	Worst time.Duration // p99 of the worst second
	Later int64         // answered 202
}

// Offer sends the visits of a sequence at a rate, whatever becomes of those before, and times each
// from when it was due: what waits behind slow answers has waited, too. Each must be counted, or
// accepted. early is called when a fifth has been sent.
func Offer(ctx context.Context, url string, sequence []Arrival, headers []string, perSecond float64, early func()) (Offered, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	o := offer{host: strings.TrimPrefix(url, "http://"), sequence: sequence, perSecond: perSecond, waits: make([]time.Duration, len(sequence)),
		due: make(chan int, len(sequence))} // has room for all, so that the pace never waits
	for _, set := range headers {
		o.tails = append(o.tails, []byte(" HTTP/1.1\r\nHost: "+o.host+"\r\n"+strings.ReplaceAll(set, "\t", "\r\n")+"\r\n\r\n"))
	}
	connections, err := o.connect(ctx)
	defer func() {
		for _, one := range connections {
			one.Close()
		}
	}()
	if err != nil {
		return Offered{}, err
	}
	o.begin = time.Now()
	var all sync.WaitGroup // the connections' goroutines, who end when due is closed and empty, or the first has failed
	for _, one := range connections {
		all.Go(func() {
			if err := o.exchange(ctx, one); err != nil {
				cancel(err)
			}
		})
	}
	for sent := 0; sent < len(sequence) && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		for ; sent < len(sequence) && !time.Now().Before(o.dueAt(sent)); sent++ {
			if o.due <- sent; sent == len(sequence)/5 {
				early()
			}
		}
	}
	close(o.due)
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return Offered{}, err
	}
	return o.measure(time.Since(o.begin)), nil
}

type offer struct {
	host      string
	sequence  []Arrival
	tails     [][]byte // of the requests in turns, behind their query
	perSecond float64
	begin     time.Time
	due       chan int        // places in the sequence
	waits     []time.Duration // each is set by the goroutine that has sent the visit
	later     atomic.Int64
}

func (o *offer) connect(ctx context.Context) (connections []net.Conn, err error) {
	for range offerConnections {
		one, err := (&net.Dialer{}).DialContext(ctx, "tcp", o.host)
		if err != nil {
			return connections, fmt.Errorf("offer visits: %w", err)
		}
		connections = append(connections, one)
	}
	return connections, nil
}

// dueAt is when a visit is due.
func (o *offer) dueAt(n int) time.Time {
	return o.begin.Add(time.Duration(float64(n) / o.perSecond * float64(time.Second)))
}

// exchange sends one visit after the other that is due, and reads its answer.
func (o *offer) exchange(ctx context.Context, conn net.Conn) error {
	answers := bufio.NewReaderSize(conn, 1024)
	var request []byte
	for n := range o.due {
		if ctx.Err() != nil {
			return nil
		}
		request = append(append(request[:0], "GET /visit?app=demo&"...), Asserted(o.sequence[n])...)
		if _, err := conn.Write(append(request, o.tails[n%len(o.tails)]...)); err != nil {
			return fmt.Errorf("visit %d: %w", n, err)
		}
		status, err := readAnswer(answers)
		if err != nil {
			return fmt.Errorf("visit %d: %w", n, err)
		}
		o.waits[n] = time.Since(o.dueAt(n))
		switch status {
		case http.StatusOK:
		case http.StatusAccepted:
			o.later.Add(1)
		default:
			return fmt.Errorf("visit %d was answered %d", n, status)
		}
	}
	return nil
}

// readAnswer reads an answer to its end, whose length it must tell. It is what a client needs of
// HTTP to be cheap.
func readAnswer(r *bufio.Reader) (status int, err error) {
	for length := -1; ; {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch {
		case status == 0:
			words := strings.Fields(string(line))
			if len(words) < 2 {
				return 0, fmt.Errorf("%q begins no answer", line)
			}
			if status, err = strconv.Atoi(words[1]); err != nil {
				return 0, fmt.Errorf("%q begins no answer", line)
			}
		case len(line) == 0 && length < 0:
			return 0, errors.New("the answer does not tell its length")
		case len(line) == 0:
			_, err := r.Discard(length)
			return status, err
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(value)); err != nil {
				return 0, err
			}
		}
	}
}

func (o *offer) measure(took time.Duration) Offered {
	n := len(o.waits)
	m := Offered{Later: o.later.Load()}
	for second := range slices.Chunk(slices.Clone(o.waits), max(int(o.perSecond), 100)) {
		if slices.Sort(second); len(second) >= 100 {
			m.Worst = max(m.Worst, second[len(second)*99/100])
		}
	}
	slices.Sort(o.waits)
	at := func(percent int) time.Duration { return o.waits[n*percent/100] }
	m.Measure = Measure{Requests: int64(n), PerSecond: float64(n) / took.Seconds(), P50: at(50), P95: at(95), P99: at(99)}
	return m
}
