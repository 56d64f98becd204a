package web

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/assert"
)

// Every time zone in the list is valid, including the names used by browsers.
func TestZones(t *testing.T) {
	t.Parallel()
	all := strings.Fields(zones)
	for _, name := range all {
		_, err := time.LoadLocation(name)
		assert.NoError(t, err)
	}
	for _, name := range []string{"UTC", "Europe/Berlin", "Europe/Kyiv", "Europe/Kiev", "Asia/Calcutta", "Asia/Kolkata", "Asia/Shanghai",
		"America/New_York"} {
		assert.Contains(t, all, name)
	}
}
