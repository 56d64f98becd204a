package main

import (
	"context"

	"footfall/db/embedded"
	"footfall/pause"
)

// keeper restarts the embedded PostgreSQL if it stops unexpectedly.
type keeper struct {
	url    string
	config embedded.Config
	cancel context.CancelFunc // cancels the context of keep
	ended  chan struct{}      // closed when keep returns
	err    error              // the error of stopping the server; valid after ended is closed
}

// startKeeper starts the server, and returns when the server accepts connections. The caller must call stop.
func startKeeper(ctx context.Context, config embedded.Config) (*keeper, error) {
	server, err := embedded.Start(ctx, config)
	if err != nil {
		return nil, err
	}
	// When ctx ends, the database must continue to run until its users have stopped. So the end of ctx does not cancel the
	// context running. Only the method stop cancels it.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	k := &keeper{url: server.URL(), config: config, cancel: cancel, ended: make(chan struct{})}
	go k.keep(running, server)
	return k, nil
}

func (k *keeper) stop() error {
	k.cancel()
	<-k.ended
	return k.err
}

func (k *keeper) keep(running context.Context, server *embedded.Server) {
	defer close(k.ended)
	for server != nil {
		select {
		case <-running.Done():
			k.err = k.end(server)
			return
		case <-server.Done():
			k.config.Log.Error("the database server has stopped; starting it again", "error", server.Err())
			_ = k.end(server) // releases the directory; the error of the server is already logged
			server = k.restart(running)
		}
	}
}

// restart starts the server again. If this fails, it retries until the server has started. If the context running ends
// first, restart returns nil.
func (k *keeper) restart(running context.Context) *embedded.Server {
	for {
		server, err := embedded.Start(running, k.config)
		if err == nil {
			k.config.Log.Info("the database server is running again")
			return server
		}
		if running.Err() != nil {
			return nil
		}
		k.config.Log.Error("the database server could not be started; trying again", "error", err)
		_ = pause.For(running, tryEvery) // if the context running has ended, the next start fails
	}
}

func (k *keeper) end(server *embedded.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	return server.Stop(ctx)
}
