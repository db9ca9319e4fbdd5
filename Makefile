# Needs Go, gcc (for the race detector), make and git. The linter, the compose
# checker and govulncheck are built with Go when they are first needed.
SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

LINT_VERSION    := 2.15.0
COMPOSE_VERSION := 2.16.2
VULN_VERSION    := 1.9.0
LICENCES_VERSION := 1.6.0
NFPM_VERSION    := 2.47.0

# Tools are outside the checkout, one directory per version: new clones reuse
# them, and installed versions are not touched.
TOOLS   := $(shell go env GOPATH)/tools
LINT    := $(TOOLS)/golangci-lint-$(LINT_VERSION)/golangci-lint
COMPOSE := $(TOOLS)/compose-$(COMPOSE_VERSION)/cmd
VULN    := $(TOOLS)/govulncheck-$(VULN_VERSION)/govulncheck
LICENCES := $(TOOLS)/go-licenses-$(LICENCES_VERSION)/go-licenses

NFPM := $(TOOLS)/nfpm-$(NFPM_VERSION)/nfpm

# The vulnerability database: a URL, or file:// and a directory.
VULN_DB ?= https://vuln.go.dev

FUZZTIME ?= 30s

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F':.*## ' '{printf "  %-21s %s\n", $$1, $$2}'

.PHONY: check
check: fmt-check lint compose compile plain simulated smoke ## run the checks that take a few minutes: format, linters, laws, the fold, documents, the simulation, end-to-end smoke tests

.PHONY: check-full
check-full: race outside shared ## run the other checks: all other packages under the race detector, and all end-to-end tests; CI runs both

# Folders with npm dependencies, pinned by their lock files.
NPM_FOLDERS := clients/typescript examples/bridge-js examples/service-js e2e/peers/models e2e/peers-mcp

# Those of the HTTP API's clients and of pages.
WEB_FOLDERS := clients/typescript examples/chat-web examples/chat-web/six examples/chat-agui internal/inspector/npm

define npm-failed
echo "make $@: npm could not install what $$folder/package-lock.json names. If its registry ($$(npm config get registry)) can't be" >&2; \
echo "reached, try again later, or name one that can: npm_config_registry=https://HOST/ make $@" >&2; exit 1;
endef

.PHONY: check-peers
check-peers: peers-node promql licences ## run the checks that need registries: Refold with servers not written in Go, and recordings of real providers
	@for folder in $(NPM_FOLDERS); do \
		echo "npm ci --prefix $$folder"; \
		npm ci --prefix $$folder --no-audit --no-fund || { $(npm-failed) }; \
	done
	npm run --prefix clients/typescript build
	go test -tags peers -count=1 -timeout 15m -run '^TestPeers' ./e2e/... ./internal/llm/conformance
	go test -tags peers -count=1 -timeout 5m -v -run '^TestRecordings' ./internal/llm/conformance | grep -vE '^ *=== '

.PHONY: check-web
check-web: peers-node chromium ## run the checks of the HTTP clients: their own tests, the scenarios that all of them play on a server, and pages in Chromium; needs Python 3.11, and npm and its registry
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make check-web: needs Python 3.11 or later as python3: install it" >&2; exit 1; }
	@for folder in $(WEB_FOLDERS); do \
		echo "npm ci --prefix $$folder"; \
		npm ci --prefix $$folder --no-audit --no-fund || { $(npm-failed) }; \
	done
	npm run --prefix clients/typescript build
	node clients/typescript/generate.js --pages
	clients/typescript/node_modules/.bin/tsc -p internal/inspector/npm
	node examples/chat-web/build.js
	node examples/chat-web/build.js six
	npm run --prefix examples/chat-agui build
	go test -tags peers -count=1 -timeout 10m ./clients ./internal/browser ./examples/chat-web ./examples/chat-agui
	go test -tags peers -count=1 -timeout 20m -skip "^($(call WITHOUT_PEERS,./web ./internal/webhook))$$" ./web ./internal/webhook
	go test -count=1 -timeout 10m -run '^TestServersDeliverWebhooksTogether$$' ./e2e

# Installs Chromium, and the fonts of pages that bring none, from Debian's packages, as
# root.
.PHONY: chromium
chromium:
	@if ! command -v chromium >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update && apt-get install -y --no-install-recommends chromium fonts-dejavu-core; fi; \
	command -v chromium >/dev/null || { echo "make $(or $(filter check-web,$(MAKECMDGOALS)),chromium): needs Chromium as chromium, and the fonts DejaVu: install them (Debian: apt-get install chromium fonts-dejavu-core)" >&2; exit 1; }

# internal/inspector has a test that compares the hash of what this writes.
VENDOR := internal/inspector/npm
VENDORED := preact @preact/signals @preact/signals-core htm
.PHONY: vendor-js
vendor-js: peers-node ## make the inspector's one vendored module of what its package-lock.json names; needs npm and its registry
	@folder=$(VENDOR); npm ci --prefix $$folder --no-audit --no-fund || { $(npm-failed) }
	cd $(VENDOR) && npx --no-install esbuild entry.js --bundle --minify --format=esm --target=es2022 --legal-comments=none \
		--banner:js='/*! Written by make vendor-js from internal/inspector/npm. licenses.txt has the licences of preact, @preact/signals and htm. */' --outfile=../static/preact.js
	cd $(VENDOR) && for of in $(VENDORED); do echo "== $$of $$(node -p "require('./node_modules/$$of/package.json').version")"; echo; cat node_modules/$$of/LICENSE; echo; done > ../static/licenses.txt
	cd internal/inspector/static && sha256sum preact.js licenses.txt > ../npm/SHA256SUMS

.PHONY: promql
promql: promtool ## parse the queries of dashboards and alerts with Prometheus's own parser (a separate Go module), and check the rules with promtool
	cd internal/telemetry/dashboards/testdata/promql && GOFLAGS= GOWORK=off go test -count=1 -timeout 10m ./...
	if command -v promtool >/dev/null; then promtool check rules deploy/prometheus/alerts.yaml; fi

# Extracts promtool from Debian's package if possible. Installing the package would
# start a server.
.PHONY: promtool
promtool:
	@command -v promtool >/dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || { \
		at=$$(mktemp -d) && chmod 755 "$$at" && cd "$$at" && { apt-get download prometheus || { apt-get update && apt-get download prometheus; }; } && \
		dpkg -x prometheus_*.deb . && install usr/bin/promtool /usr/local/bin/promtool && rm -r "$$at"; } || \
		echo "make promql: promtool could not be extracted from Debian's package prometheus: install it to check the rules" >&2

# Installs Node.js from Debian's packages, as root.
.PHONY: peers-node
peers-node:
	@new='process.exit(process.versions.node.split(".").map(Number).reduce((v, n) => v * 1000 + n, 0) >= 20015000 ? 0 : 1)'; \
	has() { command -v npm >/dev/null && command -v node >/dev/null && node -e "$$new"; }; \
	if ! has && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then apt-get update && apt-get install -y --no-install-recommends nodejs npm; fi; \
	has || { echo "make $(or $(filter check-web,$(MAKECMDGOALS)),check-peers): needs Node.js 20.15 or later, and npm: install them (https://nodejs.org)" >&2; exit 1; }

.PHONY: test
test: ## run the tests, without the race detector
	go test -timeout 15m ./...

# The race detector makes tests ten times slower, and also the builds of the
# providers' libraries, which take longer than all of Refold. So make check does
# not use it where it can find nothing: packages that may not start a goroutine
# (PURE: a law of internal/archtest), the tests of such laws and of the wire
# (LAWS: they read files, fold and start the go command), packages that link the
# libraries (LIBRARIES), commands, examples and what is deployed (COMMANDS: each calls
# what the tests of other packages call), and the simulation, which runs one goroutine
# at a time.
# All others run under it, and so do the root, whose laws are among its tests, a part
# of the simulation and the tests that fold in several goroutines. make nightly-race
# runs everything under it.
PURE      := ./actors/... ./codec/... ./planner/... ./subjects/...
LAWS      := . ./docs ./internal/api ./internal/archtest ./proof/faults
LIBRARIES := ./cmd/bridge ./provider/... ./internal/llm/anthropic ./internal/llm/conformance ./internal/llm/gemini ./internal/llm/openai
COMMANDS  := ./cmd/refold/... ./cmd/settings ./deploy ./examples/... ./internal/roles/... ./proof/cli ./proof/kit
# The code of this package runs in children, thousands of which its tests start: the
# race detector makes them four times slower (570 s instead of 150), and observes
# little of them. make nightly-race uses it.
CHILDREN  := ./internal/tools/sandbox
# Programs of which a release promises the flags, and what --json prints. make check runs
# these tests alone.
PROMISING := ./cmd/refold/cli ./cmd/session-actor
# Tests of race-tested packages that also run without the detector, ten times larger.
LONG      := TestEdgeLongSession
# Tests of the other packages that share data between goroutines.
SHARED    := TestSendable|TestRejectionDetailIsDeterministic|TestConcurrent

# Many tests wait for real timeouts (failure detection takes seconds), so only a
# few run at once.
AT_ONCE := -p 2 -parallel 3

# make check vets every package, and runs the laws of the root. The targets of the other
# checks do neither again (-vet=off, -skip), and check-web skips the tests of its packages
# that race has run: those that are there without the tag peers.
WITHOUT_PEERS = $$(go test -vet=off -list '^Test' $(1) | grep '^Test' | paste -sd '|' -)

.PHONY: plain
plain: ## run the tests of packages that start no goroutine or link provider libraries, without the race detector, those of what a release promises, and a session of 100,000 events
	go test -timeout 12m $(PURE) $(LAWS) $(LIBRARIES)
	go test -timeout 5m -run Promised $(PROMISING)
	go test -timeout 5m -run '^($(LONG))$$' ./internal/engine

.PHONY: api
api: ## add what is new to the files of api, which say what a release promises: docs/stability.md
	go test -count=1 -run Promised ./internal/api ./cmd/bridge $(PROMISING) -args -rewrite

.PHONY: simulated
simulated: ## play the seeds of the simulation that belong to make check, and print their number
	go test -count=1 -timeout 15m -v -run '^TestSimulation$$' ./proof/sim | grep -v '^ *=== '

.PHONY: race
race: ## run the tests of all other packages except e2e under the race detector, and those of the sandbox, the commands and the examples without it
	CGO_ENABLED=1 go test -race -vet=off -timeout 12m $(AT_ONCE) -skip '^TestRepository$$' $$(go list ./... | grep -vxF "$$(go list $(PURE) $(filter-out .,$(LAWS)) $(LIBRARIES) $(COMMANDS) $(CHILDREN) ./e2e)")
	go test -vet=off -timeout 12m $(AT_ONCE) $(COMMANDS) $(CHILDREN)

# e2e starts dozens of processes at a time, each of which syncs its writes. It
# runs alone, so that no other package's tests wait for them. The race detector
# would only observe the test's process and take a minute more: make nightly-e2e
# uses it, except for clusters of three servers (APART), which run in rounds.
APART := ^TestCluster
# Tests that kill daemons hundreds of times. They run alone, four tests with six
# concurrent trials each: other tests would wait for minutes.
KILLS := ^(TestKilledAtEachMessage|TestKilledDensely|TestKilledOtherwise)

# Needs network namespaces: make check-networks.
NETWORKS := ^TestNetworks$$

# Builds the programs of an earlier commit, and takes minutes: make check-upgrade.
UPGRADES := ^TestUpgrade

# One run on one server with real processes, one of which is killed.
SMOKE := ^(TestDemo|TestDaemonsDoTheJob|TestKilled|TestPlainErrors)$$

.PHONY: smoke
smoke: ## run a few end-to-end tests
	go test -timeout 5m -parallel 3 -run '$(SMOKE)' ./e2e

.PHONY: outside
outside: ## run the end-to-end tests, with real processes and servers; those that kill daemons run separately
	go test -vet=off -timeout 12m -parallel 3 -skip '$(KILLS)|$(NETWORKS)|$(UPGRADES)' ./e2e
	go test -vet=off -timeout 12m -parallel 4 -run '$(KILLS)' ./e2e

.PHONY: shared
shared: ## run the tests that fold and encode in several goroutines under the race detector, with 1,000 of the 50,000 interleavings of make plain
	REFOLD_INTERLEAVINGS=1000 CGO_ENABLED=1 go test -race -vet=off -timeout 5m -run '^($(SHARED))$$' ./actors/session ./codec

.PHONY: sendable
sendable: ## try 50,000 interleavings of a session, or REFOLD_INTERLEAVINGS
	go test -count=1 -timeout 15m -run '^TestSendable$$' ./actors/session

# Each program and its folder in cmd. go install would name the programs after
# the folders, and another program called bridge is on many systems (iproute2's).
PROGRAMS   := refold=refold refold-full=refold-full refold-bridge=bridge refold-session-actor=session-actor
INSTALL_TO ?= $(or $(shell go env GOBIN),$(shell go env GOPATH)/bin)

.PHONY: build
build: ## build static binaries into bin/: refold, refold-full, refold-bridge, refold-session-actor
	@for program in $(PROGRAMS); do \
		echo "bin/$${program%=*}"; \
		CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "bin/$${program%=*}" "./cmd/$${program#*=}"; \
	done

# The program of the inspector's button Prove. Programs that are built after it have
# it inside. The same source and version of Go give the same bytes.
WASM := internal/inspector/wasm
.PHONY: wasm
wasm: ## build the program with which the inspector's pages fold sessions again, for the programs that are built next
	GOOS=js GOARCH=wasm GOFLAGS= CGO_ENABLED=0 go build -trimpath -buildvcs=false \
		-ldflags "-s -w -X main.commit=$$(git describe --always --dirty --abbrev=12 --exclude '*' 2>/dev/null || echo unknown)" -o $(WASM)/prove.wasm ./cmd/prove
	cp "$$(go env GOROOT)/lib/wasm/wasm_exec.js" "$$(go env GOROOT)/LICENSE" $(WASM)
	@sha256sum $(WASM)/prove.wasm
	gzip -9nf $(WASM)/prove.wasm

# A release: archives for three platforms and Debian packages, in dist/. A checkout without
# a tag is a version before all others.
VERSION ?= $(shell git describe --tags --match 'v[0-9]*' --dirty 2>/dev/null || echo v0.0.0-g$$(git describe --always --dirty --exclude '*'))
DIST    ?= dist

.PHONY: release
release: wasm $(NFPM) ## write archives, Debian packages and SHA256SUMS of VERSION into dist/, for PLATFORMS
	deploy/release.sh $(VERSION) $(DIST) $(NFPM) $(PROGRAMS)

# The other checkout is in another directory, and its compiler has no cache.
.PHONY: release-check
release-check: release ## build the release of the latest commit twice, and compare the bytes
	@at=$$(mktemp -d); trap 'chmod -R u+w "$$at"; rm -rf "$$at"' EXIT; \
	git clone -q . "$$at/refold" && GOCACHE="$$at/cache" $(MAKE) -C "$$at/refold" --no-print-directory release VERSION=$(VERSION) && \
	diff $(DIST)/SHA256SUMS "$$at/refold/dist/SHA256SUMS" && echo "both builds of $(VERSION) have the same bytes"

.PHONY: images
images: release ## write images for Linux into dist/images as an OCI layout, without an engine
	rm -rf $(DIST)/images
	cd deploy/places && GOFLAGS= GOWORK=off go run ./images $(VERSION:v%=%) $(abspath $(DIST))/images $(abspath $(wildcard $(DIST)/refold_$(VERSION:v%=%)_linux_*.tar.gz))

.PHONY: install
install: build ## install the binaries where go install would, or into INSTALL_TO
	install -d $(INSTALL_TO)
	install $(foreach program,$(PROGRAMS),bin/$(firstword $(subst =, ,$(program)))) $(INSTALL_TO)

.PHONY: compile
compile: ## compile every package
	go build ./...

.PHONY: fmt
fmt: ## format the Go files
	git ls-files -co --exclude-standard '*.go' ':!:*/testdata/*' | xargs gofmt -w

.PHONY: fmt-check
fmt-check: ## fail if a Go file is not formatted
	@files=$$(git ls-files -co --exclude-standard '*.go' ':!:*/testdata/*' | xargs gofmt -l); \
	if [ -n "$$files" ]; then echo "not formatted; run make fmt:"; echo "$$files"; exit 1; fi

.PHONY: vet
vet: ## run go vet, which is also part of make lint
	go vet ./...

.PHONY: lint
lint: $(LINT) ## run the linters of .golangci.yml
	$(LINT) config verify
	$(LINT) run ./...

.PHONY: compose
compose: ## check docker-compose.yml; needs no engine
	@if docker compose version >/dev/null 2>&1; then docker compose config --quiet; else $(MAKE) --no-print-directory compose-spec; fi

# Without docker compose, uses the library with which it reads its files.
.PHONY: compose-spec
compose-spec: $(COMPOSE)
	$(COMPOSE) docker-compose.yml >/dev/null

.PHONY: pin-images
pin-images: ## pin image versions to the digests of their registry, or of PIN_REGISTRY; needs curl
	deploy/pin-images.sh docker-compose.yml deploy/Dockerfile

# govulncheck exits with status 3 if it has found something.
.PHONY: vuln
vuln: $(VULN) ## look for known vulnerabilities in the called code, with govulncheck and the database VULN_DB
	@status=0; $(VULN) -db $(VULN_DB) ./... || status=$$?; \
	if [ $$status -ne 0 ] && [ $$status -ne 3 ]; then \
		echo "make vuln: govulncheck failed. If $(VULN_DB) can't be reached, try again later, or name a copy that can: make vuln VULN_DB=https://HOST" >&2; \
	fi; exit $$status

# Licences that a program under Apache-2.0 may link. Two modules need a person's
# reading, because go-licenses names one licence a file. The MCP SDK is under MIT
# and Apache-2.0, by contribution: both are allowed, so it is checked like all
# others. psx is under BSD-3-Clause or GPL-2.0, as the user chooses, and is named
# GPL-2.0: Refold uses it under BSD-3-Clause.
ALLOWED_LICENCES := Apache-2.0,BSD-2-Clause,BSD-3-Clause,ISC,MIT
EITHER_LICENCE   := kernel.org/pub/linux/libs/security/libcap/psx

.PHONY: licences
licences: $(LICENCES) ## list the modules that the programs link with their licences, and fail if one is not allowed
	@said=$$(mktemp); trap 'rm -f "$$said"' EXIT; \
	$(LICENCES) report ./cmd/... 2>"$$said" | cut -d, -f1,3 || { cat "$$said" >&2; exit 1; }; \
	$(LICENCES) check --allowed_licenses=$(ALLOWED_LICENCES) --ignore $(EITHER_LICENCE) ./cmd/... 2>"$$said" || { \
		grep '^Not allowed' "$$said" >&2 || cat "$$said" >&2; \
		echo "make licences: read the licence: if it goes with Apache-2.0, add it to ALLOWED_LICENCES in the Makefile; else remove the module" >&2; exit 1; }

.PHONY: bench
bench: ## run the benchmarks of the pure packages
	go test -run '^$$' -bench . -benchmem ./actors/session ./codec ./planner

.PHONY: fuzz
fuzz: ## fuzz every fuzz test in turn, for FUZZTIME each
	@for pkg in $$(go list ./...); do \
		for f in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$f"; \
			go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

.PHONY: simulate
simulate: ## play 10,000 seeds of the simulation, or REFOLD_SIM_SEEDS from REFOLD_SIM_FROM on, then 100, or REFOLD_SIM_AGAIN, twice
	REFOLD_SIM_SEEDS=$${REFOLD_SIM_SEEDS:-10000} go test -count=1 -timeout 20m -run '^TestSimulation$$' -v ./proof/sim
	REFOLD_SIM_AGAIN=$${REFOLD_SIM_AGAIN:-100} CGO_ENABLED=1 go test -race -count=1 -timeout 20m -run '^TestSimulationAgain$$' ./proof/sim

.PHONY: faults
faults: ## build in each fault of proof/faults, and check that the simulation or a test finds it
	go run ./proof/faults

# The parts of make nightly, in this order. Each can be run alone, to continue an
# interrupted night.
NIGHTLY := nightly-race nightly-fuzz simulate faults nightly-interleavings nightly-long nightly-e2e nightly-networks nightly-upgrade nightly-demo nightly-places nightly-recordings nightly-otherwise

# nightly-recordings kills the sender at every point of all recordings, many
# points per trial, for at most CHAOS_ALL_FOR per file. nightly-otherwise tries
# all ways, one point per trial, which takes many nights: night NIGHT tries every
# NIGHTSth kill, starting with a different one each night, for at most CHAOS_FOR.
# Both print the share tried. NIGHTS has no divisor in common with the number of
# ways, so each night tries all ways. `make nightly-otherwise NIGHT=n` repeats a
# night; CHAOS_SKIP continues either target where its time ended.
NIGHT      ?= $(shell expr $$(date +%s) / 86400)
NIGHTS     ?= 13
CHAOS_FOR  ?= 2h
CHAOS_ALL_FOR ?= 8h
CHAOS_SKIP ?= 0
CHAOS_AT_ONCE ?= 24

# Patterns of recorded tools that may run twice.
RETRY_SAFE := get_*,search_*,list_*,calculate,think

.PHONY: nightly
nightly: recordings-named $(NIGHTLY) ## fuzz and simulate for hours, then kill at all messages of the demo and of REFOLD_RECORDINGS

.PHONY: recordings-named
recordings-named:
	@if [ -z "$${REFOLD_RECORDINGS:-}" ]; then echo "set REFOLD_RECORDINGS to the directory that holds airline.jsonl"; exit 1; fi

.PHONY: nightly-race
nightly-race: ## run the tests of all packages except e2e under the race detector; nightly-e2e runs those
	CGO_ENABLED=1 go test -race -count=1 -timeout 60m $$(go list ./... | grep -vx "$$(go list ./e2e)")

.PHONY: nightly-fuzz
nightly-fuzz: ## fuzz every fuzz test for ten minutes
	$(MAKE) fuzz FUZZTIME=10m

.PHONY: nightly-interleavings
nightly-interleavings: ## try a million interleavings of a session
	REFOLD_INTERLEAVINGS=1000000 go test -count=1 -timeout 120m -run '^TestSendable$$' ./actors/session

.PHONY: nightly-long
nightly-long: ## fold sessions of two million events, one of them with a million runs; sweep blobs beside 10,000 uses of them
	REFOLD_LONG_EVENTS=2000000 go test -count=1 -timeout 60m -v -run '^TestLongLife$$' ./actors/session | grep -v '^ *=== '
	REFOLD_SWEEP_DRAWS=10000 go test -count=1 -timeout 20m -run '^TestSweepBesideWriters$$' ./internal/journal

.PHONY: nightly-e2e
nightly-e2e: ## run the end-to-end tests with all recordings, then clusters of three servers in REFOLD_CLUSTER_ROUNDS rounds of failures
	CGO_ENABLED=1 go test -race -count=1 -timeout 60m -skip '$(APART)|$(NETWORKS)|$(UPGRADES)' ./e2e
	REFOLD_CLUSTER_ROUNDS=$${REFOLD_CLUSTER_ROUNDS:-5} go test -count=1 -timeout 60m -run '$(APART)' -v ./e2e

.PHONY: nightly-networks
nightly-networks: ## let the network between servers, daemons and clients fail in all ways, for up to two minutes each
	REFOLD_CLUSTER_ROUNDS=2 go test -count=1 -timeout 150m -v -run '$(NETWORKS)' ./e2e

.PHONY: nightly-upgrade
nightly-upgrade: ## upgrade all processes under load in every order, and back; servers go by lame duck mode
	REFOLD_CLUSTER_ROUNDS=2 go test -count=1 -timeout 60m -v -run '$(UPGRADES)' ./e2e

.PHONY: nightly-demo
nightly-demo: ## kill at every message of the demo, in every way, and twice at some
	go run ./proof/kit chaos --quiet --parallel $(CHAOS_AT_ONCE) --kill actor,bridge,both,server --signal kill,term
	go run ./proof/kit chaos --quiet --parallel $(CHAOS_AT_ONCE) --kill actor,bridge,server --points 60 --twice 4 --seed $(NIGHT) --missed-max 20

.PHONY: nightly-places
nightly-places: release-check check-manifests check-places ## build the release twice, and run what it has without engines; needs root on Linux

.PHONY: nightly-recordings
nightly-recordings: recordings-named ## kill the sender at every message of REFOLD_RECORDINGS, for at most CHAOS_ALL_FOR per file; CHAOS_SKIP continues
	go build -o bin/ ./proof/kit
	@failed=0; for file in "$${REFOLD_RECORDINGS}"/*.jsonl; do \
		echo "$$file: every message, for at most $(CHAOS_ALL_FOR)"; \
		bin/kit chaos --model "recorded:$$file" --retry-safe '$(RETRY_SAFE)' --dense --quiet --parallel $(CHAOS_AT_ONCE) \
			--for $(CHAOS_ALL_FOR) --skip $(CHAOS_SKIP) || failed=1; \
	done; exit $$failed

.PHONY: nightly-otherwise
nightly-otherwise: recordings-named ## kill in all ways at tonight's part of the messages of REFOLD_RECORDINGS: NIGHT, NIGHTS, CHAOS_FOR, CHAOS_SKIP
	go build -o bin/ ./proof/kit
	@part=$$(( $(NIGHT) % $(NIGHTS) + 1 )); failed=0; \
	for file in "$${REFOLD_RECORDINGS}"/*.jsonl; do \
		echo "$$file: night $(NIGHT), part $$part of $(NIGHTS), for at most $(CHAOS_FOR)"; \
		bin/kit chaos --model "recorded:$$file" --retry-safe '$(RETRY_SAFE)' --dense --quiet --parallel $(CHAOS_AT_ONCE) \
			--kill actor,bridge,both,server --signal kill,term --part $$part/$(NIGHTS) --for $(CHAOS_FOR) --skip $(CHAOS_SKIP) || [ $$? -eq 3 ] || failed=1; \
	done; exit $$failed

.PHONY: check-root
check-root: ## run the check that needs root on Linux: fill a file system that is mounted for it
	REFOLD_E2E_MOUNT=1 go test -count=1 -timeout 15m -v -run '^TestDiskSpace$$' ./e2e

.PHONY: check-manifests
check-manifests: ## check deploy/kubernetes with kustomize and the types of the API (a separate Go module)
	cd deploy/places && GOFLAGS= GOWORK=off go test -count=1 -timeout 10m ./kubernetes

.PHONY: check-places
check-places: $(NFPM) ## run the Debian package, the images and docker-compose.yml without engines, in namespaces; needs root on Linux
	cd deploy/places && GOFLAGS= GOWORK=off go test -count=1 -timeout 30m -v . | grep -vE '^ *=== '

.PHONY: check-networks
check-networks: ## run the check that needs network namespaces on Linux: let the network fail in three ways; REFOLD_CLUSTER_SEED repeats it
	go test -count=1 -timeout 10m -v -run '$(NETWORKS)' ./e2e

.PHONY: check-upgrade
check-upgrade: ## upgrade all processes under load in one order, and back, from the commit in e2e/testdata/upgrade-from; needs git and that commit; REFOLD_CLUSTER_SEED repeats it
	go test -count=1 -timeout 15m -v -run '$(UPGRADES)' ./e2e | grep -vE '^ *=== '

.PHONY: clean
clean: ## remove the binaries of build, and the releases
	rm -rf bin dist

$(LINT):
	GOBIN=$(@D) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v$(LINT_VERSION)

$(VULN):
	GOBIN=$(@D) go install golang.org/x/vuln/cmd/govulncheck@v$(VULN_VERSION)

$(LICENCES):
	GOBIN=$(@D) go install github.com/google/go-licenses@v$(LICENCES_VERSION)

$(NFPM):
	GOBIN=$(@D) go install github.com/goreleaser/nfpm/v2/cmd/nfpm@v$(NFPM_VERSION)

$(COMPOSE):
	GOBIN=$(@D) go install github.com/compose-spec/compose-go/v2/cmd@v$(COMPOSE_VERSION)
