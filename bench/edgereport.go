package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// EdgeReport is what Edge measured.
type EdgeReport struct {
	Machine     Machine     `json:"machine"`
	Command     string      `json:"command"` // that repeats it
	Connections int         `json:"connections"`
	Slow        int         `json:"slow"` // clients
	Rate        int         `json:"rate"` // visits a second where they are steady
	Rounds      int         `json:"rounds"`
	Seconds     int         `json:"seconds"` // of each turn
	Seed        uint64      `json:"seed"`
	Scenes      []EdgeScene `json:"scenes"`
	Runs        []EdgeRun   `json:"runs"` // what the scenes sum up
}

// EdgeScene sums up the rounds of all ways under one load.
type EdgeScene struct {
	Name  string      `json:"name"`
	About string      `json:"about"`
	Rows  []EdgeRow   `json:"rows"` // the first is what the others are compared with
	Asked []EdgeAsked `json:"asked"`
}

// EdgeRow sums up the rounds of one way.
type EdgeRow struct {
	Way       string  `json:"way"`
	About     string  `json:"about"`
	PerSecond spread  `json:"perSecond"`
	P50Ms     spread  `json:"p50Ms"`
	P99Ms     spread  `json:"p99Ms"`
	CPUMicros spread  `json:"cpuMicros"` // of the service, for each visit
	LateMs    float64 `json:"lateMs"`    // the median; see EdgeRun
	Held      float64 `json:"held"`      // connections of slow clients, the median
	Memory    int64   `json:"memoryBytes"`
	Visits    int64   `json:"visits"` // of all rounds

	// Each is compared with the first way's in the same round; these are the spreads of such ratios.
	ToPerSecond spread `json:"toPerSecond"`
	ToP50       spread `json:"toP50"`
	ToP99       spread `json:"toP99"`
	ToCPU       spread `json:"toCPU"`
}

// EdgeAsked is a ratio that was asked for.
type EdgeAsked struct {
	Text string  `json:"text"`
	Is   float64 `json:"is"`
	Held bool    `json:"held"`
}

// EdgeRun is one way's turn.
type EdgeRun struct {
	Scene     string        `json:"scene"`
	Way       string        `json:"way"`
	Round     int           `json:"round"`
	Visits    int64         `json:"visits"`
	PerSecond float64       `json:"perSecond"`
	P50Ms     float64       `json:"p50Ms"`
	P99Ms     float64       `json:"p99Ms"`
	LateMs    float64       `json:"lateMs"` // 99 % of the steady visits were sent within this of when they were due; it is part of P99Ms
	CPUMicros float64       `json:"cpuMicros"`
	Memory    int64         `json:"memoryBytes"` // the peak of the service's process
	Crowd     *CrowdFigures `json:"crowd,omitempty"`
	Errors    Errors        `json:"errors"`
	Fault     string        `json:"fault,omitempty"` // errors, in words
}

func (r EdgeRun) String() string {
	text := fmt.Sprintf("%s %.0f visits/s, p50 %.1f ms, p99 %.1f ms, %.0f µs of CPU each", r.Way, r.PerSecond, r.P50Ms, r.P99Ms, r.CPUMicros)
	if r.Crowd != nil {
		text += fmt.Sprintf(", %.0f slow ones there", r.Crowd.Held)
	}
	return text
}

// edgeFigure is one of a run's figures, and the spread of its ratios in a row.
type edgeFigure struct {
	name string
	of   func(EdgeRun) float64
	row  func(*EdgeRow) (figure, ratios *spread)
}

var (
	ofRate = edgeFigure{"visits/s", func(r EdgeRun) float64 { return r.PerSecond }, func(r *EdgeRow) (a, b *spread) { return &r.PerSecond, &r.ToPerSecond }}
	ofP50  = edgeFigure{"p50", func(r EdgeRun) float64 { return r.P50Ms }, func(r *EdgeRow) (a, b *spread) { return &r.P50Ms, &r.ToP50 }}
	ofP99  = edgeFigure{"p99", func(r EdgeRun) float64 { return r.P99Ms }, func(r *EdgeRow) (a, b *spread) { return &r.P99Ms, &r.ToP99 }}
	ofCPU  = edgeFigure{"CPU", func(r EdgeRun) float64 { return r.CPUMicros }, func(r *EdgeRow) (a, b *spread) { return &r.CPUMicros, &r.ToCPU }}
)

// summarize makes the scenes of the runs.
func (r *EdgeReport) summarize(scenes []scene) {
	r.Scenes = nil
	for _, scene := range scenes {
		told := EdgeScene{Name: scene.name, About: scene.about}
		reference := r.runsOf(scene.name, scene.ways[0].name)
		for _, way := range scene.ways {
			told.Rows = append(told.Rows, newEdgeRow(way, r.runsOf(scene.name, way.name), reference))
		}
		for _, asked := range scene.asked {
			at := slices.IndexFunc(told.Rows, func(row EdgeRow) bool { return row.Way == asked.way })
			_, ratios := asked.figure.row(&told.Rows[at])
			told.Asked = append(told.Asked, asked.answered(scene.ways[0].name, ratios.Median))
		}
		r.Scenes = append(r.Scenes, told)
	}
}

// runsOf are a way's runs in a scene, in the order of the rounds.
func (r *EdgeReport) runsOf(scene, way string) (runs []EdgeRun) {
	for _, run := range r.Runs {
		if run.Scene == scene && run.Way == way {
			runs = append(runs, run)
		}
	}
	return runs
}

func newEdgeRow(way way, runs, reference []EdgeRun) EdgeRow {
	row := EdgeRow{Way: way.name, About: way.about}
	for _, figure := range []edgeFigure{ofRate, ofP50, ofP99, ofCPU} {
		var values, ratios []float64
		for i, run := range runs {
			values = append(values, figure.of(run))
			ratios = append(ratios, ratio(figure.of(run), figure.of(reference[i])))
		}
		value, to := figure.row(&row)
		*value, *to = spreadOf(values), spreadOf(ratios)
	}
	var lates, held []float64
	for _, run := range runs {
		lates = append(lates, run.LateMs)
		if run.Crowd != nil {
			held = append(held, run.Crowd.Held)
		}
		row.Memory = max(row.Memory, run.Memory)
		row.Visits += run.Visits
	}
	row.LateMs, row.Held = spreadOf(lates).Median, spreadOf(held).Median
	return row
}

// answered says whether a ratio is what was asked for.
func (a asked) answered(reference string, is float64) EdgeAsked {
	bound, held := fmt.Sprintf("at least %v", a.least), is >= a.least
	if a.most > 0 {
		bound, held = fmt.Sprintf("at most %v", a.most), is <= a.most
	}
	return EdgeAsked{Text: fmt.Sprintf("%s of %s to that of %s: %s", a.figure.name, a.way, reference, bound), Is: is, Held: held}
}

// untrue is an error that wraps ErrUntrue and tells of every run with a fault; nil where there is none.
func (r *EdgeReport) untrue() error {
	var faults []string
	for _, run := range r.Runs {
		if run.Fault != "" {
			faults = append(faults, fmt.Sprintf("round %d, %s, %s: %s", run.Round, run.Scene, run.Way, run.Fault))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("%w:\n%s", ErrUntrue, strings.Join(faults, "\n"))
}

// Print writes the report for people at a terminal.
func (r *EdgeReport) Print(w io.Writer) {
	repeats := fmt.Sprintf("medians (min..max) of %d rounds in turns", r.Rounds)
	if r.Rounds == 1 {
		repeats = "one round: there is no spread to tell a difference from noise"
	}
	fmt.Fprintf(w, "\n%s\nthe service is a process of its own; wrk has %d connections; slow clients: %d; steady: %d visits/s over %d; %d s each; %s; seed %d\n",
		r.Machine, r.Connections, r.Slow, r.Rate, steadyConnections, r.Seconds, repeats, r.Seed)
	for _, scene := range r.Scenes {
		fmt.Fprintf(w, "\n%s: %s\n", scene.Name, scene.About)
		scene.print(w)
		for _, asked := range scene.Asked {
			verdict := "held"
			if !asked.Held {
				verdict = "MISSED"
			}
			fmt.Fprintf(w, "  %s: %.3f, %s\n", asked.Text, asked.Is, verdict)
		}
	}
	for _, run := range r.Runs {
		if run.Fault != "" {
			fmt.Fprintf(w, "  ! round %d, %s, %s: %s\n", run.Round, run.Scene, run.Way, run.Fault)
		}
	}
	fmt.Fprintln(w)
	r.explain(w)
	fmt.Fprintf(w, "\nRepeat it: %s\n", r.Command)
}

func (s EdgeScene) print(w io.Writer) {
	width := 0
	for _, row := range s.Rows {
		width = max(width, len(row.Way))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, strings.Repeat(" ", width), "\tvisits/s\tmin..max\tp50 ms\tp99 ms\tmin..max\tlate ms\tCPU µs\tMB\tslow\t/visits/s\tmin..max\t/p50\t/p99\tmin..max\t/CPU\t\n")
	for _, row := range s.Rows {
		late, held := untold, untold
		if row.LateMs > 0 {
			late = millis(row.LateMs)
		}
		if row.Held > 0 {
			held = grouped(row.Held)
		}
		fmt.Fprint(t, row.Way, strings.Repeat(" ", width-len(row.Way)))
		for _, cell := range []string{
			grouped(row.PerSecond.Median), grouped(row.PerSecond.Min) + ".." + grouped(row.PerSecond.Max),
			millis(row.P50Ms.Median), millis(row.P99Ms.Median), millis(row.P99Ms.Min) + ".." + millis(row.P99Ms.Max),
			late, millis(row.CPUMicros.Median), megabytes(row.Memory), held,
			times(row.ToPerSecond.Median), rangeOf(row.ToPerSecond), times(row.ToP50.Median), times(row.ToP99.Median), rangeOf(row.ToP99), times(row.ToCPU.Median),
		} {
			fmt.Fprint(t, "\t", cell)
		}
		fmt.Fprint(t, "\t\n")
	}
	_ = t.Flush() // w is a person's
}

func rangeOf(s spread) string { return fmt.Sprintf("%.2f..%.2f", s.Min, s.Max) }

// explain says what the words mean.
func (r *EdgeReport) explain(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	told := map[string]bool{}
	for _, scene := range r.Scenes {
		for _, row := range scene.Rows {
			if !told[row.Way] {
				told[row.Way] = true
				fmt.Fprintf(t, "  %s\t%s\n", row.Way, row.About)
			}
		}
	}
	for _, column := range [][2]string{
		{"p50, p99 ms", "so many percent of the visits were answered within this; steady ones from when they were due"},
		{"late ms", "99 % of the steady visits were sent within this of when they were due: what the load generator itself adds"},
		{"CPU µs", "processor time of the service for each visit, slow clients included"},
		{"MB", "memory of the service's process at the most"},
		{"slow", "connections that slow clients held open at a time"},
		{"/", "divided by the first row's in the same round, the median of the rounds"},
	} {
		fmt.Fprintf(t, "  %s\t%s\n", column[0], column[1])
	}
	_ = t.Flush() // w is a person's
}
