package admin_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/counter/app"
)

func TestRetentionSettings(t *testing.T) {
	c := newCommands(t)
	for _, wrong := range []struct {
		retain, forget int
		says           string
	}{
		{-1, 0, "retain-days: -1 is not a number of days"},
		{36501, 0, "retain-days: 36501 is not a number of days"},
		{1, 36501, "forget-days: 36501 is not a number of days"},
		{10, 9, "forget-days: visits would be kept for longer than their visitors"},
		{0, 9, "forget-days: visits would be kept for longer than their visitors"},
	} {
		err := c.SetApp(t.Context(), "demo", app.Settings{RetainDays: &wrong.retain, ForgetDays: &wrong.forget})
		assert.ErrorContains(t, err, wrong.says)
	}
	require.EqualValues(t, 1, c.one(t, `SELECT count(*) FROM apps WHERE name = 'demo' AND (retain_days, forget_days) = (35, 0)`), "the defaults")
	for _, days := range []int{9, 0, 36500} {
		require.NoError(t, c.SetApp(t.Context(), "demo", app.Settings{RetainDays: &days, ForgetDays: &days}))
	}
}
