package visit

import "cmp"

// others has the names of other tools, by source of history.
var others = map[string]string{"goatcounter": "GoatCounter", "umami": "Umami", "plausible": "Plausible", "matomo": "Matomo",
	"ga4": "Google Analytics", "csv": "another counter", "leancloud": "LeanCloud"}

// CountedBy returns the name of the tool for a source of history.
func CountedBy(source string) string { return cmp.Or(others[source], source) }
