# Signs messages by dkimpy, changes them, and prints each with dkimpy's own verdict.
import base64
import random
import subprocess
import sys

import dkim
import nacl.signing

random.seed(6376)


def rsa(bits):
    private = subprocess.run(["openssl", "genrsa", "-traditional", str(bits)], check=True, capture_output=True).stdout
    public = subprocess.run(
        ["openssl", "rsa", "-pubout", "-outform", "DER"], input=private, check=True, capture_output=True
    ).stdout
    return private, b"v=DKIM1; k=rsa; p=" + base64.b64encode(public)


seed = bytes(range(32))
public = bytes(nacl.signing.SigningKey(seed).verify_key)
keys = {
    "rsa2048": rsa(2048),
    "rsa1024": rsa(1024),
    "rsa3072": rsa(3072),
    "ed25519": (base64.b64encode(seed), b"v=DKIM1; k=ed25519; p=" + base64.b64encode(public)),
}
records = {f"{name}._domainkey.example.org": record for name, (_, record) in keys.items()}
for name, record in records.items():
    print("record", name, record.hex())


def texts(name, timeout=5):
    return records.get(name.decode().rstrip(".") if isinstance(name, bytes) else name.rstrip("."))


def dkim_valid(message):
    try:
        return dkim.verify(message, dnsfunc=texts)
    except dkim.DKIMException:
        return False


def arc_valid(message):
    try:
        return dkim.arc_verify(message, dnsfunc=texts)[0] == dkim.CV_Pass
    except dkim.DKIMException:
        return False


def show(kind, message):
    valid = dkim_valid(message) if kind == "dkim" else arc_valid(message)
    print(kind, int(bool(valid)), message.hex())


HEADER = (
    b"Received: from a by b; Fri, 11 Jul 2003 21:00:37 -0700\r\n"
    b"From: Joe <joe@example.org>\r\n"
    b"To: Suzie Q\r\n\t<suzie@example.net>\r\n"
    b"Subject: Is  dinner ready? \r\n"
    b"Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)\r\n"
    b"Message-ID: <1@example.org>\r\n"
)
BODIES = [
    b"",
    b"\r\n",
    b"\r\n\r\n",
    b"Hi.\r\n\r\nWe lost  the game. \t\r\n \r\nJoe.\r\n",
    b"No end",
    b"Blank lines\r\n\r\n\r\n",
    b"8 bit \xc3\xbc \xff\r\n.\r\n",
    b" \t leading\r\n",
]
FORMS = [(a, b) for a in (b"simple", b"relaxed") for b in (b"simple", b"relaxed")]


def changed(message):
    """Versions of a message, some of which canonicalization makes equal."""
    head, body = message.split(b"\r\n\r\n", 1)
    yield head.replace(b"dinner", b"Dinner") + b"\r\n\r\n" + body
    yield head.replace(b"Is  dinner", b"Is\r\n dinner") + b"\r\n\r\n" + body
    yield head.replace(b"Subject:", b"SUBJECT :") + b"\r\n\r\n" + body
    yield head + b"\r\n\r\n" + body + b"\r\n\r\n"
    yield head + b"\r\n\r\n" + body.replace(b"lost  the", b"lost the")
    yield head + b"\r\n\r\n" + body.replace(b"Joe", b"Jane")
    yield head + b"\r\nX-Added: below\r\n\r\n" + body
    yield b"X-Added: above\r\n" + message
    yield head + b"\r\nSubject: another\r\n\r\n" + body
    lines = head.split(b"\r\n")
    for _ in range(6):
        at = random.randrange(len(head))
        if head[at : at + 1].isalnum():
            yield head[:at] + bytes([head[at] ^ 1]) + head[at + 1 :] + b"\r\n\r\n" + body


for form in FORMS:
    for selector, (private, _) in keys.items():
        algorithm = b"ed25519-sha256" if selector == "ed25519" else b"rsa-sha256"
        for body in BODIES if selector in ("rsa1024", "ed25519") else BODIES[3:4]:
            message = HEADER + b"\r\n" + body
            field = dkim.sign(
                message,
                selector.encode(),
                b"example.org",
                private,
                canonicalize=form,
                signature_algorithm=algorithm,
                include_headers=[b"from", b"to", b"subject", b"date", b"message-id", b"from"],
            )
            signed = field + message
            show("dkim", signed)
            if body == BODIES[3]:
                for other in changed(signed):
                    show("dkim", other)

for selector in ("rsa1024", "rsa2048"):
    message = HEADER + b"\r\n" + BODIES[3]
    private = keys[selector][0]
    for number in range(1, 6):
        host = b"mx%d.example.org" % number
        chain = b"none" if number == 1 else b"pass"
        message = b"Authentication-Results: " + host + b"; arc=%s; spf=pass smtp.mailfrom=joe@example.org\r\n" % chain + message
        fields = dkim.arc_sign(message, selector.encode(), b"example.org", private, host, timestamp=1_700_000_000 + number)
        message = b"".join(fields) + message
        show("arc", message)
        for other in changed(message):
            show("arc", other)
        if number > 1:
            cut = message.index(b"ARC-Seal: i=1")
            show("arc", message[:cut] + message[cut:].replace(b"cv=none", b"cv=pass", 1))
