SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# gin's MessagePack codec is a quarter of a cold build and nothing here speaks it.
# Through GOFLAGS the tag reaches builds, tests, vet and what they start, so that all
# of them share one cache.
export GOFLAGS := $(strip $(filter-out -tags=%,$(shell go env GOFLAGS 2>/dev/null)) -tags=nomsgpack)
TOOLS := $(CURDIR)/.tmp/bin
TESTENV := $(TOOLS)/testenv
# The linter is built once for each state of its module file.
LINTER := $(TOOLS)/golangci-lint-$(firstword $(shell cat build/lint/go.mod build/lint/go.sum | cksum))
# Programs of others that tests talk to, built from the proxy's sources.
OUTSIDE := $(CURDIR)/.tmp/outside
export OPENBOT_TEST_OUTSIDE_DIR := $(OUTSIDE)
NPM_DONE := build/npm/node_modules/.package-lock.json

VERSION ?= $(or $(shell git describe --tags --always --dirty 2>/dev/null),dev)

# What to test, and for how long at most. The race detector watches everything but the C
# libraries translated to Go (SQLite, QuickJS): watching them takes four times as long and
# finds nothing, since what they share is behind locks of packages that are watched. What
# "go vet" finds is found by "make lint".
RACE := -race -gcflags=modernc.org/...=-race=false
PACKAGES ?= ./...
TIMEOUT ?= 15m
# Tests of the whole program wait more than they compute: one more package fills the time.
PARALLEL ?= $(shell echo $$(($$(nproc) + 1)))

.PHONY: help
help: ## say what can be made
	@awk 'BEGIN { FS = ":.*## " } /^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: run
run: build ## build and start OpenBot on 127.0.0.1:8080 (ARGS="..." are passed on)
	@exec bin/openbot serve $(ARGS)

.PHONY: build
build: ## build bin/openbot
	@[[ -x bin/openbot ]] || echo "First build: this takes about two minutes on two cores, and seconds from then on."
	@CGO_ENABLED=0 go build -v -ldflags='-s -w -X main.version=$(VERSION)' -o bin/openbot . 2> >($(PROGRESS) >&2)

# "go build -v" names each package that it has to build; the rest are its errors.
PROGRESS = awk '/^[A-Za-z0-9._~\/-]+$$/ { if (++n % 50 == 0) { printf "  %d packages built\n", n; fflush() } next } { print; fflush() }'

.PHONY: test
test: $(TESTENV) npm $(OUTSIDE)/mailpit $(OUTSIDE)/everything ## run all tests beside a PostgreSQL and a Redis of their own
	@# Tests against programs of others are run when the folder that holds them is named.
	@if [[ -f $(NPM_DONE) ]]; then export OPENBOT_NPM_DIR="$(CURDIR)/build/npm"; fi; \
	echo "go test -vet=off $(RACE) $(PACKAGES)"; \
	$(TESTENV) --chromium -- go test -vet=off $(RACE) -p $(PARALLEL) -timeout $(TIMEOUT) $(PACKAGES)
	$(if $(filter ./...,$(PACKAGES)),@$(MAKE) --no-print-directory properties)

# Only packages with property tests know the flag of their number. Those of the engine run
# on a database: their usual number is what a run of all tests bears.
.PHONY: properties
properties:
	@packages=$$(go list -f '{{range .TestImports}}{{.}} {{end}}{{range .XTestImports}}{{.}} {{end}}{{.ImportPath}}' ./domain/... \
		| awk '/pgregory.net\/rapid / && $$NF !~ /engine$$/ { print $$NF }'); \
	if [[ -z $$packages ]]; then exit 0; fi; \
	echo "go test -vet=off $(RACE)" $$packages "-rapid.checks=1000"; \
	go test -vet=off $(RACE) -timeout $(TIMEOUT) $$packages -rapid.checks=1000

.PHONY: npm
npm:
	@if [[ -f $(NPM_DONE) && $(NPM_DONE) -nt build/npm/package-lock.json ]]; then exit 0; fi; \
	echo "Installing the programs of others for the tests (npm)"; \
	if ! (cd build/npm && npm ci --no-audit --no-fund --loglevel=error && touch node_modules/.package-lock.json); then \
		echo "================================================================"; \
		echo "npm could not install build/npm: tests against servers and"; \
		echo "clients of others are NOT RUN. Everything else is tested."; \
		echo "================================================================"; \
	fi

$(OUTSIDE)/mailpit $(OUTSIDE)/everything: build/outside/go.mod build/outside/go.sum
	@echo "Building $(@F) for the tests, once."
	@mkdir -p $(OUTSIDE)
	@cd build/outside && go build -o $@ $$(go list -f '{{.ImportPath}}' tool | grep '/$(@F)$$')

.PHONY: lint
lint: $(LINTER) ## check style and who imports whom
	$(LINTER) run ./...

$(LINTER): build/lint/go.mod build/lint/go.sum
	@echo "Building the linter: this takes two minutes on two cores, once."
	@mkdir -p $(TOOLS)
	@rm -f $(TOOLS)/golangci-lint-*
	cd build/lint && go build -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: $(TESTENV)
$(TESTENV):
	@mkdir -p $(TOOLS)
	@CGO_ENABLED=0 go build -o $@ ./build/testenv

.PHONY: generate
generate: ## write the generated files anew
	go generate ./...

.PHONY: verify
verify: ## check that module files, generated files and format are up to date
	go mod tidy -diff
	@before=$$(git diff | cksum); go generate ./...; \
	if [[ $$before != "$$(git diff | cksum)" ]]; then echo "Generated files were old: commit what make generate wrote."; exit 1; fi
	@old=$$(git ls-files -z '*.go' | xargs -0 gofmt -l); \
	if [[ -n $$old ]]; then echo "Not in gofmt's format:"; echo "$$old"; exit 1; fi
	go vet ./...

.PHONY: tour
tour: $(TESTENV) npm ## take the pictures of docs/tour.md anew
	@export OPENBOT_NPM_DIR="$(CURDIR)/build/npm" OPENBOT_TOUR=1; \
	$(TESTENV) --chromium -- go test . -count=1 -run '^TestTheTour$$'

# One after another, since each uses every core.
FUZZTIME ?= 2m
.PHONY: fuzz
fuzz: ## look for inputs that break a promise (FUZZTIME=2m for each target)
	@grep -rlE '^func Fuzz' --include='*_test.go' . | while read -r file; do \
		for target in $$(sed -nE 's/^func (Fuzz[A-Za-z]+).*/\1/p' "$$file"); do \
			echo "$$target in $$(dirname "$$file")"; \
			go test "$$(dirname "$$file")" -run XXX -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) || exit 1; \
		done; \
	done

.PHONY: bench
bench: ## measure the approval round on this machine (ARGS="..." are passed on)
	go run ./bench $(ARGS)

.PHONY: chaos
chaos: ## kill and cut off what OpenBot runs on, and check its promises (ARGS="..." are passed on)
	go run ./bench/chaos $(ARGS)

.PHONY: up
up: ## start every role in containers, on 127.0.0.1:8080
	@$(NEED_DOCKER)
	@[[ -f .env ]] || { echo "There is no .env: run  cp deployments/env.example .env  and fill it in."; exit 1; }
	docker compose up --build --detach --wait

.PHONY: down
down: ## stop the containers; the data stays
	@$(NEED_DOCKER)
	docker compose down

NEED_DOCKER = docker compose version >/dev/null 2>&1 || { echo "This needs Docker with its compose plugin, which is not installed. make run needs neither."; exit 1; }

.PHONY: clean
clean: ## remove what was built; the data stays
	rm -rf bin .tmp build/npm/node_modules
