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
test: ## run the tests of every module (some 3 minutes on two cores); ARGS='-race' adds flags, REQUIRE=all makes a skipped test fail
	@$(GO) run ./scripts/dev test $(ARGS)

.PHONY: nightly
nightly: ## run what takes too long for each commit (90 minutes at most) and write docs/results/nightly.txt; PARTS="engines kills" runs some parts, ARGS=-again those that have passed on this commit too
	@$(GO) run ./scripts/dev nightly $(ARGS) $(PARTS)

.PHONY: lint
lint: ## gofmt, vet and staticcheck over every module
	@scripts/lint

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (10s)
	@$(GO) run ./scripts/dev fuzz -time $(FUZZTIME)

.PHONY: readme
readme: ## run the commands of README.md in a fresh clone and compare what they print
	@$(GO) run ./scripts/dev readme

.PHONY: bench-logger
bench-logger: ## measure the logger against its rivals and write the tables of docs/BENCHMARKS.md
	@cd bench && $(GO) build -o ../bin/bench ./cmd/bench && ../bin/bench logger -o ../docs/results/logger.json $(ARGS) && ../bin/bench tables logger

.PHONY: bench-writers
bench-writers: ## measure the buffered writers against their rivals and write the tables of docs/BENCHMARKS.md
	@cd bench && $(GO) build -o ../bin/bench ./cmd/bench && ../bin/bench writers -o ../docs/results/writers.json $(ARGS) && ../bin/bench tables writers

.PHONY: bench-alloc
bench-alloc: ## find where allocations come from, with four toolchains, and write the tables of docs/BENCHMARKS.md
	@cd bench && $(GO) build -o ../bin/bench ./cmd/bench && ../bin/bench alloc -o ../docs/results/allocstudy.json $(ARGS) && ../bin/bench tables allocstudy

.PHONY: bench-latency
bench-latency: ## measure the log call while the destination stalls (some 10 minutes) and write the tables of docs/BENCHMARKS.md
	@cd bench && $(GO) build -o ../bin/bench ./cmd/bench && ../bin/bench latency -o ../docs/results/latency.json $(ARGS) && ../bin/bench tables latency

.PHONY: bench-reliability
bench-reliability: ## do to writers what can go wrong, 200 kills at random, in a copy and in a write each (some 10 minutes), and write the tables of docs/RELIABILITY.md
	@cd bench && $(GO) build -o ../bin/bench ./cmd/bench && ../bin/bench reliability -o ../docs/results/reliability.json $(ARGS) && ../bin/bench tables reliability

.PHONY: bench-stuck
bench-stuck: ## put loggers in front of destinations that take nothing (long, as each that hangs is given 10 s), and write the tables of docs/RELIABILITY.md
	@cd bench && $(GO) build -o ../bin/bench ./cmd/bench && ../bin/bench stuck -o ../docs/results/stuck.json $(ARGS) && ../bin/bench tables stuck

.PHONY: bench-direct
bench-direct: ## a gRPC server that logs 300 MB/s for a minute (or DURATION=10m), the published experiments beside it (12 minutes), and the tables of docs/BENCHMARKS.md
	@cd bench && $(GO) build -o ../bin/bench ./cmd/bench && ../bin/bench direct-headline -o ../docs/results $(if $(DURATION),-duration $(DURATION)) $(ARGS) && \
		../bin/bench direct -o ../docs/results && ../bin/bench tables direct

.PHONY: bench-relay
bench-relay: ## measure relays beside each other, and a published benchmark of buffers on real sockets (some 14 minutes), and write the tables of docs/RELAY.md
	@cd bench && $(GO) build -o ../bin/bench ./cmd/bench && ../bin/bench relay -o ../docs/results/relay.json $(ARGS) && ../bin/bench tables relay

.PHONY: bench-ingest
bench-ingest: ## measure taking events in beside a published pipeline and other collectors (some 15 minutes), and write the tables of docs/BENCHMARKS.md
	@cd bench && $(GO) build -o ../bin/bench ./cmd/bench && ../bin/bench ingest -o ../docs/results/ingest.json $(ARGS) && ../bin/bench tables ingest

.PHONY: bench-published
bench-published: ## write the table of docs/PUBLISHED.md from the results that there are
	@cd bench && $(GO) build -o ../bin/bench ./cmd/bench && ../bin/bench tables published

.PHONY: bench-chaos
bench-chaos: ## do to a collector under load what can go wrong, 100 kills and minutes without Kafka among it (some 9 minutes), and write the table of docs/RELIABILITY.md
	@cd bench && $(GO) test ./chaos -run TestFaults -v -count 1 -timeout 0 -args -o ../../docs/results/chaos.json $(ARGS) && $(GO) run ./cmd/bench tables chaos

.PHONY: soak
soak: ## random runs, COUNT (20) of each: slab (also under the race detector), file and spool followed line by line; relay with large streams and many connections, the collector's journal; seeds are printed
	$(GO) test -timeout 0 -run 'TestStress|TestChaos|TestPersistKill' -count $(COUNT) ./slab
	$(GO) test -race -timeout 0 -run 'TestStress|TestChaos' -count $(COUNT) ./slab
	$(GO) test -timeout 0 -run 'TestStress' -count $(COUNT) ./file
	$(GO) test -timeout 0 -run 'TestSimulation' -count $(COUNT) ./internal/spool
	$(GO) test -timeout 0 ./relay -args -long
	cd collector && $(GO) test -timeout 0 -run TestLives ./journal -args -lives $(LIVES)
	cd collector && $(GO) test -timeout 0 -run TestReadyWithBacklog ./cmd/rollway -args -backlog $(BACKLOG)
