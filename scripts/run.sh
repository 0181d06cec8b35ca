#!/usr/bin/env bash
# Builds the programs and starts the demo system below ./run; `make run` calls this.
set -euo pipefail
cd "$(dirname "$0")/.."

need() {
    command -v "$1" >/dev/null || {
        echo "make run: $1 is missing: $2" >&2
        exit 1
    }
}

# Whether this process is in the foreground of its terminal: field 5 of its stat is its process
# group, field 8 the terminal's (proc(5)); the name in field 2 holds no blank, since it is ours.
in_foreground() {
    local fields
    [[ -t 0 ]] || return 1
    read -r -a fields <"/proc/$$/stat"
    [[ "${fields[4]}" == "${fields[7]}" ]]
}

need cargo "install Rust 1.95 or later, see https://rustup.rs"
need cc "install a C compiler (Debian: apt-get install gcc libc6-dev)"

echo "make run: building (the first time takes some minutes)" >&2
cargo build --release --locked --package vere --package vere-bench
program="${CARGO_TARGET_DIR:-target}/release/vere"
# The demo's sink is vere-bench, which vere finds beside itself. The link lets people type ./vere; commands find run/vere.toml by themselves.
ln -sfn "$program" vere

arguments=(demo run --dir run)
if [[ -n "${PORT_OFFSET:-}" ]]; then
    arguments+=(--port-offset "$PORT_OFFSET")
fi

if ! in_foreground; then
    exec ./vere "${arguments[@]}"
fi
# At a terminal the program gets a process group of its own: Ctrl-C must reach it alone, since a
# make that sees the signal itself ends with an error even after a clean stop.
trap '' TSTP
set -m
./vere "${arguments[@]}"
