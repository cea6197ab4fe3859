# Rollway's make targets; `make help` lists them. Most need Go and make alone; -race
# needs a C compiler.

# Each module is built as its users build it; go.work is for editors.
export GOWORK = off

GO       ?= go
ARGS     ?=
FUZZTIME ?= 10s
COUNT    ?= 20
LIVES    ?= 2000
BACKLOG  ?= 10050000000

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' Makefile

.PHONY: run
run: build ## build and start the collector on loopback with ./data; ARGS='-listen 127.0.0.1:4400' adds flags
	@bin/rollway serve -data ./data $(ARGS)

.PHONY: build
build: ## build bin/rollway
	@cd collector && $(GO) build -o ../bin/rollway ./cmd/rollway

.PHONY: setup
setup: ## install the programs that tests need (Debian packages, as root or with sudo) and fetch the modules
	@scripts/setup

.PHONY: test
test: ## run the tests of every module (some 6 minutes on two cores); ARGS='-race' adds flags, REQUIRE=all makes a skipped test fail
	@$(GO) run ./scripts/dev test $(ARGS)

.PHONY: nightly
nightly: ## run what takes too long for each commit (132 minutes at most) and write docs/results/nightly.txt; PARTS="engines kills" runs some parts, ARGS=-again those that have passed on this commit too
	@$(GO) run ./scripts/dev nightly $(ARGS) $(PARTS)

.PHONY: redteam
redteam: ## attack a collector in every way that docs/THREATS.md names (13 minutes) and write the table in docs/RELIABILITY.md
	@$(GO) run ./scripts/dev redteam -o docs/results/redteam.json; status=$$?; (cd bench && $(GO) run ./cmd/bench tables redteam) && exit $$status

.PHONY: lint
lint: ## gofmt, vet and staticcheck over every module
	@scripts/lint

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (10s)
	@$(GO) run ./scripts/dev fuzz -time $(FUZZTIME)

.PHONY: readme
readme: ## run the commands of README.md in a fresh clone and compare what they print
	@$(GO) run ./scripts/dev readme

.PHONY: newcomer
newcomer: ## make a release in a clone and do what the pages in docs/start say (5 minutes)
	@scripts/newcomer

# Each program writes its raw results into docs/results, and all tables are made anew.
BENCH = cd bench && $(GO) build -o ../bin/bench ./cmd/bench && ../bin/bench
OUT   = ../docs/results

.PHONY: bench-logger
bench-logger: ## measure the logger against its rivals
	@$(BENCH) logger -o $(OUT)/logger.json $(ARGS) && ../bin/bench tables

.PHONY: bench-writers
bench-writers: ## measure the buffered writers against their rivals
	@$(BENCH) writers -o $(OUT)/writers.json $(ARGS) && ../bin/bench tables

.PHONY: bench-alloc
bench-alloc: ## find where allocations come from, with four toolchains
	@$(BENCH) alloc -o $(OUT)/allocstudy.json $(ARGS) && ../bin/bench tables

.PHONY: bench-latency
bench-latency: ## measure the log call while the destination stalls (10 minutes)
	@$(BENCH) latency -o $(OUT)/latency.json $(ARGS) && ../bin/bench tables

.PHONY: bench-reliability
bench-reliability: ## put writers under faults, with 200 kills at random, in a copy and in a write each (10 minutes)
	@$(BENCH) reliability -o $(OUT)/reliability.json $(ARGS) && ../bin/bench tables

.PHONY: bench-stuck
bench-stuck: ## put loggers in front of destinations that take nothing (each that hangs gets 10 s)
	@$(BENCH) stuck -o $(OUT)/stuck.json $(ARGS) && ../bin/bench tables

.PHONY: bench-direct
bench-direct: ## a gRPC server that logs 300 MB/s for a minute (or DURATION=10m), and the published experiments (12 minutes)
	@$(BENCH) direct-headline -o $(OUT) $(if $(DURATION),-duration $(DURATION)) $(ARGS) && ../bin/bench direct -o $(OUT) && ../bin/bench tables

.PHONY: bench-relay
bench-relay: ## measure relays against each other (14 minutes)
	@$(BENCH) relay -o $(OUT)/relay.json $(ARGS) && ../bin/bench tables

.PHONY: bench-ingest
bench-ingest: ## measure taking events in beside a published pipeline and other collectors (15 minutes)
	@$(BENCH) ingest -o $(OUT)/ingest.json $(ARGS) && ../bin/bench tables

.PHONY: bench-query
bench-query: ## ask Rollway, ClickHouse, DuckDB and zstd | rg the same questions about 2 GB of lines (20 minutes); ARGS='-size 64MiB' for fewer
	@$(BENCH) query -o $(OUT)/query.json $(ARGS) && ../bin/bench tables

.PHONY: bench-tables
bench-tables: ## make all tables from the results that there are
	@$(BENCH) tables

.PHONY: bench-chaos
bench-chaos: ## put a collector under load and faults, 100 kills and minutes without Kafka among them (9 minutes)
	@cd bench && $(GO) test ./chaos -run TestFaults -v -count 1 -timeout 0 -args -o ../$(OUT)/chaos.json $(ARGS) && $(GO) run ./cmd/bench tables

.PHONY: soak
soak: ## random runs, COUNT (20) of each: slab (also under the race detector), file and spool followed line by line; relay with large streams and many connections, the collector's journal; seeds are printed
	$(GO) test -timeout 0 -run 'TestStress|TestChaos|TestPersistKill' -count $(COUNT) ./slab
	$(GO) test -race -timeout 0 -run 'TestStress|TestChaos' -count $(COUNT) ./slab
	$(GO) test -timeout 0 -run 'TestStress' -count $(COUNT) ./file
	$(GO) test -timeout 0 -run 'TestSimulation' -count $(COUNT) ./internal/spool
	$(GO) test -timeout 0 ./relay -args -long
	cd collector && $(GO) test -timeout 0 -run TestLives ./journal -args -lives $(LIVES)
	cd collector && $(GO) test -timeout 0 -run TestReadyWithBacklog ./cmd/rollway -args -backlog $(BACKLOG)
