package app

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"footfall/db"
	"footfall/visit"
	"footfall/visit/tag"
)

const unknownWordFormat = "%.64q is not possible: write %s"

// applyWord sets a setting that allows only certain words. refusal is the format of the error for any other word. The
// arguments of this format are the other word and the list of allowed words.
func applyWord(f *faults, name string, given, to *string, words []string, refusal string) {
	if given == nil {
		return
	}
	*to = *given
	if !slices.Contains(words, *given) {
		f.add(name, refusal, *given, strings.Join(words, ", "))
	}
}

func applySwitch(f *faults, name string, given *string, to *bool) {
	if given != nil {
		var word string
		applyWord(f, name, given, &word, switchWords, unknownWordFormat)
		*to = word == switchWord[true]
	}
}

// longestRetention is the maximum of retain-days and forget-days: a hundred years.
const longestRetention = 36500

func applyDays(f *faults, name string, given *int, to *int32, refusal string) {
	switch {
	case given == nil:
	case *given < 0 || *given > longestRetention:
		f.add(name, refusal, *given, longestRetention)
	default:
		*to = int32(*given) //nolint:gosec // checked above
	}
}

// applyList calls read for each given text, and stores the results in *to, without duplicates.
func applyList(f *faults, name string, given []string, to *[]string, read func(string) (string, error)) {
	if given == nil {
		return
	}
	*to = []string{}
	for _, raw := range given {
		one, err := read(raw)
		if err != nil {
			*f = append(*f, visit.InField(name, err))
		} else if !slices.Contains(*to, one) {
			*to = append(*to, one)
		}
	}
}

// mostHosts limits the hosts in a file of ignored hosts. mostFaults limits the faults that are reported at once.
const (
	mostHosts  = 10_000
	mostFaults = 10
)

// applyIgnoreFile replaces the ignored hosts with the hosts in a file, one per line. If the setting ignore is also given, the
// hosts are added to its list instead.
func (s Settings) applyIgnoreFile(f *faults, row *db.App) {
	if s.IgnoreFile == nil {
		return
	}
	var hosts []string
	for at, line := range strings.Split(string(s.IgnoreFile), "\n") {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		host, err := readIgnoredHost(line)
		if err != nil {
			f.add("ignore-file", "line %d: %.64q is not a host: write one host per line, like spam.example", at+1, line)
		}
		if hosts = append(hosts, host); len(*f) == mostFaults {
			return
		}
	}
	slices.Sort(hosts)
	if hosts = slices.Compact(hosts); len(hosts) > mostHosts {
		f.add("ignore-file", "it has %d hosts: at most %d are possible", len(hosts), mostHosts)
	}
	if s.Ignore == nil {
		row.Ignore = slices.DeleteFunc(slices.Clone(row.Ignore), func(one string) bool { return strings.HasPrefix(one, FromPrefix) })
	}
	row.Ignore = append(row.Ignore, hosts...)
}

// readParameter validates a query parameter that distinguishes pages.
func readParameter(name string) (string, error) {
	if name == "" {
		return "", invalid("the name of a query parameter is empty: write a name like id")
	}
	return name, nil
}

const mostGoals = 20

// readGoal reads a goal, which is written like a filter condition.
func readGoal(text string) (string, error) {
	text = visit.StoredCondition(text)
	name, value, _ := strings.Cut(text, ":")
	_, err := visit.EventTarget(value)
	if name == "event" && err == nil || name == "page" && strings.HasPrefix(value, "/") && len(value) <= mostGoal && utf8.ValidString(value) {
		return text, nil
	}
	return "", invalid("%.64q is not a goal: write one like event:signup, page:/thanks or page:/docs/*", text)
}

const mostGoal = 500 // bytes

// belowEvent ends an entry that stands for all events below a path: like/* stands for all events that begin with like/.
const belowEvent = "/*"

// readPublicEvent validates the name of an event with public numbers, and returns its canonical form.
func readPublicEvent(text string) (string, error) {
	name, below := strings.CutSuffix(text, belowEvent)
	t, err := visit.EventTarget(name)
	event := strings.TrimPrefix(t.Page, visit.EventSite+"/")
	if err != nil || len(text) > mostGoal || strings.Contains(event, "*") {
		return "", invalid("%.64q is not an event: write one like signup, or like/* for all events below like/", text)
	}
	if below {
		event += belowEvent
	}
	return event, nil
}

// applyLimit sets a limit. nil means the default limit.
func applyLimit(f *faults, name string, given *string, to **int32) {
	if given == nil {
		return
	}
	if *given == byDefault {
		*to = nil
		return
	}
	n, err := strconv.ParseInt(*given, 10, 32)
	if err != nil || n < 0 {
		f.add(name, "%.64q is not a limit: write a number up to %d, 0 for no limit, or %s", *given, math.MaxInt32, byDefault)
		return
	}
	limit := int32(n)
	*to = &limit
}

// noTags, as the only name in a list, selects no tags except hour.
const noTags = "none"

// readTags reads the names of the tags to count: first the built-in tags in their order, always with hour, then the app's
// own. "default" selects all built-in tags.
func readTags(f *faults, given []string) (names []string) {
	var own []string
	for _, name := range given {
		switch err := tag.CheckName(name); {
		case name == byDefault, name == noTags && len(given) == 1, slices.Contains(tag.Names, name), slices.Contains(own, name):
		case name == noTags:
			f.add("tags", "%s cannot be combined with other names: remove it, or the other names", noTags)
		case err != nil:
			*f = append(*f, visit.InField("tags", err))
		default:
			own = append(own, name)
		}
	}
	if len(own) > tag.MostNames {
		f.add("tags", "there are %d tags of your own: keep at most %d", len(own), tag.MostNames)
	}
	for _, name := range tag.Names {
		if name == tag.Hour || slices.Contains(given, name) || slices.Contains(given, byDefault) {
			names = append(names, name)
		}
	}
	return append(names, own...)
}
