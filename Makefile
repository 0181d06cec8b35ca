# Everything a developer types. `make help` lists it.

SHELL := /usr/bin/env bash
CARGO ?= cargo
export PATH := $(PATH):$(HOME)/.cargo/bin

.DEFAULT_GOAL := help
.PHONY: run build test check soak fmt bench clean help

run: ## build and start a whole demo system below ./run (Ctrl-C stops it; data stays)
	@scripts/run.sh

build: ## build the program as it is shipped, target/release/vere
	@$(CARGO) build --release --locked --package vere

test: ## everything CI checks; installs what the tests need first
	@scripts/install-test-tools.sh
	@$(CARGO) fetch --locked
	@$(CARGO) xtask check

check: ## the same without installing anything, and without network
	@$(CARGO) xtask check

soak: ## the long daemon tests (kills, floods, expiry), then simulated spools until one fails
	@VERE_FULL=1 $(CARGO) test --locked --package vere --test it
	@VERE_SIM_SEEDS=endless $(CARGO) test --locked --package vere-sim --test seeds -- --nocapture

fmt: ## format all code
	@$(CARGO) fmt --all

bench: build ## gateway, spool node and, given MAIL=FILE (mbox), mail store beside peers; installs those
	@scripts/install-bench-peers.sh
	@target/release/vere bench gateway --quick
	@target/release/vere bench spool --quick
	@[[ -z "$(MAIL)" ]] || target/release/vere bench store --quick --mail "$(MAIL)"

clean: ## remove what was built and the demo's data
	@$(CARGO) clean
	@rm -rf run vere

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
