#!/usr/bin/env bash
# Measures the CPU time of the gateway's process, and of couriers, for each relayed message: with the front and without,
# with couriers and without, clear and by TLS to the next hop, with 100 messages over a connection and with one.
#
#     scripts/measure-couriers.sh [FOLDER OF vere AND vere-bench [MESSAGES]]
#
# Two systems on ports of 127.0.0.1: one receives and relays, the next hop relays to a sink. The messages have 2.8 KB. CPU times
# come from /proc/PID/stat, so that other programs of the machine disturb them little. Takes four minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

programs=$(realpath "${1:-target/release}")
messages=${2:-6000}
folder=$(mktemp -d)
started=()
finish() {
    for process in "${started[@]}"; do kill "$process" 2>/dev/null || true; done
    wait
    rm -rf "$folder"
}
trap finish EXIT
cd "$folder"

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -out cert.pem \
    -days 30 -subj /CN=next.test 2>/dev/null

# settings NAME PORT NEXT_PORT LINES_OF_DELIVERY LINES_OF_ROUTE FURTHER_SECTIONS
settings() {
    rm -rf "$1" && mkdir "$1"
    cat >"$1/vere.toml" <<END
version = 1
hostname = "$1.test"
data = "data"
[smtp]
listen = ["127.0.0.1:$2"]
[relay]
networks = ["127.0.0.0/8"]
[lmtp]
listen = []
[control]
socket = "$folder/$1/control.sock"
[log]
level = "warn"
[tls]
certificate = "$folder/cert.pem"
key = "$folder/key.pem"
[[spool.node]]
name = "a"
listen = "127.0.0.1:$(($2 + 1))"
[delivery]
local = "maildir"
$4
$6
[[route]]
domain = "*"
next_hop = "127.0.0.1:$3"
$5
END
}

serve() {
    (cd "$1" && exec "$programs/vere" serve -c vere.toml >log 2>&1) &
    started+=($!)
}

# The processes of a role below a supervisor.
processes() {
    local process
    for process in $(pgrep -P "$1"); do
        if tr '\0' ' ' <"/proc/$process/cmdline" | grep -q "role $2"; then echo "$process"; fi
    done
}

ticks() {
    local sum=0 process
    for process in "$@"; do sum=$((sum + $(awk '{print $14 + $15}' "/proc/$process/stat"))); done
    echo "$sum"
}

waiting() {
    "$programs/vere" queue list -c relay/vere.toml --json | python3 -c '
import json, sys
print(sum(queue["messages"] for queue in json.load(sys.stdin)))'
}

cat >load.py <<'END'
import smtplib, sys, threading
port, messages, sessions = map(int, sys.argv[1:])
body = "Subject: measured\r\n\r\n" + ("y" * 70 + "\r\n") * 38
def send():
    for begin in range(0, messages // sessions, 900):
        with smtplib.SMTP("127.0.0.1", port) as session:
            for number in range(begin, min(begin + 900, messages // sessions)):
                session.sendmail("a@sender.test", [f"b{number}@next.test"], body)
threads = [threading.Thread(target=send) for _ in range(sessions)]
for thread in threads: thread.start()
for thread in threads: thread.join()
END

# one TLS MESSAGES_OVER_A_CONNECTION COURIERS FURTHER_SECTIONS NAME
one() {
    settings relay 35250 35350 "messages_per_connection_max = $2
courier_processes = $3" "tls = \"$1\"" "$4"
    settings next 35350 35450 "" "" ""
    started=()
    "$programs/vere-bench" sink --listen 127.0.0.1:35450 >/dev/null 2>&1 &
    started+=($!)
    serve next
    serve relay
    local gateway couriers before
    until python3 -c 'import smtplib; smtplib.SMTP("127.0.0.1", 35250); smtplib.SMTP("127.0.0.1", 35350)' 2>/dev/null; do
        sleep 0.2
    done
    read -r -a gateway <<<"$(processes "${started[2]}" gateway | xargs)"
    read -r -a couriers <<<"$(processes "${started[2]}" courier | xargs)"
    before=("$(ticks "${gateway[@]}")" "$(ticks "${couriers[@]}")")
    python3 load.py 35250 "$messages" 6
    while [[ "$(waiting)" -gt 0 ]]; do sleep 0.2; done
    local tick=$((1000000 / $(getconf CLK_TCK)))
    printf '%-8s %-14s %18s %9s %9s us %9s us\n' "$5" "$1" "$2" "$3" \
        $((($(ticks "${gateway[@]}") - before[0]) * tick / messages)) \
        $((($(ticks "${couriers[@]}") - before[1]) * tick / messages))
    local process
    for process in "${started[2]}" "${started[1]}" "${started[0]}"; do
        kill "$process"
        wait "$process" || true
    done
    started=()
}

printf '%-8s %-14s %18s %9s %12s %12s\n' intake "tls to next" "over a connection" couriers gateway "all couriers"
front='[front]
banner_delay = "0s"
connections_per_minute = 0'
for intake in gateway front; do
    for tls in off opportunistic; do
        for over in 100 1; do
            for couriers in 0 2; do
                sections=""
                if [[ $intake == front ]]; then sections=$front; fi
                one "$tls" "$over" "$couriers" "$sections" "$intake"
            done
        done
    done
done
