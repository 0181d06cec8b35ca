#!/usr/bin/env bash
# Gets what boot.sh needs: qemu from apt, and Debian's kernel, unpacked into target/test-tools/kernel-tls. A kernel
# is never installed. What cannot be had is named with the reason, and the exit code is 77: skipped.
set -euo pipefail
cd "$(dirname "$0")/../.."

into="$PWD/target/test-tools/kernel-tls"

say() { echo "kernel-tls: $*" >&2; }
skip() {
    say "SKIPPED: $*"
    exit 77
}

# Installs the package of a missing program.
need() {
    local program="$1" package="$2"
    PATH="$PATH:/usr/sbin:/sbin" command -v "$program" >/dev/null && return 0
    command -v apt-get >/dev/null || skip "no $program, and no apt-get on this machine"
    local root=()
    if [[ "$(id -u)" != 0 ]]; then
        if ! sudo -n true 2>/dev/null; then
            skip "no $program, and neither root nor sudo without a password"
        fi
        root=(sudo -n)
    fi
    say "installing $package"
    "${root[@]}" apt-get update -q >/dev/null 2>&1 || say "apt-get update failed, going on"
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -q -y --no-install-recommends "$package" </dev/null >/dev/null 2>&1 ||
        skip "apt-get cannot install $package"
}

[[ "$(uname -m)" == x86_64 ]] || skip "expected x86_64; found $(uname -m)"
need qemu-system-x86_64 qemu-system-x86
need busybox busybox-static
need cpio cpio
need depmod kmod

[[ -e "$into/vmlinuz" ]] && exit 0
if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
    skip "no kernel: no apt-get on this machine"
fi
package="$(apt-cache depends linux-image-amd64 2>/dev/null | awk '/Depends: linux-image/ { print $2; exit }')"
[[ -n "$package" ]] || skip "apt-get knows no linux-image-amd64"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
say "unpacking $package into target/test-tools/kernel-tls"
(cd "$work" && apt-get download -q "$package" >/dev/null 2>&1) || skip "apt-get cannot download $package"
dpkg -x "$work"/*.deb "$work/all"

# What the guest loads, with the files that modprobe finds modules by.
version="$(basename "$work"/all/boot/vmlinuz-* | sed 's/^vmlinuz-//')"
modules="lib/modules/$version"
rm -rf "$into"
mkdir -p "$into/$modules/kernel"
for part in arch/x86/crypto crypto drivers/virtio fs/9p fs/fscache fs/netfs fs/overlayfs lib net/9p net/tls; do
    mkdir -p "$into/$modules/kernel/$(dirname "$part")"
    cp -r "$work/all/$modules/kernel/$part" "$into/$modules/kernel/$part"
done
cp "$work/all/$modules"/modules.{builtin,order} "$into/$modules"
PATH="$PATH:/usr/sbin:/sbin" depmod -b "$into" "$version"
# Last, since it says that all is there.
cp "$work/all/boot/vmlinuz-$version" "$into/vmlinuz"
