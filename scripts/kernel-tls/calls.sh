#!/usr/bin/env bash
# calls.sh VERE
#
# Counts the system calls of front and worker for one encrypted session of 20 messages of 10 KB, first with TLS by
# the kernel and then by threads. VERE is the program. `boot.sh calls.sh VERE` counts under Debian's kernel.
set -euo pipefail

[[ $# == 1 ]] || { sed -n '2,5s/^# \?//p' "$0" >&2; exit 64; }
vere="$1"
work="$(mktemp -d)"
server=""
finish() {
    if [[ -n "$server" ]]; then
        kill "$server" 2>/dev/null || true
        wait "$server" || true
    fi
    rm -rf "$work"
}
trap finish EXIT

# Runs a command until it succeeds; 120 failures end the script.
until_so() {
    local second
    for ((second = 0; second < 120; second++)); do
        "$@" >/dev/null 2>&1 && return 0
        sleep 0.5
    done
    echo "calls.sh: expected success of: $*" >&2
    tail -n 20 "$work/log" >&2
    return 1
}

# The client: a session of so many messages.
cat >"$work/send.py" <<'PYTHON'
import smtplib, ssl, sys
context = ssl.create_default_context(cafile=sys.argv[1])
context.check_hostname = False
text = "Subject: calls\r\n\r\n" + ("0123456789" * 7 + "\r\n") * 142
with smtplib.SMTP("127.0.0.1", 2525) as client:
    client.starttls(context=context)
    for _ in range(int(sys.argv[2])):
        client.sendmail("me@example.net", ["alice@example.org"], text)
    print("sent with", client.sock.version())
PYTHON
send() { /usr/bin/python3 "$work/send.py" "$work/certificate.pem" "$1"; }

# Prints the process of a role whose parent is given.
pid_of() { pgrep -P "$2" -f "role $1" | head -n 1; }

# Whether no thread of a process is without a tracer.
is_traced() { ! grep -q '^TracerPid:[[:space:]]*0$' "/proc/$1/task/"*/status; }

# Starts to count the calls of a process under a name.
trace() {
    strace -f -c -S calls -U calls,name -o "$work/$1" -p "$2" 2>/dev/null &
    tracers+=($!)
    until_so is_traced "$2"
}

# Writes the settings, with a value of front.kernel_tls.
settings() {
    cat >"$work/vere.toml" <<TOML
version = 1
hostname = "mx.example.org"
data = "data"
[smtp]
listen = ["127.0.0.1:2525"]
[submission]
listen = []
[lmtp]
listen = []
[delivery]
local = "maildir"
[tls]
certificate = "$work/certificate.pem"
key = "$work/key.pem"
[front]
workers = 1
banner_delay = "0s"
greylist = "off"
spf = "off"
kernel_tls = "$1"
TOML
}

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=mx.example.org \
    -keyout "$work/key.pem" -out "$work/certificate.pem" 2>/dev/null

settings on
"$vere" domain add example.org -c "$work/vere.toml" >/dev/null
echo "a long password" | "$vere" account add alice@example.org --password-stdin -c "$work/vere.toml" >/dev/null

for setting in on off; do
    settings "$setting"
    "$vere" serve -c "$work/vere.toml" >"$work/log" 2>&1 &
    server=$!
    # The first session starts what later ones find started.
    until_so send 1
    keeper="$(pid_of workers "$server")"
    tracers=()
    trace front "$(pid_of front "$server")"
    trace worker "$(pid_of worker "$keeper")"
    echo "== kernel_tls = $setting: $(send 20)"
    kill "${tracers[@]}"
    wait "${tracers[@]}" || true
    for process in front worker; do
        echo "-- $process"
        cat "$work/$process"
    done
    kill "$server"
    wait "$server" || true
    server=""
done
