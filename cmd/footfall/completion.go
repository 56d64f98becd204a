package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// completionScripts contains a script for each shell. The script calls `footfall completion words`, which prints the
// possible completions. If it prints none, for example for the value of a flag, the script completes file names.
var completionScripts = map[string]string{
	"bash": `_footfall() {
  local IFS=$'\n'
  COMPREPLY=($(footfall completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f 1))
}
complete -o default -F _footfall footfall
`,
	"zsh": `#compdef footfall
_footfall() {
  local -a found
  local word help
  while IFS=$'\t' read -r word help; do
    found+=("${word//:/\\:}:$help")
  done < <(footfall completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( $#found )); then _describe footfall found; else _files; fi
}
if [[ $funcstack[1] = _footfall ]]; then _footfall; else compdef _footfall footfall; fi
`,
	"fish": `function __footfall
  set -l found (footfall completion words -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)
  if set -q found[1]
    printf '%s\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c footfall -f -a '(__footfall)'
`,
}

type completionCmd struct {
	Shell string   `arg:"" placeholder:"SHELL"`
	Words []string `arg:"" optional:"" placeholder:"WORD"`
}

func (c *completionCmd) check(globals) (f faults) {
	f.addIf(c.Shell != "" && c.Shell != "words" && completionScripts[c.Shell] == "",
		"%q is not a supported shell: write bash, zsh or fish", c.Shell)
	f.addIf(c.Shell != "words" && len(c.Words) > 0, "%q: the script completes all commands: "+
		"leave this out", strings.Join(c.Words, " "))
	return f
}

func (c *completionCmd) run(_ context.Context, p *program) error {
	if c.Shell == "words" {
		complete(p.stdout, c.Words)
		return nil
	}
	_, err := io.WriteString(p.stdout, completionScripts[c.Shell])
	return err
}

// complete prints the possible completions of the last word in words. It prints each one with the first sentence of its
// help.
func complete(to io.Writer, words []string) {
	if len(words) == 0 {
		words = []string{""}
	}
	last := words[len(words)-1]
	node, value := new(parsedLine).newParser(everybodysData, io.Discard, io.Discard).Model.Node, false
	for _, word := range words[:len(words)-1] {
		if value || word == "=" { // bash splits --flag=value into three words
			value = word == "="
			continue
		}
		flags := slices.Concat(node.AllFlags(false)...)
		if at := slices.IndexFunc(flags, func(flag *kong.Flag) bool { return word == "--"+flag.Name }); at >= 0 {
			value = !flags[at].IsBool()
		} else if at := slices.IndexFunc(node.Children, func(child *kong.Node) bool { return word == child.Name }); at >= 0 {
			node = node.Children[at]
		}
	}
	offer := func(word, help string) {
		if sentence, _, _ := strings.Cut(help, ". "); strings.HasPrefix(word, last) {
			fmt.Fprintf(to, "%s\t%s\n", word, strings.TrimSuffix(sentence, "."))
		}
	}
	switch {
	case value || last == "=":
	case strings.HasPrefix(last, "-"):
		for _, flag := range slices.Concat(node.AllFlags(true)...) {
			offer("--"+flag.Name, flag.Help)
		}
	default:
		for _, child := range node.Children {
			if !child.Hidden {
				offer(child.Name, child.Help)
			}
		}
	}
}

// everybodysData is a text about the default of --data, for the manual page. The default depends on the user, but the page
// is the same for all users.
const everybodysData = "/var/lib/footfall for root, footfall in ~/.local/share for others"

// writeManual writes the manual page in roff, the format of man.
func writeManual(to io.Writer) error {
	root := new(parsedLine).newParser(everybodysData, io.Discard, io.Discard).Model.Node
	var page strings.Builder
	about, _, _ := strings.Cut(root.Help, ".\n")
	fmt.Fprintf(&page, ".TH FOOTFALL 1 \"\" \"footfall %s\"\n.SH NAME\nfootfall \\- %s\n",
		roff(version), roff(strings.TrimPrefix(about, "Footfall ")))
	fmt.Fprintf(&page, ".SH SYNOPSIS\n.B footfall\n.I command\n[flags]\n.SH DESCRIPTION\n%s\n", roff(root.Help))
	page.WriteString(".SH FLAGS OF EVERY COMMAND\n")
	describe(&page, root)
	page.WriteString(".SH COMMANDS\n")
	_ = kong.Visit(root, func(visited kong.Visitable, next kong.Next) error {
		if node, is := visited.(*kong.Node); is && node != root && !node.Hidden {
			if node.Leaf() {
				fmt.Fprintf(&page, ".SS \"footfall %s\"\n%s\n", roff(strings.TrimPrefix(node.Summary(), "footfall ")), roff(node.Help))
			}
			describe(&page, node)
		}
		return next(nil)
	})
	_, err := io.WriteString(to, page.String())
	return err
}

// describe writes the arguments and flags of one command to the manual page, without the flags of its parent commands.
func describe(page *strings.Builder, node *kong.Node) {
	for _, argument := range node.Positional {
		fmt.Fprintf(page, ".TP\n.B %s\n%s\n", roff(argument.Summary()), roff(argument.Help))
	}
	for _, flag := range node.Flags {
		if !flag.Hidden {
			fmt.Fprintf(page, ".TP\n.B %s\n%s\n", roff("--"+flag.Name), roff(flag.Help))
		}
	}
}

// roff escapes a text for use in a manual page.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`, "\n\n", "\n.PP\n").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
