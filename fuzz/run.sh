#!/usr/bin/env bash
# Fuzzes each target for some seconds with the bounds a release is held to: no input may take 256 MB
# or seem to hang. The time is that of the clock, so it must be far more than any input takes on a
# machine that does other things as well: at one second that alone stopped two runs.
#
#     fuzz/run.sh [SECONDS [TARGET...]]
#
# Needs a nightly toolchain, a C++ compiler and cargo-fuzz; says so and skips where they are missing.
set -euo pipefail
cd "$(dirname "$0")"

# What was freed is kept from use by 256 MB of quarantine, which alone would reach the bound of memory.
export ASAN_OPTIONS=${ASAN_OPTIONS:-quarantine_size_mb=32}

seconds=${1:-60}
shift || true

if ! cargo +nightly fuzz --version >/dev/null 2>&1; then
    echo "fuzz: skipped, needs cargo-fuzz and a nightly toolchain" \
        "(rustup toolchain install nightly; cargo install cargo-fuzz --locked)" >&2
    exit 0
fi

targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    for file in fuzz_targets/*.rs; do
        targets+=("$(basename "$file" .rs)")
    done
fi

for target in "${targets[@]}"; do
    mkdir -p "corpus/$target"
    echo "fuzz: $target for $seconds s"
    cargo +nightly fuzz run --fuzz-dir . "$target" "corpus/$target" -- \
        -dict="dictionaries/$target.dict" -max_total_time="$seconds" \
        -timeout=25 -rss_limit_mb=256 -max_len=16384 -print_final_stats=1
done
