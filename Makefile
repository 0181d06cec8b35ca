# Everything a developer types. `make help` lists it.

SHELL := /usr/bin/env bash
CARGO ?= cargo
export PATH := $(PATH):$(HOME)/.cargo/bin

.DEFAULT_GOAL := help
.PHONY: run build build-bench install install-bench uninstall test check soak kernel-tls fs-peers packages packages-test zero-to-trusted image image-test book fmt bench clean help

run: ## build and start a whole demo system below ./run (Ctrl-C stops it; data stays)
	@scripts/run.sh

build: ## build the program as it is shipped, target/release/vere
	@$(CARGO) build --release --locked --package vere

build-bench: ## build the program that measures, target/release/vere-bench
	@$(CARGO) build --release --locked --package vere-bench

# Where packages put things; DESTDIR stands before each for whoever builds one.
PREFIX ?= /usr
PROGRAM ?= target/release/vere
BENCH_PROGRAM ?= target/release/vere-bench
# Without symbols a program is a third as large; for another machine's programs name its strip, or STRIP=true.
STRIP ?= strip
PUT := install --strip --strip-program=$(STRIP) -D -m 755
SHARE := $(DESTDIR)$(PREFIX)/share
LIB := $(DESTDIR)$(PREFIX)/lib

install: ## put the program, stripped, its pages and units below PREFIX (as root; `make build` first)
	@$(PUT) "$(PROGRAM)" "$(DESTDIR)$(PREFIX)/bin/vere"
	@install -d "$(DESTDIR)$(PREFIX)/sbin"
	@ln -sfn ../bin/vere "$(DESTDIR)$(PREFIX)/sbin/mount.verefs"
	@"$(DESTDIR)$(PREFIX)/bin/vere" man "$(SHARE)/man"
	@install -d "$(SHARE)/bash-completion/completions" "$(SHARE)/zsh/vendor-completions" "$(SHARE)/fish/vendor_completions.d"
	@"$(DESTDIR)$(PREFIX)/bin/vere" completions bash > "$(SHARE)/bash-completion/completions/vere"
	@"$(DESTDIR)$(PREFIX)/bin/vere" completions zsh > "$(SHARE)/zsh/vendor-completions/_vere"
	@"$(DESTDIR)$(PREFIX)/bin/vere" completions fish > "$(SHARE)/fish/vendor_completions.d/vere.fish"
	@install -D -m 644 -t "$(LIB)/sysusers.d" packaging/sysusers.d/vere.conf
	@install -d "$(LIB)/systemd/system" "$(SHARE)/doc/vere"
	@for unit in packaging/systemd/*; do \
	    sed 's|/usr/|$(PREFIX)/|g' "$$unit" > "$(LIB)/systemd/system/$${unit##*/}"; done
	@cp -r README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT docs/. "$(SHARE)/doc/vere/"
	@install -D -m 644 -t "$(SHARE)/vere/prometheus" packaging/prometheus/vere.rules.yml
	@install -D -m 644 -t "$(SHARE)/vere/grafana" packaging/grafana/vere.json

install-bench: ## put vere-bench beside it, for `vere bench`, `vere sink` and `vere demo` (as root; `make build-bench` first)
	@$(PUT) "$(BENCH_PROGRAM)" "$(DESTDIR)$(PREFIX)/bin/vere-bench"
	@"$(DESTDIR)$(PREFIX)/bin/vere-bench" man "$(SHARE)/man"
	@install -d "$(SHARE)/bash-completion/completions" "$(SHARE)/zsh/vendor-completions" "$(SHARE)/fish/vendor_completions.d"
	@"$(DESTDIR)$(PREFIX)/bin/vere-bench" completions bash > "$(SHARE)/bash-completion/completions/vere-bench"
	@"$(DESTDIR)$(PREFIX)/bin/vere-bench" completions zsh > "$(SHARE)/zsh/vendor-completions/_vere-bench"
	@"$(DESTDIR)$(PREFIX)/bin/vere-bench" completions fish > "$(SHARE)/fish/vendor_completions.d/vere-bench.fish"

uninstall: ## take away what `make install` and `make install-bench` put there; settings and mail stay
	@rm -f "$(DESTDIR)$(PREFIX)/bin/vere" "$(DESTDIR)$(PREFIX)/bin/vere-bench" "$(SHARE)/man/man1/vere.1" "$(SHARE)"/man/man1/vere-*.1 "$(SHARE)/man/man5/vere.toml.5" "$(SHARE)/man/man5/verefs.toml.5" \
	    "$(SHARE)/man/man8/mount.verefs.8" "$(DESTDIR)$(PREFIX)/sbin/mount.verefs" \
	    $(foreach name,vere vere-bench,"$(SHARE)/bash-completion/completions/$(name)" \
	    "$(SHARE)/zsh/vendor-completions/_$(name)" "$(SHARE)/fish/vendor_completions.d/$(name).fish") \
	    "$(LIB)/sysusers.d/vere.conf" \
	    "$(LIB)/systemd/system/vere.service" "$(LIB)/systemd/system/vere-node@.service" "$(LIB)"/systemd/system/vere-*.socket \
	    "$(LIB)"/systemd/system/vere-backup.*
	@rm -rf "$(SHARE)/doc/vere" "$(SHARE)/vere"

packages: ## .deb packages, their symbols apart, and a tarball, in target/packages (`make build build-bench` first; VERSION, MAINTAINER)
	@PROGRAM="$(PROGRAM)" BENCH_PROGRAM="$(BENCH_PROGRAM)" CARGO="$(CARGO)" scripts/packages/build

packages-test: ## the packages in a clean Debian: install, start, upgrade under load, remove, purge (as root; `make packages` first)
	@scripts/packages/test

zero-to-trusted: ## from the package in a clean Debian to signed mail that Postfix and Exim accept, and faults of the DNS found (as root; `make packages` first)
	@scripts/zero-to-trusted/test

image: ## a container image from the package, in target/packages (as root; `make packages` first)
	@scripts/packages/image

image-test: ## the image as its user without rights: quickstart, mail, health, stop (as root; `make image` first)
	@scripts/packages/test-image

# Where no earlier build has left notes for the next, as in a fresh clone, none are made: they cost a quarter of the compiler's
# time.
ifeq ($(wildcard $(or $(CARGO_TARGET_DIR),target)/debug/incremental),)
test check: export CARGO_INCREMENTAL ?= 0
endif
# The compiler works while packages are downloaded and unpacked.
test: ## everything CI checks; installs what the tests need first
	@scripts/install-test-tools.sh & tools=$$!; \
	    $(CARGO) fetch --locked && $(CARGO) xtask fmt && $(CARGO) xtask clippy; code=$$?; \
	    wait $$tools && exit $$code
	@$(CARGO) xtask check

check: ## the same without installing anything, and without network
	@$(CARGO) xtask check

soak: ## the long daemon tests (kills, floods, expiry), then simulated spools until one fails
	@VERE_FULL=1 $(CARGO) test --locked --package vere --package vere-bench --test it
	@VERE_SIM_SEEDS=endless $(CARGO) test --locked --package vere-sim --test seeds -- --nocapture

kernel-tls: ## the tests of TLS by the kernel, in a virtual machine with Debian's kernel; installs qemu
	@CARGO="$(CARGO)" scripts/kernel-tls/run.sh

fs-peers: ## a volume of `vere fs` on real Cyrus, Courier, Dovecot and on the mail store; unpacks Debian packages (as root)
	@$(CARGO) build --locked --package vere
	@VERE="$${CARGO_TARGET_DIR:-target}/debug/vere" scripts/fs-peers.sh

book: ## the documentation as a book with a search, target/book/index.html; needs mdbook (scripts/install-test-tools.sh)
	@$(CARGO) xtask book

fmt: ## format all code
	@$(CARGO) fmt --all

bench: build build-bench ## gateway, spool node, port 25, block lists, clients that do nothing and, given MAIL=FILE (mbox), mail store; installs peers
	@scripts/install-bench-peers.sh
	@target/release/vere-bench gateway --quick
	@target/release/vere-bench spool --quick
	@target/release/vere-bench front --quick
	@target/release/vere-bench dnsbl --quick
	@target/release/vere-bench trouble --quick
	@[[ -z "$(MAIL)" ]] || target/release/vere-bench store --quick --mail "$(MAIL)"

clean: ## remove what was built and the demo's data
	@$(CARGO) clean
	@rm -rf run vere

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
