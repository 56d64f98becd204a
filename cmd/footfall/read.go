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

// parsedLine is a parsed command line, including the environment variables that it uses, and all faults.
type parsedLine struct {
	commandLine
	selected      any  // the command, or nil if none could be read
	hasParseFault bool // some words could not be parsed
	faults        faults
	unknown       []string          // variables in the environment that start with FOOTFALL_, but are read by no flag
	declared      []string          // names of all variables that flags read
	variableOf    map[string]string // flag, like --data → the variable that set it
	flags         []string          // names of the flags that the command accepts, without dashes
}

// readLine reads arguments and environment. It reports all faults, not only the first.
func readLine(args []string, stdout, stderr io.Writer) *parsedLine {
	t := &parsedLine{variableOf: map[string]string{}}
	parser := t.newParser(defaultData(), stdout, stderr)
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if failed := (*kong.ParseError)(nil); errors.As(err, &failed) {
		t.hasParseFault, t.faults = true, append(t.faults, err)
		// Continue with the flags and words read so far.
		if parsed = failed.Context; parsed.Reset() == nil {
			_, _ = parsed.Apply() // cannot fail
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
		case command, opensFirst[*db.DB], opensFirst[*admin.Admin], opensFirst[*cells.Cluster]: // others only group subcommands
			t.selected = found
		}
	}
	return t
}

// newParser returns a parser that reads a command line into t, with the help texts of all commands.
func (t *parsedLine) newParser(data string, stdout, stderr io.Writer) *kong.Kong {
	parser, err := kong.New(&t.commandLine,
		kong.Name("footfall"),
		kong.Description("Footfall counts visits to web pages, exactly, in PostgreSQL.\n\n"+
			"Every flag that shows a $$FOOTFALL_… can be given in the environment by that name. "+
			"Exit codes: 0 done, 1 failed, 2 an argument or flag is wrong and nothing was done, 3 verify found nothing to "+
			"check, 4 status has warnings."),
		kong.Vars{"data": data, "version": versionText()},
		kong.PostBuild(func(k *kong.Kong) error {
			setHelp(readHelp(strings.NewReplacer("[[", "", "]]", "").Replace(helpText)), k.Model.Node, "")
			return t.tolerate(k.Model.Node)
		}),
		kong.Writers(stdout, stderr),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}),
	)
	if err != nil {
		panic(err) // a bug in commandLine or its tags
	}
	return parser
}

// readEnvironment determines which flags the environment sets, and which variables are unknown.
func (t *parsedLine) readEnvironment(parsed *kong.Context) {
	written := map[*kong.Value]bool{}
	for _, step := range parsed.Path {
		if step.Flag != nil {
			written[step.Flag.Value] = true
		}
	}
	for _, flag := range parsed.Flags() {
		for _, name := range flag.Envs {
			if _, set := os.LookupEnv(name); set && !written[flag.Value] {
				t.variableOf["--"+flag.Name] = name
			}
		}
	}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "FOOTFALL_") && !slices.Contains(t.declared, name) && !isForeignVariable(name, value) {
			t.unknown = append(t.unknown, name)
		}
	}
	slices.Sort(t.unknown)
}

// kubernetesName matches variables that Kubernetes sets in each pod for a service named footfall.
var kubernetesName = regexp.MustCompile(`^FOOTFALL(_\w+)?_(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

// isForeignVariable reports whether a variable starting with FOOTFALL_ belongs to the tests, the compose file or Kubernetes.
func isForeignVariable(name, value string) bool {
	return strings.HasPrefix(name, "FOOTFALL_TEST_") || name == published || kubernetesName.MatchString(name) ||
		strings.HasSuffix(name, "_PORT") && strings.Contains(value, "://")
}

// warnings returns a line for each unknown variable. The line suggests a variable that flags read, if one has a similar name.
func (t *parsedLine) warnings() (lines []string) {
	for _, name := range t.unknown {
		line := name + " is set in the environment, and nothing reads it: `footfall serve --help` lists the names"
		nearest := slices.MinFunc(t.declared, func(a, b string) int { return distance(a, name) - distance(b, name) })
		if distance(nearest, name) <= maxSuggestDistance {
			line = name + " is set in the environment, and nothing reads it: did you mean " + nearest + "?"
		}
		lines = append(lines, line)
	}
	return lines
}

// maxSuggestDistance is the maximum distance between an unknown name and a suggested name.
const maxSuggestDistance = 3

// check runs the command's own check, or checkDatabase if the command has none. It leaves out a fault of a flag that already
// has a fault.
func (t *parsedLine) check() {
	if t.selected == nil {
		return
	}
	check := globals.checkDatabase
	if own, is := t.selected.(flagChecker); is {
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

// nameVariables replaces each flag in text by its environment variable, if the variable set the flag. Errors from other packages start
// with a field, and if this is the name of a flag, nameVariables adds the dashes first.
func (t *parsedLine) nameVariables(text string) string {
	if field, _, _ := strings.Cut(text, ":"); slices.Contains(t.flags, field) {
		text = "--" + text
	}
	return flagName.ReplaceAllStringFunc(text, func(flag string) string {
		if name, is := t.variableOf[flag]; is {
			return name
		}
		return flag
	})
}

// distance returns how many letters must be added, removed or changed to turn a into b.
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

// tolerant is a flag's mapper that records the error of an invalid value, so that parsing continues. Kong itself would stop at
// the first error.
type tolerant struct {
	kong.Mapper
	fault error
}

// tolerate gives a tolerant mapper to every flag below root, and collects the environment variables of these flags in declared.
func (t *parsedLine) tolerate(root *kong.Node) error {
	return kong.Visit(root, func(node kong.Visitable, next kong.Next) error {
		if flag, is := node.(*kong.Flag); is {
			flag.Mapper = &tolerant{Mapper: flag.Mapper}
			t.declared = append(t.declared, flag.Envs...)
		}
		return next(nil)
	})
}

// takenForFlag matches kong's error about a value that looks like a flag.
var takenForFlag = regexp.MustCompile(`value but got (".*") \((?:short|long) flag\)$`)

// Decode reads a value into target. If the value is invalid, it leaves target unchanged, records the error, and returns nil.
func (m *tolerant) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	if err := m.Mapper.Decode(ctx, target); err != nil && m.fault == nil {
		if next := takenForFlag.FindStringSubmatch(err.Error()); next != nil {
			err = fmt.Errorf("it has no value: %s begins with a dash, like a flag: write such a value after =", next[1])
		}
		m.fault = err // kong decodes the typed value first and then the default, so the first error is kept
	}
	return nil
}

// IsBool reports whether the flag can be given without a value.
func (m *tolerant) IsBool() bool {
	inner, is := m.Mapper.(kong.BoolMapper)
	return is && inner.IsBool()
}

// helpText contains the help of each command, argument and flag, under its name: "serve", "psql <args>", "serve
// --addr". Flags shared by several subcommands are under their parent: the flags of "app add" and "app set" are under
// "app". Text in [[ ]] appears only on the command line, not on the settings pages, which show the same help.
//
//go:embed help.txt
var helpText string

// readHelp parses a text like helpText. A name starts at the beginning of a line, and its help is indented.
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

// nameOfHelp returns the key in help for a flag or argument of a command. If help has no text under the command, the key
// belongs to the nearest parent command with a text.
func nameOfHelp(help map[string]string, command, flag string) string {
	for {
		name := strings.TrimSpace(command + " " + flag)
		if _, is := help[name]; is || command == "" {
			return name
		}
		command = command[:max(0, strings.LastIndex(command, " "))]
	}
}

// setHelp sets the help of a command, its subcommands, and their flags and arguments.
func setHelp(help map[string]string, node *kong.Node, command string) {
	for _, flag := range node.Flags {
		flag.Help = help[nameOfHelp(help, command, "--"+flag.Name)]
	}
	for _, argument := range node.Positional {
		argument.Help = help[nameOfHelp(help, command, "<"+argument.Name+">")]
	}
	for _, child := range node.Children {
		name := strings.TrimSpace(command + " " + child.Name)
		child.Help = help[name]
		setHelp(help, child, name)
	}
}
