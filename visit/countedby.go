package visit

import "cmp"

// toolNames maps the source of imported history to the name of the tool that counted it.
var toolNames = map[string]string{"goatcounter": "GoatCounter", "umami": "Umami", "plausible": "Plausible", "matomo": "Matomo",
	"ga4": "Google Analytics", "csv": "another counter", "leancloud": "LeanCloud"}

// CountedBy returns the name of the tool that counted the imported history from a source.
func CountedBy(source string) string { return cmp.Or(toolNames[source], source) }
