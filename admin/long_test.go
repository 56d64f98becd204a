package admin_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter/app"
	"footfall/desk"
)

// begun is long work that runs until it is ended.
type begun struct{ goOn, ended chan struct{} }

type run func(ctx context.Context, app string, f func(context.Context, *admin.Admin) error) error

// begin returns after the work has its slot.
func begin(t *testing.T, in run, app string) begun {
	t.Helper()
	b := begun{make(chan struct{}), make(chan struct{})}
	has := make(chan struct{})
	go func() {
		defer close(b.ended)
		assert.NoError(t, in(context.Background(), app, func(context.Context, *admin.Admin) error { close(has); <-b.goOn; return nil }))
	}()
	<-has
	return b
}

func (b begun) end() { close(b.goOn); <-b.ended }

// isRefused reports whether no slot becomes free for a while.
func isRefused(t *testing.T, in run, app string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	has := false
	err := in(ctx, app, func(context.Context, *admin.Admin) error { has = true; return nil })
	return !has && errors.Is(err, context.DeadlineExceeded)
}

// In a process, at most two long tasks run at the same time: at most one for each app, and at most one erasing task for each
// database.
func TestSlots(t *testing.T) {
	here := newCommands(t)
	open := app.AccessOpen
	elsewhere := desk.Database(t, desk.Options{Real: true, Apps: map[string]app.Settings{"demo": {Access: &open}}})
	slots := admin.NewSlots(t.Context())
	a := here.Admin.WithSlots(slots)
	other := desk.Idle(t, elsewhere, desk.Options{Real: true}).Admin.WithSlots(slots)

	demo := begin(t, a.RunErasing, "demo")
	assert.True(t, isRefused(t, a.RunLong, "demo"), "one per app")
	assert.True(t, isRefused(t, a.RunErasing, "shop"), "one that erases")
	assert.False(t, isRefused(t, a.RunLong, "shop"))
	there := begin(t, other.RunErasing, "demo")
	assert.True(t, isRefused(t, a.RunLong, "shop"), "two at once")
	next := make(chan begun)
	go func() { next <- begin(t, a.RunErasing, "shop") }() // waits
	demo.end()
	(<-next).end()
	there.end()

	// Work in several steps takes only one slot, and uses connections for long work.
	shop := begin(t, a.RunLong, "shop")
	require.NoError(t, a.RunErasing(t.Context(), "demo", func(ctx context.Context, a *admin.Admin) error {
		_, err := a.EraseVisitor(ctx, "demo", "192.0.2.1")
		return err
	}))
	shop.end()
}

// When the process stops, long work is cancelled, and no new one starts.
func TestSlotsEnd(t *testing.T) {
	until, stop := context.WithCancel(t.Context())
	a := newCommands(t).Admin.WithSlots(admin.NewSlots(until))
	ended, has := make(chan error, 2), make(chan struct{})
	go func() {
		ended <- a.RunLong(context.Background(), "demo", func(ctx context.Context, _ *admin.Admin) error {
			close(has)
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	<-has
	go func() {
		ended <- a.RunLong(context.Background(), "demo", func(context.Context, *admin.Admin) error { return nil })
	}() // waits
	stop()
	for range cap(ended) {
		if err := <-ended; err != nil { // the second may get the slot of the first
			require.ErrorContains(t, err, "the service is shutting down")
		}
	}
}
