package web

import (
	"context"
	"slices"
	"strings"

	"footfall/report"
	"footfall/visit"
)

// mostSteps is the maximum number of steps in a funnel.
const mostSteps = 8

// byDay is the value of the query parameter goal_by that splits a goal's numbers by day.
const byDay = "day"

// reachedPage shows how many visitors of a site reached a goal, split by day or by a tag. Or it shows how many visitors completed
// each step of a funnel.
type reachedPage struct {
	frame
	Heading heading
	Range   rangeBar
	Chips   []chip
	Back    string
	Goal    string // the goal in readable form; "" if the page shows a funnel
	Only    string // link to the site filtered by the goal; "" if this filter is already set
	By      []option
	List    list
	Reason  string // why numbers are unavailable; "" if they are available
	Form    search
	Steps   []string // text in the input field of each step
	More    bool     // the user can add another step
	Hint    []string // pages and events to suggest for a step
}

// readReached reads the goal, or the funnel's steps, from the query. It also reads whether the query requests the number of
// visitors who saw only one page.
func (v *view) readReached(q map[string][]string) error {
	if v.site == "" || v.path != "" {
		return nil
	}
	_, v.onePage = q["one"]
	first := func(name string) string { return strings.Join(q[name][:min(1, len(q[name]))], "") }
	v.goal, v.goalBy = visit.StoredCondition(first("goal")), first("goal_by")
	if _, v.funnel = q["funnel"]; v.funnel {
		for _, typed := range q["step"] {
			if step := readStep(typed); step != "" {
				v.steps = append(v.steps, step)
			}
		}
		if v.fields = max(len(v.steps), 1); len(q["add"]) > 0 {
			v.fields = min(max(v.fields, len(q["step"]))+1, mostSteps)
		}
	}
	if by := v.goalsBy(); v.goalBy == "" {
		v.goalBy = byDay
	} else if !slices.Contains(by, v.goalBy) {
		return visit.Errorf(visit.Invalid, "goal_by", "%.64q is not possible: use %s", v.goalBy, strings.Join(by, ", "))
	}
	for _, c := range slices.Concat(v.steps, []string{v.goal}) {
		switch {
		case !mayBeCondition(c):
			return visit.Errorf(visit.Invalid, "step", "it is not a condition: write one like page:/pricing or event:signup")
		case c != "" && v.app.Shared != nil && !v.sharesCondition(c):
			return visit.Errorf(visit.Forbidden, "step", "through a link, only conditions on pages and built-in tags are possible")
		}
	}
	return nil
}

func (v view) goalsBy() []string {
	return slices.Concat([]string{byDay}, v.app.tags["from"], v.app.tags["with"])
}

// readStep returns the condition for a step that a reader typed: the path of a page, the name of an event, or a condition.
func readStep(typed string) string {
	value, isNot := strings.CutPrefix(strings.TrimSpace(typed), "!")
	switch {
	case strings.HasPrefix(value, "/"):
		value = "page:" + value
	case value != "" && !strings.Contains(value, ":") && value != "new" && value != "returning":
		value = "event:" + value
	}
	if isNot {
		value = "!" + value
	}
	return visit.StoredCondition(value)
}

// stepText returns the text of a step in its input field. It omits the prefix page: or event: if readStep would add it again.
func stepText(step string) string {
	rest, isNot := strings.CutPrefix(step, "!")
	for _, prefix := range []string{"page:", "event:"} {
		text := shownPart(strings.TrimPrefix(rest, prefix))
		if isNot {
			text = "!" + text
		}
		if strings.HasPrefix(rest, prefix) && readStep(text) == step {
			return text
		}
	}
	return shownPart(step)
}

// stepName returns the name of a step in a list. For a page or an event, it is only the name of the page or event.
func (v view) stepName(step string) string {
	rest, isNot := strings.CutPrefix(step, "!")
	name, value := v.conditionNames(rest)
	if strings.HasPrefix(rest, "page:") || strings.HasPrefix(rest, "event:") {
		name, value = value, ""
	}
	if isNot {
		name = v.say("where.not", "name", name)
	}
	return strings.TrimSpace(name + " " + value)
}

// goalName returns a condition's value in readable form.
func goalName(condition string) string {
	_, value, _ := strings.Cut(condition, ":")
	return shownPart(shownValue(value))
}

// shownPart returns a text in readable form. The text may be a path, or contain paths.
func shownPart(text string) string { return visit.Shown("/" + text)[1:] }

// goals reads how many visitors of a site reached the app's goals. Goals belong to the app, so a shared link to a single site
// does not show them.
func (d *Dashboard) goals(ctx context.Context, v view, page *targetPage) (err error) {
	if v.path != "" || v.ofEvents() || v.onlySums() {
		return nil
	}
	page.Funnel = v.copyWith(func(o *view) { o.funnel, o.onePage, o.find = true, false, "" }).link()
	if len(v.app.Goals) == 0 || v.app.ofOneSite() {
		return nil
	}
	var read report.Panel[report.Goal]
	reason, err := d.readWithTimeout(ctx, v, func(ctx context.Context) (err error) {
		read, err = d.reader.Goals(ctx, v.look())
		return err
	})
	if err != nil {
		return err
	}
	made := v.newActionList("goals", "did.goals")
	made.From = v.source("goals", read.SQL)
	if page.Goals = made; reason != "" {
		made.Reason = reason
	} else if len(read.Rows) > 0 {
		made.Help = v.say("did.goals-help")
	}
	for _, g := range read.Rows {
		r := row{Name: goalName(g.Goal)}.choose(slices.Contains(v.where, g.Goal))
		if v.app.Shared == nil || v.sharesCondition(g.Goal) {
			r.Link = v.copyWith(func(o *view) { o.goal, o.onePage, o.find = g.Goal, false, "" }).link()
		}
		made.addShare(v, r, g.Visitors, g.OfVisitors)
	}
	return nil
}

// makeReachedPage makes the page of a goal or a funnel.
func (d *Dashboard) makeReachedPage(ctx context.Context, v view) (_ Page, err error) {
	page := reachedPage{frame: v.frame(), Heading: v.heading(), Range: v.rangeBar(), Chips: v.chips(), List: list{Kind: "bars tags"},
		Back: v.copyWith(func(o *view) { o.goal, o.funnel, o.steps = "", false, nil }).link()}
	page.Heading.Compared, page.Range.Compares = "", nil
	if v.goal != "" {
		err = d.goal(ctx, v, &page)
	} else {
		err = d.funnel(ctx, v, &page)
	}
	if page.Reason, err = v.reasonOf(err); err != nil {
		return Page{}, err
	}
	return render("reached", page), nil
}

func (d *Dashboard) goal(ctx context.Context, v view, page *reachedPage) error {
	page.Goal = goalName(v.goal)
	page.List.Columns = v.columnsOf(sentenceCase(v.tagLabel(v.goalBy)), "visitors", "reached.reached", "of", "numbers.visitors",
		"share", "did.of")
	if page.Only = v.copyWith(func(o *view) { o.goal = "" }).toggleCondition(v.goal).link(); slices.Contains(v.where, v.goal) {
		page.Only = ""
	}
	for _, by := range v.goalsBy() {
		page.By = append(page.By, option{v.tagLabel(by), v.copyWith(func(o *view) { o.goalBy = by }).link(), by == v.goalBy, ""})
	}
	_, look := v.panelReport("goal")
	read, err := d.reader.Goals(ctx, look)
	page.List.From = v.source("goal", read.SQL)
	most := int64(0)
	for _, g := range read.Rows {
		most = max(most, g.Visitors)
	}
	for _, g := range read.Rows[:min(len(read.Rows), goalRows)] {
		name := tagName(v.app.words(), v.goalBy, g.Value)
		if at, is := visit.ParseDay(g.Value, v.app.Today); v.goalBy == byDay && is == nil {
			name = v.app.words().Day(at)
		}
		page.List.add(v, row{Name: name, Bar: bar("rank", g.Visitors, most)}, map[string]any{"visitors": g.Visitors, "of": g.OfVisitors,
			"share": v.rate(g.Visitors, g.OfVisitors)})
	}
	return err
}

const goalRows = 400

func (d *Dashboard) funnel(ctx context.Context, v view, page *reachedPage) error {
	path, _, _ := strings.Cut(v.link(), "?")
	page.Form = search{Action: path, Keeps: v.hiddenFields("step")}
	page.Steps = make([]string, max(v.fields, len(v.steps)))
	for i, step := range v.steps {
		page.Steps[i] = stepText(step)
	}
	page.More = len(page.Steps) < mostSteps
	if err := d.suggestSteps(ctx, v, page); err != nil || len(v.steps) == 0 {
		return err
	}
	page.List.Columns = v.columnsOf(v.say("reached.step"), "visitors", "numbers.visitors", "share", "did.of", "lost", "reached.lost",
		"day", "reached.one-day")
	page.List.Columns[3].Class = "n wide"
	_, look := v.panelReport("funnel")
	read, err := d.reader.Funnel(ctx, look)
	page.List.From = v.source("funnel", read.SQL)
	for i, f := range read.Rows {
		before := read.Rows[max(i-1, 0)].Visitors
		page.List.add(v, row{Name: v.stepName(f.Step), Bar: bar("rank", f.Visitors, read.Rows[0].Visitors)}, map[string]any{
			"visitors": f.Visitors, "share": v.rate(f.Visitors, read.Rows[0].Visitors), "lost": before - f.Visitors, "day": f.SameDay})
	}
	return err
}

const suggestedSteps = 20

// suggestSteps reads suggestions for steps: pages of the site and events of the app. A reader with a shared link gets only pages,
// because events belong to the app.
func (d *Dashboard) suggestSteps(ctx context.Context, v view, page *reachedPage) error {
	for _, of := range []struct{ site, condition string }{{v.site, "page:/"}, {visit.EventSite, "event:"}} {
		if of.site == visit.EventSite && v.app.Shared != nil {
			break
		}
		top, err := d.reader.TopPages(ctx, report.Look{App: v.app.Name, Target: of.site, In: v.look().In, By: orders[0], N: suggestedSteps})
		if err != nil {
			return err
		}
		for _, p := range top.Rows {
			// Sums of several pages are not suggested.
			if path := strings.TrimPrefix(p.URI, of.site); path != visit.OtherPage && path != visit.DeletedPage {
				page.Hint = append(page.Hint, stepText(of.condition+writtenValue(path[1:])))
			}
		}
	}
	return nil
}

// reachedPanelReport is panelReport for the panels about goals and funnels.
func (v view) reachedPanelReport(panel string, look report.Look) (name string, _ report.Look) {
	switch {
	case panel == "goals" && v.goal == "" && !v.funnel && len(v.app.Goals) > 0 && !v.app.ofOneSite():
		name = "goals"
	case panel == "goal" && v.goal != "":
		name, look.Goal, look.Split = "goals", v.goal, v.goalBy
	case panel == "funnel" && len(v.steps) > 0:
		name, look.Steps = "funnel", v.steps
	}
	return name, look
}
