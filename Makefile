# What a developer runs. `make help` lists the targets.
# demo and test need Go and make only; lint fetches its tools at the versions of tools.mod the first time.

.DEFAULT_GOAL := help
.NOTPARALLEL: # the parts of check are heavy, and their output is read in order

# The race detector needs cgo, and Go switches cgo off where there is no C compiler. Tests run without the detector then,
# and say so; CI sets RACE=-race, which fails instead.
RACE ?= $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

# How long `make fuzz` stays with one target.
FUZZTIME ?= 10s

GO_TOOL := go tool -modfile=tools.mod

.PHONY: help
help: ## list the targets
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

.PHONY: demo
demo: ## an agent that asks before it releases a service, in this terminal
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && trap : INT && \
	go build -C examples/release-assistant -o "$$dir/release-assistant" . && \
	{ "$$dir/release-assistant"; code=$$?; [ $$code -eq 130 ] || exit $$code; } # 130: stopped by Ctrl-C, which the demo invites to

.PHONY: test
test: ## all tests, with the race detector, in random order
	@$(if $(RACE),,echo "note: no C compiler, so the race detector is off")
	go test $(RACE) -shuffle=on ./...

.PHONY: lint
lint: ## formatting, go vet, staticcheck
	@unformatted=$$(gofmt -l .); \
	if [ -n "$$unformatted" ]; then echo "not formatted; run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	$(GO_TOOL) staticcheck ./...

.PHONY: modules
modules: ## go.mod and go.sum are complete, and the modules are what go.sum says
	go mod tidy -diff
	go mod verify

# Modules of their own, which ./... does not see. Each is named here: there may be other modules in the tree.
MODULES := examples/acp-agent examples/otel examples/release-assistant bridge/mcp/testdata/peers/mcp-go

.PHONY: test-examples
test-examples: ## vet, lint and test the examples, and a client of the MCP tests, that are modules of their own
	@staticcheck=$$($(GO_TOOL) -n staticcheck) && for dir in $(MODULES); do \
		echo "in $$dir: go mod tidy -diff, go vet, staticcheck, go test"; \
		( cd $$dir && { go mod tidy -diff || { echo "run go mod tidy in $$dir"; exit 1; }; } && \
		go vet ./... && "$$staticcheck" ./... && go test $(RACE) -shuffle=on ./... ) || exit 1; \
	done

.PHONY: check
check: lint modules test-examples schedules test ## everything that CI checks

# Where a client is not installed its tests are skipped, and say so.
.PHONY: mcp-peers
mcp-peers: ## other clients of MCP against the bridge; npm and go install them
	go -C bridge/mcp/testdata/peers/mcp-go mod download
	cd bridge/mcp/testdata/peers && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	MCP_PEERS=require go test -count=1 -run 'Clients|OfOthers|Conformance' ./bridge/mcp ./examples/mcp-conformance

.PHONY: acp-peers
acp-peers: ## other clients of ACP against the bridge; npm installs them
	cd bridge/acp/testdata/peers && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	ACP_PEERS=require go test -count=1 -run Clients ./bridge/acp

# A server is nobody's that runs as root, and where a clone is it may not be allowed to look: so the packages are copied. Their
# symbolic links are made by a script that npm is not left to run.
POSTGRES_PEERS := internal/pgtest/testdata/peers

.PHONY: postgres-peers
postgres-peers: ## the oldest and the newest PostgreSQL under the store and the gate; npm installs them
	cd $(POSTGRES_PEERS) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && chmod 755 "$$dir" && cp -R $(POSTGRES_PEERS)/node_modules/postgres-* "$$dir" && \
	for peer in "$$dir"/postgres-*; do \
		( cd "$$peer" && node scripts/hydrate-symlinks.js ) && "$$peer/native/bin/postgres" --version || exit; \
		export PARLEY_TEST_POSTGRES= PARLEY_REQUIRE_POSTGRES=1 PARLEY_POSTGRES_BIN="$$peer/native/bin"; \
		go test -count=1 -skip 'ThroughPooler|FullDisk|Cut|Vanished' ./internal/pgtest ./checkpoint/pgstore && \
		go test -count=1 -run 'ModelOnPostgres|LapsedOnPostgres' ./gate || exit; \
	done

# How many interactions `make replicas` has, for each of its tests. They are part of `make test` as well, with 150.
INTERACTIONS ?= 2000

.PHONY: replicas
replicas: ## three processes on one database that are killed at random, and one on a file; needs PostgreSQL
	PARLEY_REQUIRE_POSTGRES=1 go test -v -count=1 -timeout 1h -run 'Replicas|OneProcess' ./examples/mcp-server \
		-interactions $(INTERACTIONS)

# How often `make power` cuts the power in each of its tests. They are part of `make test` as well, with a few cuts each,
# and are skipped there where this takes what the machine has not: Linux, root, loop devices, mkfs.ext4 (and mkfs.xfs).
CUTS ?= 100

.PHONY: power
power: ## cut the power under the file store and the gate, CUTS (100) times each; needs root
	POWERCUT_REQUIRE=ext4 POWERCUT_CUTS=$(CUTS) go test -v -count=1 -timeout 2h -run 'PowerCut|FailingDisk|FullDisk' \
		./checkpoint/boltstore ./gate

# How long `make bench` stays with one benchmark, and how often it runs each; feed the output to benchstat. The benchmarks
# write to the directory for temporary files: set TMPDIR where that is not on a disk.
BENCHTIME ?= 300ms
BENCHCOUNT ?= 3

# Which benchmarks `make bench-ratios` runs, and how many times one after the other.
BENCH ?= .
ROUNDS ?= 5
LARGEROUNDS ?= 1

.PHONY: bench
bench: ## whole interactions beside their floors, in one run
	go test -run '^$$' -bench . -benchtime $(BENCHTIME) -count $(BENCHCOUNT) ./bench

.PHONY: bench-ratios
bench-ratios: ## the same in ROUNDS (5) rounds, as ratios with their aims
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && go test -c -o "$$dir/bench.test" ./bench && cd bench && \
	for round in $$(seq $(ROUNDS)); do \
		"$$dir/bench.test" -test.run '^$$' -test.bench '$(BENCH)' -test.benchtime $(BENCHTIME) || exit; \
	done > "$$dir/out" && go run ./ratios < "$$dir/out"

.PHONY: bench-stores
bench-stores: ## every store with 1, 8 and 64 callers, and bare statements on the same PostgreSQL, in one run
	PARLEY_REQUIRE_POSTGRES=1 go test -run '^$$' -bench Stores -benchtime $(BENCHTIME) -count $(BENCHCOUNT) ./bench

.PHONY: bench-large
bench-large: ## growth to a million open questions, once (LARGEROUNDS); takes a good while and 10 GiB
	@out=$$(mktemp) && trap 'rm -f "$$out"' EXIT && for round in $$(seq $(LARGEROUNDS)); do \
		go test -run '^$$' -bench Growth/ -benchtime 300x -timeout 4h ./bench -large || exit; \
	done > "$$out" && go run ./bench/ratios < "$$out"

.PHONY: bench-large-postgres
bench-large-postgres: ## growth to a million open questions on PostgreSQL, once (LARGEROUNDS)
	@out=$$(mktemp) && trap 'rm -f "$$out"' EXIT && for round in $$(seq $(LARGEROUNDS)); do \
		PARLEY_REQUIRE_POSTGRES=1 go test -run '^$$' -bench PostgresGrowth -benchtime 300x -timeout 4h ./bench -large || exit; \
	done > "$$out" && go run ./bench/ratios < "$$out"

# PEERSFLAGS are flags of the program; -help lists them.
PEERSFLAGS ?=

# A peer that cannot be installed is skipped, with its reason, and the others are measured. What is installed goes
# into bench/peers/langgraph/node_modules, the stores into bench/peers/scratch-*; git ignores both.
.PHONY: bench-peers
bench-peers: ## beside LangGraph JS and eino, in one run; npm installs the former
	@bench/peers/langgraph/install.sh || echo "bench-peers: going on with what is there" >&2
	@cd bench/peers && go vet ./... && go run . -parley "$$(git describe --always --dirty 2> /dev/null || echo 'of this tree')" $(PEERSFLAGS)

# How many schedules `make soak` simulates, how many random agents it plays, and from which seed on: another one each time.
SCHEDULES ?= 100000
PLAYS ?= 10000
FROM ?= $(shell date +%s)

# The race detector makes the simulation many times slower, so that `make test` with it plays few seeds.
.PHONY: schedules
schedules: ## the deterministic simulation of gates, its ordinary 2000 seeds, without the race detector
	go test ./gate -run '^TestSimulation$$' -count 1

.PHONY: soak
soak: ## SCHEDULES (100000) simulations of gates and PLAYS (10000) random agents, seeds from FROM (now) on
	go test ./gate -run '^TestSimulation$$' -schedules $(SCHEDULES) -from $(FROM) -timeout 0
	go test ./agent -run '^TestRandomAgents$$' -plays $(PLAYS) -from $(FROM) -timeout 0

# Each target is fuzzed on its own, as go test wants it. Inputs that fail are written to testdata/fuzz: commit them.
.PHONY: fuzz
fuzz: ## every fuzz target, FUZZTIME (10s) each
	@set -e; packages=$$(go list ./...); \
	for package in $$packages; do \
		targets=$$(go test -list '^Fuzz' $$package); \
		for target in $$(echo "$$targets" | grep '^Fuzz'); do \
			echo "$$package $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package; \
		done; \
	done
