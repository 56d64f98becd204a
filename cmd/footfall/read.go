package main

import (
	_ "embed" // for help.txt
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"footfall/admin"
	"footfall/db"
	"footfall/db/cells"
)

// typed is a command line that was read, with all that is wrong with it and with the environment.
type typed struct {
	commandLine
	selected any  // the command; nil where none could be read
	misread  bool // there are words that mean nothing
	faults   faults
	unknown  []string          // names of the environment that look like ours, and are not
	declared []string          // names of the environment that exist
	given    map[string]string // names of the environment that gave a value, by their flag (--data)
	flags    []string          // of the command
}

// readLine reads arguments and environment. What is wrong does not hide what else is.
func readLine(args []string, stdout, stderr io.Writer) *typed {
	t := &typed{given: map[string]string{}}
	parser := t.newParser(defaultData(), stdout, stderr)
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if failed := (*kong.ParseError)(nil); errors.As(err, &failed) {
		t.misread, t.faults = true, append(t.faults, err)
		// What was read so far can be looked at all the same.
		if parsed = failed.Context; parsed.Reset() == nil {
			_, _ = parsed.Apply() // which cannot fail
		}
	}
	t.readEnvironment(parsed)
	for _, flag := range parsed.Flags() {
		t.flags = append(t.flags, flag.Name)
		dashes := "--"
		if len(flag.Name) == 1 {
			dashes = "-"
		}
		if m, is := flag.Mapper.(*tolerant); is && m.fault != nil {
			t.faults.add(fmt.Errorf("%s%s: %w", dashes, flag.Name, m.fault))
		}
	}
	if node := parsed.Selected(); node != nil {
		switch found := node.Target.Addr().Interface().(type) {
		case command, on[*db.DB], on[*admin.Admin], on[*cells.Cluster]: // and not what only has commands beneath it
			t.selected = found
		}
	}
	return t
}

// newParser returns what reads a command line into t, and knows its help.
func (t *typed) newParser(data string, stdout, stderr io.Writer) *kong.Kong {
	parser, err := kong.New(&t.commandLine,
		kong.Name("footfall"),
		kong.Description("Footfall counts visits to web pages, exactly, in PostgreSQL.\n\n"+
			"Every flag that shows a $$FOOTFALL_… can be given in the environment by that name. "+
			"Exit codes: 0 done, 1 failed, 2 something typed is wrong and nothing was done, 3 verify found nothing to check, 4 status has "+
			"warnings."),
		kong.Vars{"data": data, "version": versionText()},
		kong.PostBuild(func(k *kong.Kong) error {
			explain(readHelp(strings.NewReplacer("[[", "", "]]", "").Replace(helpText)), k.Model.Node, "")
			return t.tolerate(k.Model.Node)
		}),
		kong.Writers(stdout, stderr),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}),
	)
	if err != nil {
		panic(err) // commandLine, or a tag in it, is wrong
	}
	return parser
}

// readEnvironment finds out which flags the environment gave, and which of its names nobody reads.
func (t *typed) readEnvironment(parsed *kong.Context) {
	written := map[*kong.Value]bool{}
	for _, step := range parsed.Path {
		if step.Flag != nil {
			written[step.Flag.Value] = true
		}
	}
	for _, flag := range parsed.Flags() {
		for _, name := range flag.Envs {
			if _, set := os.LookupEnv(name); set && !written[flag.Value] {
				t.given["--"+flag.Name] = name
			}
		}
	}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "FOOTFALL_") && !slices.Contains(t.declared, name) && !othersName(name, value) {
			t.unknown = append(t.unknown, name)
		}
	}
	slices.Sort(t.unknown)
}

// kubernetesName is what Kubernetes sets in each pod for a service that is called footfall.
var kubernetesName = regexp.MustCompile(`^FOOTFALL(_\w+)?_(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

// othersName reports whether a name that begins like ours is none of a flag: one of our tests', of the
// compose file, or of Kubernetes.
func othersName(name, value string) bool {
	return strings.HasPrefix(name, "FOOTFALL_TEST_") || name == published || kubernetesName.MatchString(name) ||
		strings.HasSuffix(name, "_PORT") && strings.Contains(value, "://")
}

// warnings tell of names in the environment that nobody reads, each with the nearest that is read.
func (t *typed) warnings() (lines []string) {
	for _, name := range t.unknown {
		line := name + " is set in the environment, and nothing reads it: `footfall serve --help` lists the names"
		nearest := slices.MinFunc(t.declared, func(a, b string) int { return distance(a, name) - distance(b, name) })
		if distance(nearest, name) <= alike {
			line = name + " is set in the environment, and nothing reads it: is " + nearest + " meant?"
		}
		lines = append(lines, line)
	}
	return lines
}

// alike is how many letters a name may differ from another for which it may have been meant.
const alike = 3

// check adds what the command's own check finds to the faults, but for flags that have one already.
func (t *typed) check() {
	if t.selected == nil {
		return
	}
	check := globals.checkDatabase
	if own, is := t.selected.(checked); is {
		check = own.check
	}
	before := t.faults
	for _, fault := range check(t.globals) {
		flag, _, _ := strings.Cut(fault.Error(), ":")
		if !slices.ContainsFunc(before, func(b error) bool { return strings.HasPrefix(b.Error(), flag+":") }) {
			t.faults = append(t.faults, fault)
		}
	}
}

var flagName = regexp.MustCompile(`--[a-z0-9][a-z0-9-]*`)

// named writes a flag as it was given: by its name in the environment, if it came
// from there. What was not checked here begins with the name of a field, which may be a flag.
func (t *typed) named(text string) string {
	if field, _, _ := strings.Cut(text, ":"); slices.Contains(t.flags, field) {
		text = "--" + text
	}
	return flagName.ReplaceAllStringFunc(text, func(flag string) string {
		if name, is := t.given[flag]; is {
			return name
		}
		return flag
	})
}

// distance is how many letters must be added, dropped or changed to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := corner
			if a[i] != b[j] {
				cost++
			}
			corner = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// tolerant is the mapper of a flag. It keeps what is wrong with the flag's value: kong itself would
// end with the first fault.
type tolerant struct {
	kong.Mapper
	fault error
}

// tolerate gives every flag beneath a node such a mapper, and notes its names of the environment.
func (t *typed) tolerate(root *kong.Node) error {
	return kong.Visit(root, func(node kong.Visitable, next kong.Next) error {
		if flag, is := node.(*kong.Flag); is {
			flag.Mapper = &tolerant{Mapper: flag.Mapper}
			t.declared = append(t.declared, flag.Envs...)
		}
		return next(nil)
	})
}

// takenForFlag is what kong says of a value that looks like a flag.
var takenForFlag = regexp.MustCompile(`value but got (".*") \((?:short|long) flag\)$`)

// Decode reads a value; one that cannot be read leaves the target as it is.
func (m *tolerant) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	if err := m.Mapper.Decode(ctx, target); err != nil && m.fault == nil {
		if next := takenForFlag.FindStringSubmatch(err.Error()); next != nil {
			err = fmt.Errorf("it has no value: %s begins with a dash, as flags do; write a value that does behind a =", next[1])
		}
		m.fault = err // what is typed comes first, then what would hold without it
	}
	return nil
}

// IsBool reports whether the flag can stand without a value.
func (m *tolerant) IsBool() bool {
	inner, is := m.Mapper.(kong.BoolMapper)
	return is && inner.IsBool()
}

// helpText holds the help of each command, argument and flag, beneath its name: "serve",
// "psql <args>", "serve --addr". What several commands beneath one have in common stands beneath
// that one: the flags of "app add" and "app set" are those of "app". What stands in [[ ]] is said in
// the shell alone, and not on pages of settings, which have this help, too.
//
//go:embed help.txt
var helpText string

// readHelp reads a text like helpText. A name begins its line, and the help of it is indented.
func readHelp(text string) map[string]string {
	help := map[string]string{}
	name := ""
	for line := range strings.Lines(text) {
		words := strings.TrimSpace(line)
		switch {
		case words == "":
		case strings.HasPrefix(line, " "):
			help[name] = strings.TrimSpace(help[name] + " " + words)
		default:
			name = words
		}
	}
	return help
}

// nameOfHelp is the name beneath which the help of a flag or argument stands: that of the command,
// or the nearest one above it that has one.
func nameOfHelp(help map[string]string, command, flag string) string {
	for {
		name := strings.TrimSpace(command + " " + flag)
		if _, is := help[name]; is || command == "" {
			return name
		}
		command = command[:max(0, strings.LastIndex(command, " "))]
	}
}

// explain gives a command, all that stands beneath it, and their flags and arguments their help.
func explain(help map[string]string, node *kong.Node, command string) {
	for _, flag := range node.Flags {
		flag.Help = help[nameOfHelp(help, command, "--"+flag.Name)]
	}
	for _, argument := range node.Positional {
		argument.Help = help[nameOfHelp(help, command, "<"+argument.Name+">")]
	}
	for _, child := range node.Children {
		name := strings.TrimSpace(command + " " + child.Name)
		child.Help = help[name]
		explain(help, child, name)
	}
}
