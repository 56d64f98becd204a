package load

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

// callVisits is how many visits one call has.
const callVisits = 1000

// Calls sends the visits of a sequence in calls of many each, one after the other, for as long as
// d. Times are those of calls. It returns the visits that were sent.
func Calls(ctx context.Context, url string, sequence []Arrival, d time.Duration) (Measure, []Arrival, error) {
	var bodies [][]byte // made before, as wrk's are
	for call := range slices.Chunk(sequence, callVisits) {
		body := []byte{'['}
		for _, a := range call {
			body = fmt.Appendf(body, `{"uri":"http://%s","ip":"%s"},`, PageURI(int(a.Page)), Address(int(a.Visitor)))
		}
		body[len(body)-1] = ']'
		bodies = append(bodies, body)
	}
	var took []time.Duration
	began := time.Now()
	for n := 0; time.Since(began) < d; n++ {
		if n == len(bodies) {
			return Measure{}, nil, usedUp(len(sequence))
		}
		sent := time.Now()
		if err := send(ctx, url, bodies[n]); err != nil {
			return Measure{}, nil, err
		}
		took = append(took, time.Since(sent))
	}
	visits := sequence[:min(len(took)*callVisits, len(sequence))]
	m := MeasureOf(took, time.Since(began))
	m.PerSecond *= float64(len(visits)) / float64(m.Requests)
	m.Requests = len(visits)
	return m, visits, nil
}

// send sends a call. The tables say afterwards whether all of its visits were counted.
func send(ctx context.Context, url string, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/visits?app="+App, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("a call was answered %d: %.200s", response.StatusCode, answer)
	}
	return err
}
