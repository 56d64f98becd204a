package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// version is the program's version. The linker sets it.
var version = "dev"

type versionCmd struct{}

func (*versionCmd) check(globals) faults { return nil }

func (*versionCmd) run(_ context.Context, p *program) error {
	fmt.Fprintln(p.stdout, versionText())
	return nil
}

func versionText() string {
	return fmt.Sprintf("footfall %s (commit %s, %s)", version, commit(), runtime.Version())
}

// builtFrom is the commit from which the program was built. The linker sets it if the build has no folder .git, as in the
// Dockerfile.
var builtFrom string

func commit() string {
	if built, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range built.Settings {
			if setting.Key == "vcs.revision" {
				return setting.Value
			}
		}
	}
	return cmp.Or(builtFrom, "unknown")
}

// newRegistry returns a Prometheus registry with metrics about the process, the Go runtime and the program's version.
func newRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	promauto.With(registry).NewGauge(prometheus.GaugeOpts{
		Name: "footfall_build_info", Help: "Always 1. The labels contain the version of the running program.",
		ConstLabels: prometheus.Labels{"version": version, "commit": commit(), "goversion": runtime.Version()},
	}).Set(1)
	return registry
}
