package visit

import "cmp"

// toolNames contains the name of the tool that counted the imported history from each source.
var toolNames = map[string]string{"goatcounter": "GoatCounter", "umami": "Umami", "plausible": "Plausible", "matomo": "Matomo",
	"ga4": "Google Analytics", "csv": "another counter", "leancloud": "LeanCloud"}

// CountedBy returns the name of the tool that counted the imported history from this source.
func CountedBy(source string) string { return cmp.Or(toolNames[source], source) }
