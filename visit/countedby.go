package visit

import "cmp"

// others has the names of other tools, by the name of the source from which history was imported.
var others = map[string]string{"goatcounter": "GoatCounter", "umami": "Umami", "plausible": "Plausible", "matomo": "Matomo",
	"ga4": "Google Analytics", "csv": "another counter", "leancloud": "LeanCloud"}

// CountedBy returns the name of the tool that counted the history from a source.
func CountedBy(source string) string { return cmp.Or(others[source], source) }
