#!/usr/bin/env bash
# boot.sh [-t SECONDS] COMMAND [ARGUMENT...]
#
# Boots the kernel of prepare.sh in qemu and runs a command there, in the present directory and with the present
# variables VERE_*, PATH and HOME. The guest sees the files of this machine; what it writes is in its memory and gone
# with it. The exit code is the command's; 124 after the time limit, 125 when the guest ends without one.
set -euo pipefail

limit=1800
if [[ "${1:-}" == -t ]]; then
    limit="$2"
    shift 2
fi
[[ $# -gt 0 ]] || { sed -n '2,6s/^# \?//p' "$0" >&2; exit 64; }

here="$(cd "$(dirname "$0")" && pwd)"
kernel="$here/../../target/test-tools/kernel-tls"
[[ -e "$kernel/vmlinuz" ]] || { echo "kernel-tls: no kernel; run scripts/kernel-tls/prepare.sh" >&2; exit 77; }

work="$(mktemp -d)"
qemu=""
# shellcheck disable=SC2317 # the trap calls it
finish() {
    if [[ -n "$qemu" ]]; then
        kill "$qemu" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap finish EXIT

# The file system that the kernel starts with.
root="$work/root"
mkdir -p "$root"/{bin,sbin,dev,proc,sys,host,new}
cp "$(command -v busybox)" "$root/bin/busybox"
for name in sh cp mount mkdir modprobe ip hostname chroot poweroff; do
    ln -s /bin/busybox "$root/bin/$name"
done
ln -s /bin/busybox "$root/sbin/modprobe"
cp -r "$kernel/lib" "$root/lib"
cp "$here/init.sh" "$root/init"
{
    echo "cd $(printf %q "$PWD") || exit 126"
    for name in PATH HOME "${!VERE_@}"; do
        printf 'export %s=%q\n' "$name" "${!name:-}"
    done
    printf 'exec'
    printf ' %q' "$@"
    echo
} >"$root/command"
(cd "$root" && find . | cpio --quiet -o -H newc) >"$work/initramfs"

: >"$work/code"
qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m "${KERNEL_TLS_MEMORY:-3072}" \
    -display none -no-reboot -nic none \
    -kernel "$kernel/vmlinuz" -initrd "$work/initramfs" \
    -append "console=ttyS0 quiet loglevel=4 panic=-1 mitigations=off lsm=landlock rdinit=/init" \
    -virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap \
    -chardev stdio,id=console,signal=off -serial chardev:console \
    -serial "file:$work/code" </dev/null &
qemu=$!
for ((second = 0; second < limit; second++)); do
    kill -0 "$qemu" 2>/dev/null || break
    sleep 1
done
if kill -0 "$qemu" 2>/dev/null; then
    echo "kernel-tls: no end within $limit seconds" >&2
    exit 124
fi
qemu=""
code="$(tr -dc 0-9 <"$work/code")"
exit "${code:-125}"
