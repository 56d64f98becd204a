package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/postgres"
	"github.com/testcontainers/testcontainers-go/wait"

	"footfall/db/dbtest"
)

const image = "postgres:17.10-alpine"

func startContainer(ctx context.Context) (url string, stop func() error, err error) {
	container, err := postgres.Run(ctx, image,
		postgres.WithDatabase("footfall"), postgres.WithUsername("footfall"), postgres.WithPassword("footfall"),
		testcontainers.WithCmdArgs("-c", "max_connections="+dbtest.MaxConnections, "-c", "full_page_writes=off"),
		// The image starts a first server to make the database, and says ready for that one, too.
		testcontainers.WithWaitStrategyAndDeadline(patience, wait.ForAll(
			wait.ForLog("database system is ready to accept connections").WithOccurrence(2),
			wait.ForListeningPort("5432/tcp"),
		)),
	)
	stop = func() error { return testcontainers.TerminateContainer(container) }
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("container of %s: %w", image, err), stop())
	}
	url, err = container.ConnectionString(ctx, "sslmode=disable")
	if err != nil {
		return "", nil, errors.Join(err, stop())
	}
	return url, stop, nil
}
