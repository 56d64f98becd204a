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

// parsedLine is a parsed command line. It also contains the values of flags that environment variables set, and all faults
// of flags.
type parsedLine struct {
	commandLine
	selected      any  // the selected command; nil: the arguments select no command
	hasParseFault bool // some arguments could not be parsed
	faults        faults
	unknown       []string          // environment variables that start with FOOTFALL_, but do not belong to a flag
	declared      []string          // names of the environment variables of all flags
	variableOf    map[string]string // flag, like --data → the variable that set it
	flags         []string          // names of the flags that the command accepts, without dashes
}

// readLine parses the arguments and the environment. It collects all faults, not only the first one.
func readLine(args []string, stdout, stderr io.Writer) *parsedLine {
	t := &parsedLine{variableOf: map[string]string{}}
	parser := t.newParser(defaultData(), stdout, stderr)
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if failed := (*kong.ParseError)(nil); errors.As(err, &failed) {
		t.hasParseFault, t.faults = true, append(t.faults, err)
		// Continue with the flags and arguments before the one that could not be parsed.
		if parsed = failed.Context; parsed.Reset() == nil {
			_, _ = parsed.Apply() // Apply cannot fail here
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
		case command, opensFirst[*db.DB], opensFirst[*admin.Admin], opensFirst[*cells.Cluster]: // other nodes only group subcommands
			t.selected = found
		}
	}
	return t
}

// newParser returns a parser that stores a command line in t. data is the text that the help shows as the default of
// --data.
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
		panic(err) // only a bug in commandLine or its struct tags causes an error
	}
	return parser
}

// readEnvironment stores in t.variableOf which environment variables have set flags. It stores the unknown variables in
// t.unknown.
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

// isForeignVariable reports whether a variable that starts with FOOTFALL_ belongs to the tests, to the Docker Compose file
// or to Kubernetes.
func isForeignVariable(name, value string) bool {
	return strings.HasPrefix(name, "FOOTFALL_TEST_") || name == published || kubernetesName.MatchString(name) ||
		strings.HasSuffix(name, "_PORT") && strings.Contains(value, "://")
}

// warnings returns a line for each unknown environment variable. If a flag has a variable with a similar name, the line
// suggests that variable.
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

// maxSuggestDistance is the maximum edit distance between an unknown variable and the suggested variable.
const maxSuggestDistance = 3

// check calls the command's check method, or checkDatabase if the command has no such method. If a flag already has a
// fault, check ignores further faults of this flag.
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

// nameVariables changes the text of an error. If the text starts with the name of a flag without dashes, nameVariables adds
// the dashes. If an environment variable has set a flag in the text, nameVariables replaces the flag by the name of this
// variable.
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

// distance returns the edit distance: how many letters must be added, removed or changed to turn a into b.
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

// tolerant wraps a mapper, the part of Kong that parses the value of a flag. If a value is invalid, tolerant stores the
// error in fault, so that parsing continues. Kong's own mappers stop at the first error.
type tolerant struct {
	kong.Mapper
	fault error
}

// tolerate wraps the mapper of every flag of root and of its subcommands in a tolerant mapper. It also adds the environment
// variables of these flags to t.declared.
func (t *parsedLine) tolerate(root *kong.Node) error {
	return kong.Visit(root, func(node kong.Visitable, next kong.Next) error {
		if flag, is := node.(*kong.Flag); is {
			flag.Mapper = &tolerant{Mapper: flag.Mapper}
			t.declared = append(t.declared, flag.Envs...)
		}
		return next(nil)
	})
}

// takenForFlag matches Kong's error about a value that starts with a dash, so that Kong takes it for a flag.
var takenForFlag = regexp.MustCompile(`value but got (".*") \((?:short|long) flag\)$`)

// Decode reads a value into target. If the value is invalid, it leaves target unchanged, records the error, and returns nil.
func (m *tolerant) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	if err := m.Mapper.Decode(ctx, target); err != nil && m.fault == nil {
		if next := takenForFlag.FindStringSubmatch(err.Error()); next != nil {
			err = fmt.Errorf("it has no value: %s begins with a dash, like a flag: write such a value after =", next[1])
		}
		m.fault = err // keep only the first error: Kong decodes the typed value first, and then the default
	}
	return nil
}

// IsBool reports whether the flag is boolean. Such a flag needs no value.
func (m *tolerant) IsBool() bool {
	inner, is := m.Mapper.(kong.BoolMapper)
	return is && inner.IsBool()
}

// helpText contains the help of each command, argument and flag. The headings are names like "serve", "psql <args>" or
// "serve --addr". If several subcommands share a flag, its help is under the name of their parent: "app --tz" is the
// heading for "app add" and "app set". The settings pages show the same help, but without the text in [[ ]].
//
//go:embed help.txt
var helpText string

// readHelp parses a text like helpText, and returns the help by name. A line without indentation is a name. The indented
// lines after it are its help.
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

// nameOfHelp returns the key in help for a flag or argument of a command. If help has no key for this command, nameOfHelp
// tries the command's parents, the nearest one first.
func nameOfHelp(help map[string]string, command, flag string) string {
	for {
		name := strings.TrimSpace(command + " " + flag)
		if _, is := help[name]; is || command == "" {
			return name
		}
		command = command[:max(0, strings.LastIndex(command, " "))]
	}
}

// setHelp sets the help texts of a command's flags, arguments and subcommands. It does the same for all subcommands below.
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
