package visit

import "cmp"

// others are names of what may have counted before.
var others = map[string]string{"goatcounter": "GoatCounter", "umami": "Umami", "plausible": "Plausible", "matomo": "Matomo",
	"ga4": "Google Analytics", "csv": "another counter", "leancloud": "LeanCloud"}

// CountedBy is what a source of history is called.
func CountedBy(source string) string { return cmp.Or(others[source], source) }
