// Package moves imports numbers that other visit counters have counted. Daily numbers become history. Totals become
// offsets, which Footfall adds to its own numbers.
package moves

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"footfall/admin"
	"footfall/visit"
)

// columns are the columns of a CSV file with offsets. The first two columns are required.
var columns = []string{"uri", "hot", "uv", "pv"}

// ReadCSV reads a CSV file with offsets. The first line contains the column names: uri and hot, and optionally uv and pv.
// If a line is invalid, ReadCSV sets the field Fault of its Offset. If the whole file is invalid, ReadCSV returns an error.
func ReadCSV(from io.Reader) ([]admin.Offset, error) {
	text, err := decodeText(from)
	if err != nil {
		return nil, fault("%v", err)
	}
	r := csv.NewReader(text)
	r.FieldsPerRecord, r.ReuseRecord = -1, true
	header, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, visit.Errorf(visit.Invalid, "file", "it is empty: its first line names the columns, uri,hot,uv,pv")
	}
	if err != nil {
		return nil, unread(err)
	}
	places, err := readHeader(header)
	if err != nil {
		return nil, err
	}
	wide := len(header)
	var list []admin.Offset
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, unread(err)
		}
		line, _ := r.FieldPos(0)
		o := admin.Offset{Line: line}
		if len(record) != wide {
			o.Fault = fmt.Sprintf("the first line names %d columns, but this line has %d", wide, len(record))
		} else {
			readRecord(&o, record, places)
		}
		list = append(list, o)
	}
}

func fault(format string, args ...any) error {
	return visit.Errorf(visit.Invalid, "", format, args...)
}

func unread(err error) error {
	if wrong, ok := errors.AsType[*csv.ParseError](err); ok {
		return fault("line %d: it is not CSV: %v", wrong.Line, wrong.Err)
	}
	return err
}

// readHeader returns, for each element of columns, the index of this column in the file, or -1 if the column is missing.
func readHeader(header []string) ([]int, error) {
	places := []int{-1, -1, -1, -1}
	for at, name := range header {
		i := slices.Index(columns, strings.ToLower(strings.TrimSpace(name)))
		switch {
		case i < 0:
			return nil, fault("line 1: %.64q is not a column: write uri,hot,uv,pv, separated by commas; uv and pv may be left out", name)
		case places[i] >= 0:
			return nil, fault("line 1: column %s is named twice", columns[i])
		}
		places[i] = at
	}
	for i, name := range columns[:2] {
		if places[i] < 0 {
			return nil, fault("line 1: column %s is missing: write uri,hot,uv,pv; uv and pv may be left out", name)
		}
	}
	return places, nil
}

// readRecord parses a line of the file into o. If uv is missing, readRecord sets it to 0. If pv is missing, readRecord sets
// it to the value of uv.
func readRecord(o *admin.Offset, record []string, places []int) {
	o.URI = strings.Clone(strings.TrimSpace(record[places[0]]))
	o.PV = admin.Unknown
	for i, number := range []*int64{&o.Hot, &o.UV, &o.PV} {
		if places[i+1] < 0 {
			continue
		}
		text := strings.TrimSpace(record[places[i+1]])
		if text == "" && i > 0 {
			continue
		}
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil && o.Fault == "" {
			o.Fault = fmt.Sprintf("%s: %.64q is not a number: write only digits, like 1204", columns[i+1], text)
		}
		*number = int64(n) //nolint:gosec // at most 63 bits
	}
	if o.PV == admin.Unknown {
		o.PV = o.UV
	}
}
