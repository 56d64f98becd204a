package handler

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"footfall/counter"
	"footfall/visit"
)

// mostList is the maximum number of pages or ids in one request.
const mostList = 1000

// counts handles /counts. It responds with a page's numbers or, for a POST, with the numbers of many pages.
func (s *service) counts(c echo.Context) error {
	if c.Request().Method == http.MethodPost {
		return s.countsOfMany(c)
	}
	return s.answer(c, func(of *counter.Counter, ctx context.Context, ask counter.Request) (visit.Answer, error) {
		ask.HasNoVisitor, ask.ID, ask.At = ask.IP == "" && ask.Visitor == "", "", ""
		return of.Counts(ctx, ask)
	}, true)
}

func (s *service) countsOfMany(c echo.Context) error {
	f, err := readBody(c.Request(), c.Response(), manyCounts)
	s.letRead(c, f.app.value)
	if err != nil {
		return err
	}
	cell, err := s.Cells.Of(f.app.value)
	if err != nil {
		return err
	}
	with := f.readWith()
	ask := s.request(c, &f)
	ask.Extra = with
	ask.HasNoVisitor = ask.IP == "" && ask.Visitor == ""
	counted, behind, err := cell.Counter.CountsForPages(c.Request().Context(), ask, f.list)
	if err != nil {
		return err
	}
	out := appendList(append(make([]byte, 0, 128*len(counted)), `{"counts":[`...), len(counted), func(out []byte, i int) []byte {
		if fault := counted[i].Fault; fault != "" {
			return append(out, errorBody(fault)...)
		}
		return appendAnswer(out, counted[i].Answer)
	})
	return respond(c, http.StatusOK, append(appendBehind(append(out, ']'), behind), '}'))
}
