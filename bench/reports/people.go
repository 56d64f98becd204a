package reports

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"footfall/bench"
	"footfall/bench/load"
	"footfall/bench/tables"
)

const (
	peopleApp  = "people"
	loadings   = 10   // parts in which ids are loaded, so that it shows whether it gets slower
	idsAtOnce  = 100  // that one call looks up
	firstAsked = 1000 // look-ups that find hardly anything in memory, where caches were emptied before
)

// measurePeople looks up at random for whom ids stand, while visits are counted. They are loaded
// where the app is missing: four stand for a person each, who has an id of their own.
func (r *asking) measurePeople(ctx context.Context) error {
	home := r.Data
	if home == "" {
		made, err := os.MkdirTemp("", "footfall-bench-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(made) }()
		home = made
	}
	secret := filepath.Join(home, "secret")
	if _, err := os.Stat(secret); errors.Is(err, fs.ErrNotExist) {
		if err := os.WriteFile(secret, []byte(strings.Repeat("of the benchmark", 2)), 0o600); err != nil {
			return err
		}
	}
	r.secret = []string{"--secret-file", secret}
	if err := r.loadPeople(ctx); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(r.Seed, 3)) //nolint:gosec // to be repeated, not to be secret
	var first, later, many []time.Duration
	err := r.beside(ctx, "look-ups of people", func(p *bench.Process) error {
		for n := range firstAsked + 10*r.Runs {
			began := time.Now()
			said, err := bench.Fetch(ctx, fmt.Sprintf("%s/people?app=%s&id=%d", p.URL, peopleApp, random.IntN(r.People)))
			if err != nil {
				return err
			}
			if took := time.Since(began); n < firstAsked {
				first = append(first, took)
			} else {
				later = append(later, took)
			}
			if !strings.Contains(said, `"person"`) {
				r.report.Wrong = append(r.report.Wrong, "nobody is found: "+said)
			}
		}
		for range r.Runs {
			began := time.Now()
			if err := r.lookUp(ctx, p.URL, random); err != nil {
				return err
			}
			many = append(many, time.Since(began))
		}
		return nil
	})
	r.report.add(fmt.Sprintf("the first %d look-ups", firstAsked), load.MeasureOf(first, 0))
	r.report.add("look-ups after them", load.MeasureOf(later, 0))
	r.report.add(fmt.Sprintf("look-ups of %d ids at once", idsAtOnce), load.MeasureOf(many, 0))
	return err
}

// lookUp asks for whom many ids stand.
func (r *asking) lookUp(ctx context.Context, url string, random *rand.Rand) error {
	ids := make([]string, idsAtOnce)
	for i := range ids {
		ids[i] = strconv.Itoa(random.IntN(r.People))
	}
	body, _ := json.Marshal(map[string]any{"app": peopleApp, "ids": ids}) // cannot fail for strings
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/people/lookup", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if found := bytes.Count(said, []byte(`"person"`)); err == nil && found != idsAtOnce {
		r.report.Wrong = append(r.report.Wrong, fmt.Sprintf("%d of %d are found: %.200s", found, idsAtOnce, said))
	}
	return err
}

// loadPeople loads the ids with the program that is measured.
func (r *asking) loadPeople(ctx context.Context) error {
	run := func(in io.Reader, words ...string) error {
		c := exec.CommandContext(ctx, r.Footfall, append(append(words, "--database-url", r.address), r.secret...)...) //nolint:gosec // the program that is measured
		c.Stdin = in
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", c, err, out)
		}
		return nil
	}
	return bench.Ask(ctx, r.address, func(q *tables.Queries) error {
		if _, err := q.AppID(ctx, peopleApp); err == nil {
			return nil // from an earlier run
		}
		if err := run(nil, "app", "add", peopleApp, "--visitor", "id", "--access", "open"); err != nil {
			return err
		}
		for part := range loadings {
			from, to := r.People/loadings*part, r.People/loadings*(part+1)
			if part == loadings-1 {
				to = r.People
			}
			r.Doing("loading ids %d to %d", from, to)
			began := time.Now()
			if err := run(links(from, to, r.People), "people", "load", peopleApp, "-"); err != nil {
				return err
			}
			took := time.Since(began)
			size, err := q.PeopleBytes(ctx)
			if err != nil {
				return err
			}
			r.report.note("ids %d to %d were loaded at %.0f a second; with their persons they take %d bytes each", from, to, float64(to-from)/took.Seconds(), size/int64(to+min(to, persons(r.People))))
		}
		return nil
	})
}

// links are lines that say for whom ids stand, the persons among the last of all.
func links(from, to, all int) io.Reader {
	read, write := io.Pipe()
	go func() { // ends when all is read, or nobody reads
		var err error
		for n := from; n < to && err == nil; n++ {
			_, err = fmt.Fprintf(write, "{\"id\":\"%d\",\"is\":\"%d\"}\n", n, all+n%persons(all))
		}
		write.CloseWithError(err)
	}()
	return read
}

func persons(ids int) int { return max(1, ids/4) }
