#!/bin/sh
# The first process of the guest: this machine's files below a layer in memory, loopback, TLS in the kernel, and the
# command. Its exit code goes to the second serial line.
mount -t devtmpfs none /dev
mount -t proc none /proc
mount -t sysfs none /sys
for module in virtio_pci 9pnet_virtio 9p overlay tls; do
    modprobe "$module" || echo "kernel-tls: $module cannot be loaded"
done
mount -t 9p -o ro,trans=virtio,version=9p2000.L,cache=loose,msize=512000 host /host
mount -t tmpfs -o size=75% none /new
mkdir /new/upper /new/work /new/root
mount -t overlay -o lowerdir=/host,upperdir=/new/upper,workdir=/new/work none /new/root
for place in proc sys dev; do
    mount --bind "/$place" "/new/root/$place"
done
mkdir -p /new/root/dev/shm /new/root/dev/pts
mount -t tmpfs none /new/root/dev/shm
mount -t devpts none /new/root/dev/pts
mount -t tmpfs none /new/root/run
ip link set lo up
hostname guest.example.org
mkdir -p /new/root/kernel-tls
cp /command /new/root/kernel-tls/command
chroot /new/root /bin/bash /kernel-tls/command
echo $? >/dev/ttyS1
poweroff -f
