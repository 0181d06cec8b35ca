#!/usr/bin/env bash
# Works on a volume of `vere fs` on real Cyrus, Courier, Dovecot and on the store of this program: init, mount, write,
# umount, mount with nothing but the servers, read, check, gc, umount. Prints what each server does and how fast.
#
#   VERE=target/debug/vere scripts/fs-peers.sh [cyrus|courier|dovecot|vere]...
#
# Cyrus and Courier conflict with Dovecot as packages, so both are unpacked into target/test-tools and run from there; Courier
# without its login (PREAUTH). A server that cannot be had is skipped with the reason. Mounting needs root and /dev/fuse.
set -euo pipefail
cd "$(dirname "$0")/.."

tools="$PWD/target/test-tools"
vere="$(realpath "${VERE:-target/debug/vere}")"
# Octets of the large file.
size="${SIZE:-33554432}"
work="$(mktemp -d /tmp/vere-fs-peers.XXXXXX)"
chmod 755 "$work"
pids=()
point=""

say() { echo "fs-peers: $*" >&2; }
skip() { echo "fs-peers: SKIPPED $1: $2" >&2; }

clean() {
    # Whatever is left of a failed run; after a whole one there is nothing.
    [[ -z "$point" ]] || "$vere" fs umount --force "$point" >/dev/null 2>&1 || true
    for pid in "${pids[@]}"; do
        kill "$pid" 2>/dev/null || true
    done
    sleep 1
    rm -rf "$work"
}
trap clean EXIT

# A port of 127.0.0.1 without a listener.
free_port() {
    local port
    while true; do
        port=$((20000 + RANDOM % 10000))
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    done
    echo "$port"
}

wait_port() {
    local _
    for _ in {1..100}; do
        (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return 0
        sleep 0.2
    done
    return 1
}

# Unpacks packages, and the libraries that this machine lacks, into target/test-tools/NAME.
unpack() {
    local into="$tools/$1" folder
    shift
    [[ -e "$into/done" ]] && return 0
    command -v apt-get >/dev/null || return 1
    folder="$(mktemp -d)"
    if (cd "$folder" && apt-get download -q "$@" >log 2>&1); then
        mkdir -p "$into"
        for package in "$folder"/*.deb; do
            dpkg -x "$package" "$into"
        done
        touch "$into/done"
    fi
    rm -rf "$folder"
    [[ -e "$into/done" ]]
}

# Starts Cyrus; sets `port`.
start_cyrus() {
    local at="$tools/cyrus" home="$work/cyrus"
    unpack cyrus cyrus-imapd cyrus-common libical3 libclamav12 libxapian30 libzephyr4 libpq5 libwrap0 libpcre3 ||
        { skip cyrus "apt-get download failed"; return 1; }
    mkdir -p "$home"/{conf,spool,run}
    port="$(free_port)"
    cat >"$home/imapd.conf" <<CONF
configdirectory: $home/conf
partition-default: $home/spool
defaultpartition: default
cyrus_user: nobody
cyrus_group: nogroup
allowplaintext: yes
sasl_pwcheck_method: alwaystrue
sasl_mech_list: PLAIN
autocreate_quota: 0
idlesocket: $home/run/idle
lmtpsocket: $home/run/lmtp
notifysocket: $home/run/notify
duplicate_db_path: $home/run/deliver.db
mboxname_lockpath: $home/run/lock
proc_path: $home/run/proc
CONF
    cat >"$home/cyrus.conf" <<CONF
START {
  recover cmd="$at/usr/lib/cyrus/bin/ctl_cyrusdb -C $home/imapd.conf -r"
}
SERVICES {
  imap cmd="$at/usr/lib/cyrus/bin/imapd -C $home/imapd.conf" listen="127.0.0.1:$port" prefork=0 maxchild=50
}
EVENTS {
}
CONF
    chown -R nobody:nogroup "$home"
    LD_LIBRARY_PATH="$at/usr/lib/x86_64-linux-gnu:$at/lib/x86_64-linux-gnu" \
        "$at/usr/lib/cyrus/bin/master" -C "$home/imapd.conf" -M "$home/cyrus.conf" -p "$home/run/master.pid" \
        >"$home/out" 2>&1 &
    pids+=($!)
}

# Starts Courier behind its own listener, without a login: each connection is alice's.
start_courier() {
    local at="$tools/courier" home="$work/courier"
    unpack courier courier-imap courier-base courier-authlib libcourier-unicode4 gamin libgamin0 libltdl7 libidn12 libpcre3 ||
        { skip courier "apt-get download failed"; return 1; }
    mkdir -p "$home"
    port="$(free_port)"
    (
        cd "$home"
        # Debian's capabilities, without the login.
        export AUTHENTICATED=alice HOME="$home" IMAP_USELOCKS=0 IMAP_ENHANCEDIDLE=0
        export IMAP_CAPABILITY="IMAP4rev1 UIDPLUS CHILDREN NAMESPACE THREAD=ORDEREDSUBJECT THREAD=REFERENCES SORT QUOTA IDLE"
        export LD_LIBRARY_PATH="$at/usr/lib:$at/usr/lib/x86_64-linux-gnu:$at/lib/x86_64-linux-gnu"
        "$at/usr/bin/maildirmake.courier" Maildir
        # The monitor of files is looked for at a fixed place: a view of /usr/libexec that has the package as well.
        # shellcheck disable=SC2016 # The inner shell expands.
        exec unshare --mount sh -c 'mount -t overlay overlay -o "lowerdir=$0/usr/libexec:/usr/libexec" /usr/libexec && exec "$@"' \
            "$at" "$at/usr/sbin/couriertcpd" -address=127.0.0.1 -nodnslookup -noidentlookup -maxprocs=40 -maxperip=40 \
            "$port" "$at/usr/bin/imapd" Maildir
    ) >"$home/out" 2>&1 &
    pids+=($!)
}

start_dovecot() {
    local home="$work/dovecot"
    [[ -x /usr/sbin/dovecot ]] || { skip dovecot "not installed (scripts/install-test-tools.sh)"; return 1; }
    mkdir -p "$home/mail"
    chown nobody:nogroup "$home/mail"
    port="$(free_port)"
    cat >"$home/dovecot.conf" <<CONF
base_dir = $home/run
state_dir = $home/state
log_path = $home/out
protocols = imap
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
mail_location = maildir:$home/mail/%u
first_valid_uid = 1
first_valid_gid = 1
passdb {
  driver = static
  args = password=secret
}
userdb {
  driver = static
  args = uid=65534 gid=65534 home=$home/mail/home/%u
}
service imap-login {
  inet_listener imap {
    address = 127.0.0.1
    port = $port
  }
  inet_listener imaps {
    port = 0
  }
}
CONF
    /usr/sbin/dovecot -F -c "$home/dovecot.conf" >/dev/null 2>&1 &
    pids+=($!)
}

# Starts the mail store of this program.
start_vere() {
    local home="$work/vere"
    mkdir -p "$home"
    port="$(free_port)"
    cat >"$home/vere.toml" <<CONF
version = 1
hostname = "mx.example.org"
data = "data"
[smtp]
listen = ["127.0.0.1:$(free_port)"]
[lmtp]
listen = ["127.0.0.1:$(free_port)"]
[imap]
listen = ["127.0.0.1:$port"]
[auth]
plaintext_networks = ["127.0.0.0/8"]
CONF
    "$vere" serve -c "$home/vere.toml" >"$home/out" 2>&1 &
    pids+=($!)
    wait_port "$port" || return 0
    "$vere" domain add -c "$home/vere.toml" example.org >/dev/null
    echo secret | "$vere" account add -c "$home/vere.toml" alice@example.org --password-stdin >/dev/null
}

# The capabilities that `vere fs` uses, as the server announces them after the login.
capabilities() {
    local user="$1" _
    exec 3<>"/dev/tcp/127.0.0.1/$port"
    IFS= read -r -t 10 _ <&3
    printf 'a LOGIN %s secret\r\nb CAPABILITY\r\nc LOGOUT\r\n' "$user" >&3
    tr -d '\r' <&3 | grep -o -w -E 'LITERAL[+]|LITERAL-|MULTIAPPEND|UIDPLUS|COMPRESS=DEFLATE|CONDSTORE|QUOTA|IDLE|APPENDLIMIT=[0-9]+' |
        sort -u | paste -sd' '
    exec 3>&-
}

now() { date +%s%N; }

# Runs a command and sets `took` to its milliseconds.
timed() {
    local begin
    begin="$(now)"
    "$@"
    took=$((($(now) - begin) / 1000000))
}

rate() { echo "$1: $took ms, $((size * 1000 / (took + 1) / 1048576)) MiB/s"; }

write_all() {
    cp "$work/large" "$point/large"
    "$vere" fs sync home >/dev/null
}

write_small() {
    local n
    mkdir "$point/small"
    for n in {1..100}; do
        echo "$n" >"$point/small/$n"
    done
    "$vere" fs sync home >/dev/null
}

# The whole life of a volume on the server at `port`.
exercise() {
    local name="$1" user="$2" home="$work/$1-client"
    mkdir -p "$home/mnt"
    export XDG_CONFIG_HOME="$home/config" XDG_STATE_HOME="$home/state"
    point="$home/mnt"
    echo secret >"$home/password"
    echo phrase >"$home/phrase"
    echo "== $name"
    echo "capabilities: $(capabilities "$user")"
    "$vere" fs init home "imap://$user@127.0.0.1:$port/" --clear --password-file "$home/password" \
        --passphrase-file "$home/phrase" 2>&1 | grep -v '^$'
    "$vere" fs mount home "$point" --passphrase-file "$home/phrase"
    timed write_all
    rate "write and sync of one file"
    timed write_small
    echo "100 small files and sync: $took ms"
    timed "$vere" fs umount home
    echo "umount: $took ms"
    # Nothing but the servers, the description and the key slot.
    rm -rf "$home/state"
    timed "$vere" fs mount home "$point" --passphrase-file "$home/phrase"
    echo "mount without a state folder: $took ms"
    timed cmp "$work/large" "$point/large"
    rate "read and compare of one file"
    [[ "$(cat "$point/small/77")" == 77 && "$(find "$point/small" -type f | wc -l)" == 100 ]]
    rm "$point/large"
    "$vere" fs sync home >/dev/null
    "$vere" fs check home 2>&1 | tail -n 3
    "$vere" fs gc home 2>&1 | tail -n 3
    "$vere" fs umount home
    point=""
    echo "$name: whole"
}

if [[ "$(id -u)" != 0 || ! -e /dev/fuse ]]; then
    skip all "mounting needs root and /dev/fuse"
    exit 0
fi
head -c "$size" /dev/urandom >"$work/large"
failed=()
(($# > 0)) || set -- cyrus courier dovecot vere
for name in "$@"; do
    "start_$name" || continue
    if ! wait_port "$port"; then
        say "$name does not listen: $(tail -n 3 "$work/$name/out" 2>/dev/null)"
        failed+=("$name")
        continue
    fi
    user=alice
    [[ "$name" != vere ]] || user=alice@example.org
    # Not behind `||`, which would let the subshell go on after an error.
    set +e
    (
        set -e
        exercise "$name" "$user"
    )
    code=$?
    set -e
    ((code == 0)) || failed+=("$name")
done
((${#failed[@]} == 0)) || { say "failed: ${failed[*]}"; exit 1; }
