#!/usr/bin/env bash
# Runs the tests of TLS by the kernel under Debian's kernel, whatever kernel this machine has. Without qemu they are
# skipped, visibly.
set -euo pipefail
cd "$(dirname "$0")/../.."

code=0
scripts/kernel-tls/prepare.sh || code=$?
[[ "$code" != 77 ]] || exit 0
[[ "$code" == 0 ]] || exit "$code"

# Tests with the variable fail where the kernel has no TLS.
export VERE_KERNEL_TLS=1
export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="$PWD/scripts/kernel-tls/boot.sh"
cargo="${CARGO:-cargo}"
"$cargo" test --locked --package vere-net --lib tls::proxy
# One at a time: the guest is slow, and the tests wait two minutes at most.
"$cargo" test --locked --package vere --test it front_tls:: -- --test-threads=1
