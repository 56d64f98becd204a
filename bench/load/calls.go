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
// d. Times are those of calls. It returns the visits that were sent, all of which were answered as
// counted: what is not is an error.
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
	for n, body := range bodies {
		sent := time.Now()
		if sent.Sub(began) >= d {
			break
		}
		if err := send(ctx, url, body, min(callVisits, len(sequence)-n*callVisits)); err != nil {
			return Measure{}, nil, err
		}
		took = append(took, time.Since(sent))
	}
	all := time.Since(began)
	if len(took) == len(bodies) && all < d {
		return Measure{}, nil, fmt.Errorf("the %d visits that were prepared are used up before the time is: choose a shorter --duration", len(sequence))
	}
	visits := sequence[:min(len(took)*callVisits, len(sequence))]
	return measureOf(len(visits), took, all), visits, nil
}

func send(ctx context.Context, url string, body []byte, visits int) error {
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
	if err != nil {
		return err
	}
	if counted := bytes.Count(answer, []byte(`"counted"`)); counted != visits || response.StatusCode != http.StatusOK {
		return fmt.Errorf("of %d visits %d were counted: %d, %.200s", visits, counted, response.StatusCode, answer)
	}
	return nil
}
