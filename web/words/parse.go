package words

import (
	"fmt"
	"strconv"
	"strings"
)

// parse parses the subset of TOML that the files use: sections, and keys with single-line strings. The keys of the result have
// the form section.key.
func parse(file string) (map[string]string, error) {
	texts, section, n := map[string]string{}, "", 0
	for line := range strings.Lines(file) {
		n++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		if name, is := strings.CutPrefix(line, "["); is && strings.HasSuffix(name, "]") {
			section = strings.TrimSuffix(name, "]") + "."
			continue
		}
		key, value, is := strings.Cut(line, " = ")
		text, err := strconv.Unquote(value)
		if _, twice := texts[section+key]; !is || err != nil || twice || strings.ContainsAny(key, `" `) {
			return nil, fmt.Errorf("line %d is not a new key with a text: %.80s", n, line)
		}
		texts[section+key] = text
	}
	return texts, nil
}
