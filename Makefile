# All tasks of developers and CI are targets. `make` lists them.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

VERSION := $(shell scripts/version)

# `go tool` builds these tools from separate module files, to keep their dependencies out of go.mod. There are two files because sqlc
# and the linter need different versions of the same modules, and a new linter must not change the generator.
# Without cgo sqlc runs its parser as WebAssembly: it builds faster and needs no C compiler.
SQLC := CGO_ENABLED=0 go tool -modfile=tools.mod sqlc
LINT := go tool -modfile=lint.mod golangci-lint
# Reproducible: the same commit and the same Go version produce the same bytes on any machine.
BUILD := CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)'
SBOM := $$(CGO_ENABLED=0 GOFLAGS=-trimpath go tool -modfile=tools.mod -n cyclonedx-gomod) bin -json -std -noserial -notimestamp -version '$(VERSION)'
# cyclonedx-gomod does not know the license of the program itself.
LICENSED := sed -i '0,/^      "name": "footfall",/s//&\n      "licenses": [{"license": {"id": "MIT"}}],/'

, := ,
FUZZTIME ?= 200000x
CRASH_VISITS ?= 100000
CRASH_KILLS ?= 20
FAILOVERS ?= 5
STORM_SECONDS ?= 120
TRIAL_VISITS ?= 400000

.PHONY: help
help: ## list the targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: run
run: build ## serve on 127.0.0.1:8080 with an embedded PostgreSQL, which is installed if it is missing
	@scripts/install-deps postgres geoip
	@exec bin/footfall serve

.PHONY: build
build: ## build bin/footfall
	$(BUILD) -o bin/footfall ./cmd/footfall

.PHONY: release
release: build ## make bin/release: programs and packages for linux on amd64 and arm64, their SBOMs, and SHA256SUMS
	rm -rf bin/release
	for arch in amd64 arm64; do \
	  program=bin/release/footfall-$(VERSION)-linux-$$arch; \
	  GOOS=linux GOARCH=$$arch $(BUILD) -buildvcs=true -o $$program ./cmd/footfall; \
	  GOOS=linux GOARCH=$$arch $(SBOM) -output $$program.cdx.json $$program; $(LICENSED) $$program.cdx.json; \
	  scripts/package '$(VERSION)' $$arch $$program $$program; \
	done
	cd bin/release && sha256sum * >SHA256SUMS

IMAGE ?= footfall:$(subst +,-,$(VERSION))
COMMIT ?= $(shell git rev-parse HEAD)

# A Docker engine stores images only for its own architecture. Images for several architectures are written to an archive, for
# registries (skopeo copy oci-archive:… docker://…).
.PHONY: image
image: ## build the image footfall:VERSION (with - for +); with PLATFORMS=linux/amd64,linux/arm64 an archive in bin, by docker buildx; SOURCE=URL sets the source label
	docker $(if $(PLATFORMS),buildx build --platform $(PLATFORMS) --output type=oci$(,)dest=bin/footfall-$(VERSION).oci.tar,build) \
	  --build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT) \
	  --label org.opencontainers.image.created=$$(git log -1 --format=%cI) \
	  $(if $(SOURCE),--label org.opencontainers.image.source=$(SOURCE)) --tag $(IMAGE) .

.PHONY: build-bench
build-bench: build ## build bin/bench, the benchmarks
	go build -trimpath -o bin/bench ./cmd/bench

# -short skips repetitive cases (testing.Short) that are not the only check of a promise. make race includes them. make vet does the vetting.
WITH_SERVER := go run ./db/dbtest/withserver
# One package for each processor: with more, tests wait so long for each other that they exceed their time limits.
TEST := go test -short -vet=off -timeout 30m -p $$(getconf _NPROCESSORS_ONLN)

# The slowest packages start first, so that none of them runs last on its own.
LONGEST := ./counter ./handler ./cmd/footfall ./db ./intake/... ./handler/attacks ./verify

.PHONY: test
test: deps ## run all tests, in the short form, on the installed PostgreSQL
	$(WITH_SERVER) $(TEST) $(LONGEST) ./...

RACE ?= ./...

.PHONY: race
race: deps race-deps ## run all tests at full length with the race detector; LENGTH=-short as in CI
	$(WITH_SERVER) go test -race -vet=off -timeout 60m $(LENGTH) $(RACE)

.PHONY: test-all
test-all: test test-pg17 test-pg18 ## make test, then the tests with their own SQL on PostgreSQL 17 and 18, fetched from npm

# On another server only packages with their own SQL are tested. In CI only those with the most SQL, and on 17, which is between 15
# and 18, without counter.
SERVER_PACKAGES ?= ./admin ./counter ./db/... ./record ./record/feed ./report/... ./retention ./verify
TEST_SERVER := $(TEST) $(SERVER_PACKAGES)

# On one other major version: make test-pg17.
test-pg%: deps
	bin=$$(scripts/fetch-postgres $*) && FOOTFALL_TEST_POSTGRES_BIN=$$bin $(WITH_SERVER) $(TEST_SERVER)

# Ryuk would remove the containers of a killed test, but is one more image to pull. The tests remove their own containers.
# Inside a container, testcontainers would look for published ports at the gateway, so it gets the right host.
.PHONY: test-container
test-container: deps ## migrate PostgreSQL 17 in a container; needs a Docker engine
	TESTCONTAINERS_RYUK_DISABLED=true $(if $(wildcard /.dockerenv),TESTCONTAINERS_HOST_OVERRIDE=127.0.0.1) \
	$(WITH_SERVER) -container $(TEST) -run Migrat ./db

.PHONY: test-cells
test-cells: ## test cells on clusters of one and of three nodes; FOOTFALL_TEST_CITUS is the folder with the programs of a PostgreSQL with Citus
	@[ -n "$$FOOTFALL_TEST_CITUS" ] || { echo "FOOTFALL_TEST_CITUS must name the folder of the programs of a PostgreSQL that has Citus" >&2; exit 2; }
	$(WITH_SERVER) go test -short -vet=off -timeout 30m -count=1 -run '^TestCells' ./db ./cmd/footfall

# Limits the inputs, not the time: when time runs out, Go 1.26 may report its own deadline as a failure (go.dev/issue/75804).
# Findings are stored where go test -fuzz stores them. Each package is built once for all its tests.
.PHONY: fuzz
fuzz: ## run every fuzz test on FUZZTIME (200000x) inputs
	@work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; found=; \
	for dir in $$(grep -rl '^func Fuzz' --include='*_test.go' . | xargs -r dirname | sort -u); do \
	  go test -c -vet=off -ldflags="-s -w" -fuzz=Fuzz -o "$$work/test" $$dir; \
	  for name in $$(sed -n 's/^func \(Fuzz[[:alnum:]_]*\)(.*/\1/p' $$dir/*_test.go); do \
	    found=yes; echo "$$name in $$dir"; \
	    (cd $$dir && "$$work/test" -test.run='^$$' -test.fuzz="^$$name\$$" -test.fuzztime=$(FUZZTIME) \
	      -test.fuzzcachedir="$$(go env GOCACHE)/fuzz/$$(go list)"); \
	  done; \
	done; [ "$$found" ] || { echo "no fuzz test found" >&2; exit 1; }

.PHONY: crash
crash: deps ## kill the service, an import, consumers and PostgreSQL under load, CRASH_KILLS (20) times in CRASH_VISITS (100000) visits
	FOOTFALL_CRASH_VISITS=$(CRASH_VISITS) FOOTFALL_CRASH_KILLS=$(CRASH_KILLS) \
	go test -count=1 -timeout=180m -run 'TestCrash|TestImportIsKilled|TestConsumerIsKilled' -v ./cmd/footfall

.PHONY: failover
failover: deps ## kill the primary under load, FAILOVERS (5) times each: by hand, under pg_auto_failover, and under Patroni; on Debian, as root, installs them
	DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql-15-auto-failover pg-auto-failover-cli patroni etcd-server python3-etcd
	FOOTFALL_FAILOVERS=$(FAILOVERS) go test -count=1 -timeout=60m -run TestFailover -v ./cmd/footfall
	for manager in pg_auto_failover patroni; do \
	  FOOTFALL_MANAGER=$$manager FOOTFALL_FAILOVERS=$(FAILOVERS) go test -count=1 -timeout=60m -run TestManagedFailover -v ./cmd/footfall || exit; \
	done

.PHONY: upgrade-trial
upgrade-trial: deps ## replace two instances of the last release by this version under load, with TRIAL_VISITS (400000) and unfinished tasks
	FOOTFALL_TRIAL_VISITS=$(TRIAL_VISITS) go test -count=1 -timeout=60m -run TestUpgradeOfMuch -v ./cmd/footfall

.PHONY: storm
storm: deps ## combine random operations on one database for STORM_SECONDS (120); STORM_SEED repeats a run's choices
	STORM_SECONDS=$(STORM_SECONDS) go test -count=1 -timeout=60m -run TestStorm -v ./counter/storm

.PHONY: attacks
attacks: deps ## run the flood attacks at full length: a million invented paths, a million addresses
	FOOTFALL_ATTACK_PATHS=1000000 FOOTFALL_ATTACK_ADDRESSES=1000000 go test -count=1 -timeout=60m -run 'TestAttacks/floods' -v ./handler/attacks

.PHONY: bench-reports
bench-reports: build-bench ## measure reports while counting, on 10 million visits, which it counts first; 7 GB in /var/tmp, half an hour or more
	bin/bench generate --data /var/tmp/footfall-bench
	bin/bench reports --data /var/tmp/footfall-bench
	rm -r /var/tmp/footfall-bench

.PHONY: compose-test
compose-test: ## start docker-compose.yml, count, and remove it; needs a Docker engine
	scripts/compose-test

.PHONY: package-test
package-test: ## install the .deb, then the .rpm, in a minimal Debian, count, upgrade, purge; on Debian, as root
	scripts/package-test

# A separate module: the service does not need the libraries that read manifests.
.PHONY: test-kubernetes
test-kubernetes: ## validate the manifests of docs/kubernetes with Kubernetes' own types
	cd docs/kubernetes && go test -count=1 .

.PHONY: image-test
image-test: sbom ## build the image and check what the Dockerfile promises; needs a Docker engine
	scripts/image-test

.PHONY: sbom
sbom: build ## write the SBOM of bin/footfall to bin/footfall.cdx.json (CycloneDX)
	$(SBOM) -output bin/footfall.cdx.json bin/footfall
	$(LICENSED) bin/footfall.cdx.json

.PHONY: bench
bench: build-bench ## run every contender on every workload, in one process
	@scripts/install-deps postgres
	bin/bench

.PHONY: bench-http
bench-http: build-bench ## run the contenders with a service over HTTP
	@scripts/install-deps postgres
	bin/bench --http

.PHONY: bench-quick
bench-quick: build-bench ## run all benchmarks briefly, to check that they work
	@scripts/install-deps postgres
	bin/bench --rounds 1 --visits 10000 --workloads burst --contenders naive+filter,baseline,batched+filter,batched+memory,batched+both
	bin/bench --http --rounds 1 --duration 1s --workloads returning --old bin/footfall --contenders batched+both,old
	rm -rf /tmp/footfall-bench
	bin/bench generate --data /tmp/footfall-bench --visits 50000 --visitors 5000 --pages 500
	bin/bench reports --runs 3 --data /tmp/footfall-bench
	rm -rf /tmp/footfall-bench
	bin/bench structures --keys 100000

.PHONY: screenshots
screenshots: build-bench ## take the screenshots of the dashboard in docs/images, with generated visits
	@scripts/install-deps postgres chromium
	scripts/screenshots

.PHONY: generate
generate: ## generate the Go code for queries/ and migrations/
	{ grep -rl --include='*.go' '^// Code generated by sqlc' . || true; } | xargs -r rm
	$(SQLC) generate

.PHONY: check-generated
check-generated: ## fail if the generated code is out of date
	scripts/check-generated

.PHONY: fmt
fmt: ## format the Go code
	gofmt -w .

.PHONY: fmt-check
fmt-check: ## fail if gofmt would change a file
	@files=$$(gofmt -l .); [ -z "$$files" ] || { printf 'not formatted (make fmt):\n%s\n' "$$files" >&2; exit 1; }

.PHONY: vet
vet: ## run go vet
	go vet ./...

.PHONY: lint
lint: ## run golangci-lint, which also checks the imports between packages
	$(LINT) run ./...

.PHONY: vuln
vuln: ## check the dependencies for known vulnerabilities; needs vuln.go.dev
	go tool -modfile=lint.mod govulncheck ./...

.PHONY: verify
verify: fmt-check vet lint check-generated test ## run all checks required before a commit

.PHONY: clean
clean: ## remove build results; data directories stay
	rm -rf bin

# Dependencies of the tests other than Go: PostgreSQL and a browser. At full length also a C compiler for the race detector,
# PgBouncer, librsvg, Redis, nginx, promtool and, from npm, scripts for pages: axe-core, clients of busuanzi, themes.
.PHONY: deps race-deps
deps:
	@scripts/install-deps postgres chromium
race-deps:
	@scripts/install-deps gcc pgbouncer librsvg redis nginx promtool
	@scripts/fetch-npm >/dev/null
	@scripts/fetch-themes >/dev/null
