#!/usr/bin/env bash
# Installs the servers that the benchmarks compare with, as far as this machine allows: Postfix,
# memcached, Redis, Dovecot, rbldnsd, rspamd. Cyrus and Courier, whose packages exclude Dovecot's, are unpacked into a
# folder of their own and not installed. What cannot be had is named with the reason; its rows are
# then missing.
set -euo pipefail

say() { echo "install-bench-peers: $*" >&2; }

# Where `vere bench store` looks for what is unpacked.
peers="${VERE_BENCH_PEERS:-/usr/local/lib/vere-bench-peers}"

missing=()
for pair in postfix:postfix memcached:memcached redis-server:redis-server dovecot:dovecot-imapd \
    /usr/lib/dovecot/lmtp:dovecot-lmtpd rbldnsd:rbldnsd rspamd:rspamd; do
    PATH="$PATH:/usr/sbin:/sbin" command -v "${pair%%:*}" >/dev/null || missing+=("${pair##*:}")
done
# Folder, and the packages that are unpacked into it.
unpacked=()
[[ -e "$peers/cyrus/complete" ]] || unpacked+=("cyrus cyrus-imapd sasl2-bin")
[[ -e "$peers/courier/complete" ]] || unpacked+=("courier courier-imap")
[[ ${#missing[@]} -eq 0 && ${#unpacked[@]} -eq 0 ]] && exit 0

root=()
if ! command -v apt-get >/dev/null; then
    say "SKIPPED ${missing[*]} ${unpacked[*]}: no apt-get on this machine"
    exit 0
elif [[ "$(id -u)" != 0 ]]; then
    if ! { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }; then
        say "SKIPPED ${missing[*]} ${unpacked[*]}: neither root nor sudo without a password"
        exit 0
    fi
    root=(sudo -n)
fi

# Installed packages must not start their daemons: a policy of our own meanwhile, unless the machine
# has one.
if [[ ${#missing[@]} -gt 0 && ! -e /usr/sbin/policy-rc.d ]]; then
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

# Downloads packages, with all they need that is not installed, and unpacks them into a folder.
unpack() {
    local folder="$peers/$1" archives
    shift
    archives="$(mktemp -d)"
    "${root[@]}" mkdir -p "$folder" "$archives/partial"
    if quietly apt-get install -q -y --no-install-recommends --download-only \
        -o "Dir::Cache::archives=$archives" "$@"; then
        for archive in "$archives"/*.deb; do
            "${root[@]}" dpkg-deb -x "$archive" "$folder"
        done
        "${root[@]}" touch "$folder/complete"
    else
        say "SKIPPED $*: apt-get failed"
    fi
    "${root[@]}" rm -rf "$archives"
}
for line in "${unpacked[@]}"; do
    say "unpacking $line"
    # shellcheck disable=SC2086 # the folder and the packages are words of the line
    unpack $line
done
