# CI runs .ci/run and nothing else; the targets that overlap with it call it, so
# that there is one place that says what a check is.
.DEFAULT_GOAL := help

FUZZ ?= 12000
RACE_PACKAGES ?=
BENCH ?= .
CHECKS ?= 10000
PROPERTIES ?= .
SEEDS ?= 20000
FIRST ?= 0
MINUTES ?= 30
TOPOLOGY ?= cluster
RATE ?= 600
EVENTS ?= 0
KILLS ?= 0
CHAOS ?=
SOAK ?=
export FUZZ RACE_PACKAGES

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## the commands, into bin/
	go build -o bin/ ./cmd/...

.PHONY: test
test: ## all tests, without the race detector
	go test ./...

.PHONY: race
race: ## the tests of all that has goroutines under the race detector (RACE_PACKAGES=./worker/...)
	@.ci/run race

.PHONY: invariants
invariants: ## the tests of everything that runs a space, with I1 to I9 checked after every step
	go test -tags invariants -vet=off -timeout 40m ./space ./worker ./test/sim .

.PHONY: properties
properties: ## the property tests of the core under the race detector (CHECKS=10000)
	go test -race -timeout 3h -run '$(PROPERTIES)' ./space ./ledger ./model ./lanes ./replica ./lineage -rapid.checks=$(CHECKS)

.PHONY: sim
sim: ## many seeds of the simulation, on two processors (SEEDS=20000 FIRST=80000000; 0 is some of all kinds)
	go test -timeout 6h -count=1 ./test/sim -run 'TestSeeds$$' -seeds $(SEEDS) -first $(FIRST) -v

.PHONY: mutants
mutants: ## break promises on purpose and see that a test notices; goes on where it stopped
	go run ./test/mutants $(MUTANTS)

.PHONY: chaos
chaos: ## real processes, killed and cut off (TOPOLOGY=cluster MINUTES=30 RATE=600 EVENTS=0 KILLS=0 SEED=0)
	go build -o bin/chaos/chaos ./test/chaos
	bin/chaos/chaos --topology $(TOPOLOGY) --duration $(MINUTES)m --rate $(RATE) --min-events $(EVENTS) --min-kills $(KILLS) --seed $(or $(SEED),0) $(CHAOS)

.PHONY: soak
soak: ## the long run of docs/durability.md, in pieces that go on where the last ended (SOAK="--for 1h"; Linux, root)
	go build -o bin/chaos/chaos ./test/chaos
	bin/chaos/chaos soak $(SOAK)

.PHONY: powerloss
powerloss: ## the power of NATS servers is cut under a deployment (Linux, /dev/fuse, root; CUTS=20)
	cd test/powerloss && go test ./... && \
	go run . -v -nodes 1 -sync always -torn -cuts $(or $(CUTS),20) && go run . -v -nodes 1 -sync default -cuts $(or $(CUTS),20) && \
	go run . -v -nodes 3 -hit 3 -sync always -cuts $(or $(CUTS),20) && go run . -v -nodes 3 -hit 3 -sync default -cuts $(or $(CUTS),20)

.PHONY: peers
peers: ## the core beside other engines in one process
	cd bench/peers && go run .

.PHONY: hosted
hosted: ## what a hosted program costs beside the same in Go; at most 20 times as much
	go run ./cmd/settle bench hosted

.PHONY: cli
cli: ## write docs/cli.md from the commands
	go test -p 1 ./cmd/... -run TestCLIPage -update

.PHONY: lint
lint: ## vet and golangci-lint, in the version that CI uses
	@.ci/run format vet lint

.PHONY: vuln
vuln: ## known vulnerabilities that the code can reach
	@.ci/run vuln

.PHONY: check
check: ## everything that CI checks
	@.ci/run

.PHONY: fuzz
fuzz: ## every fuzz target with FUZZ inputs each (FUZZ=1000000)
	@.ci/run fuzz

.PHONY: bench
bench: ## Settle beside other engines, in turns; writes docs/performance.md (BENCHFLAGS="-rounds 5 -full")
	cd bench && go run . $(BENCHFLAGS)

.PHONY: bench-small
bench-small: ## messages, bytes, fsyncs and allocations of an event, compared with bench/counts.json
	cd bench && go run -tags counts . small

.PHONY: bench-record
bench-record: ## records them anew
	cd bench && go run -tags counts . small -record

.PHONY: gobench
gobench: ## all benchmarks of go test, six times each, in the form benchstat reads (BENCH=Settle)
	go test -run='^$$' -bench='$(BENCH)' -benchmem -count=6 ./...

.PHONY: cover
cover: ## test coverage over all packages, as bin/cover.html
	@mkdir -p bin
	go test -coverpkg=./... -coverprofile=bin/cover.out ./...
	go tool cover -func=bin/cover.out | tail -1
	go tool cover -html=bin/cover.out -o bin/cover.html
