#!/usr/bin/env bash
# Installs the servers that the benchmarks compare with, as far as this machine allows: Postfix,
# memcached, Redis, Dovecot. What cannot be had is named with the reason; its rows are then missing.
set -euo pipefail

say() { echo "install-bench-peers: $*" >&2; }

missing=()
for pair in postfix:postfix memcached:memcached redis-server:redis-server dovecot:dovecot-imapd \
    /usr/lib/dovecot/lmtp:dovecot-lmtpd; do
    PATH="$PATH:/usr/sbin:/sbin" command -v "${pair%%:*}" >/dev/null || missing+=("${pair##*:}")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

root=()
if ! command -v apt-get >/dev/null; then
    say "SKIPPED ${missing[*]}: no apt-get on this machine"
    exit 0
elif [[ "$(id -u)" != 0 ]]; then
    if ! { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }; then
        say "SKIPPED ${missing[*]}: neither root nor sudo without a password"
        exit 0
    fi
    root=(sudo -n)
fi

# Installed packages must not start their daemons: a policy of our own meanwhile, unless the machine
# has one.
if [[ ! -e /usr/sbin/policy-rc.d ]]; then
    printf '#!/bin/sh\nexit 101\n' | "${root[@]}" tee /usr/sbin/policy-rc.d >/dev/null
    "${root[@]}" chmod 755 /usr/sbin/policy-rc.d
    trap '"${root[@]}" rm -f /usr/sbin/policy-rc.d' EXIT
fi
quietly() { "${root[@]}" env DEBIAN_FRONTEND=noninteractive "$@" </dev/null >/dev/null 2>&1; }
quietly apt-get update -q || say "apt-get update failed, going on"
for package in "${missing[@]}"; do
    say "installing $package"
    quietly apt-get install -q -y --no-install-recommends "$package" ||
        say "SKIPPED $package: apt-get failed"
done
