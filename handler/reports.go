package handler

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"footfall/account"
	"footfall/counter"
	"footfall/handler/routing"
	"footfall/report"
	"footfall/visit"
)

const (
	usualWait   = 2 * time.Second
	usualWithin = 4 * time.Second     // shorter than the database's statement timeout, so that readInPlace ends the report first
	usualPanel  = 5 * time.Second / 2 // limit for one panel of a page; leaves time for the other panels
	reportPause = 5 * time.Second     // Retry-After for a report that took too long
)

type reports struct{ *service }

// answer authorizes the caller, parses the query, and writes the report. Like all other API calls, it reports a wrong app or key
// before errors in the parameters, and checks the rate limit last.
func (r *reports) answer(c echo.Context, k report.Report) error {
	ctx, request := c.Request().Context(), c.Request()
	params, parseErr := k.ParseQuery(request.URL.RawQuery, "format")
	ask := counter.Request{App: c.Param("app"), Key: bearer(request.Header), ParseErr: parseErr}
	if ask.Key == "" && r.Dashboard {
		reader, err := r.signedIn(c)
		if err != nil {
			return err
		}
		ask.MayLook = reader.MayLook
	}
	ask.Peer = r.peer(request)
	cell, err := r.Cells.Of(ask.App)
	if err != nil {
		return err
	}
	reading, err := cell.Counter.AuthorizeReading(ctx, ask)
	if err != nil {
		return err
	}
	if reading.Names {
		c.Set(trustedKey, true)
	}
	format, err := reportFormat(params.Get("format"), request.Header)
	if err != nil {
		return err
	}
	subject := report.Subject{App: reading.App, Today: reading.Today, Target: reading.Target, Visitors: reading.Visitors}
	look, err := k.Look(ctx, subject, params)
	switch {
	case err != nil:
		return err
	case k.ToNamed && !reading.Names:
		return visit.Errorf(visit.Forbidden, "key", "visitors are listed only for a key with the scope read, or for users who are signed in")
	}
	if err := reading.CheckRate(); err != nil {
		return err
	}
	reader := cell.Reports
	if look.Counted {
		reader = reader.Counted()
	}
	return r.serve(c, k, cell, reader, look, format)
}

// serve reads a report from the database of a cell, and writes it as the response.
func (r *reports) serve(c echo.Context, k report.Report, of *routing.Cell, from *report.Reader, look report.Look, format string) error {
	read := func(l report.Look) (made *report.Rows, err error) {
		err = r.readInPlace(c.Request().Context(), placesFor(c, of), func(ctx context.Context) error {
			made, err = k.Read(ctx, from, l)
			return err
		})
		return made, err
	}
	made, err := read(look)
	switch {
	case err != nil:
		return err
	case made.Follow == nil:
		return writeReport(c, look.App+"-"+k.Name, format, made)
	}
	return r.writeParts(c, look.App+"-"+k.Name, format, made, read)
}

// trustedKey is the context key that marks a request with a valid key, account or link.
const trustedKey = "known"

// placesFor returns the channel that limits how many reports run at once in a cell: Cell.Places for requests with an account, a
// key or a link, and Cell.Strangers for other requests.
func placesFor(c echo.Context, in *routing.Cell) chan struct{} {
	if reader, _ := c.Get(asAccount).(*account.Account); reader != nil || c.Get(trustedKey) != nil {
		return in.Places
	}
	return in.Strangers
}

// readInPlace waits for a free place in the channel places, which limits concurrent reports. It then calls read with a timeout.
func (s *service) readInPlace(ctx context.Context, places chan struct{}, read func(context.Context) error) error {
	wait := time.NewTimer(s.reportWait)
	defer wait.Stop()
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	case <-wait.C:
		return retryIn(s.reportWait, "too many reports are being made; try again")
	case <-ctx.Done():
		return ctx.Err()
	}
	within, cancel := context.WithTimeout(ctx, s.reportWithin)
	defer cancel()
	err := read(within)
	var verr *visit.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &verr):
		return err
	case errors.Is(within.Err(), context.DeadlineExceeded):
		return retryIn(reportPause, "the report takes too long: ask for fewer days, for fewer pages, or for one site").Because(err)
	}
	return visit.Unanswered(err)
}

// forEachCell calls ask for all cells concurrently. away lists the cells that failed or did not respond in time. If the home
// database fails, forEachCell returns its error.
func (s *service) forEachCell(ctx context.Context, of []*routing.Cell,
	ask func(ctx context.Context, i int, cell *routing.Cell) error) (away []string, err error) {
	failed := make([]error, len(of))
	var asked sync.WaitGroup
	for i, cell := range of {
		asked.Go(func() {
			within := ctx
			if cell.Name != "" {
				in, cancel := context.WithTimeout(ctx, s.reportWait+s.reportWithin)
				defer cancel()
				within = in
			}
			failed[i] = call(func(echo.Context) error { return ask(within, i, cell) }, nil)
		})
	}
	asked.Wait()
	for i, cell := range of {
		switch {
		case failed[i] != nil && cell.Name == "":
			return nil, failed[i]
		case failed[i] != nil:
			away = append(away, cell.Name)
			if ctx.Err() == nil { // a request whose caller has left is not logged
				s.logFault("all cells", http.StatusServiceUnavailable, fmt.Errorf("cell %s: %w", cell.Name, failed[i]))
			}
		}
	}
	return away, nil
}

func retryIn(pause time.Duration, problem string) *visit.Error {
	e := visit.Errorf(visit.Unavailable, "", "%s", problem)
	e.RetryAfter = pause
	return e
}
