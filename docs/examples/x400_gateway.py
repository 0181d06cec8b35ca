#!/usr/bin/env python3
"""A gateway of the X.400 MTA of vere, in Python without packages (docs/internals/attach.md).

It attaches under a name of the settings ([[x400.gateway]]), prints each message, report and probe, and answers that
all recipients got it. A real gateway would give the message to its own network here, and answer when that network
has it.

    x400_gateway.py /var/lib/vere/x400/attach.sock aftn
    x400_gateway.py /var/lib/vere/x400/attach.sock aftn --count 1 --reply "Received, thank you."
"""

import argparse
import json
import re
import socket
import sys
import unicodedata

LINE_OCTETS_MAX = 256 * 1024


class Refused(Exception):
    """The MTA ended the connection."""


class Connection:
    """Frames: a line of JSON, an object with one field, and as many octets behind it as the field `octets` has."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(path)
        self.input = self.socket.makefile("rb")

    def write(self, kind, value, octets=None):
        if octets is not None:
            value = dict(value, octets=len(octets))
        line = json.dumps({kind: value}).encode()
        self.socket.sendall(line + b"\n" + (octets or b""))

    def read(self):
        """The kind, the value and the octets of the next frame; None at the end of the connection."""
        line = self.input.readline(LINE_OCTETS_MAX + 1)
        if not line:
            return None
        [(kind, value)] = json.loads(line).items()
        count = value.get("octets", 0)
        octets = self.input.read(count)
        if len(octets) < count:
            raise Refused("the MTA closed the connection amid a frame")
        if kind == "refused" and "tag" not in value:
            raise Refused(value["error"])
        return kind, value, octets


# BER: a value is a tag, a length and a content.

CONSTRUCTED = 0x20


def header(octets, at):
    """The first octet of the tag, the number of the tag, the beginning and the end of the content; the end is None for
    a length that is not given."""
    first, at = octets[at], at + 1
    number = first & 0x1F
    if number == 0x1F:
        number = 0
        while True:
            octet, at = octets[at], at + 1
            number = number << 7 | octet & 0x7F
            if not octet & 0x80:
                break
    length, at = octets[at], at + 1
    if length == 0x80:
        return first, number, at, None
    if length > 0x80:
        count = length & 0x7F
        length, at = int.from_bytes(octets[at : at + count], "big"), at + count
    if at + length > len(octets):
        raise ValueError("a value longer than its surroundings")
    return first, number, at, at + length


def value(octets, at, depth=0):
    """A value as (first octet, number, children or octets), and the place behind it."""
    if depth > 64:
        raise ValueError("values too deep within each other")
    first, number, at, end = header(octets, at)
    if not first & CONSTRUCTED:
        if end is None:
            raise ValueError("a value without a length")
        return (first, number, octets[at:end]), end
    children = []
    while at != end:
        if end is None and octets[at : at + 2] == b"\0\0":
            return (first, number, children), at + 2
        child, at = value(octets, at, depth + 1)
        children.append(child)
    return (first, number, children), at


def find(children, tag):
    """The first child with this first octet, whatever its form, or None."""
    return next((child for child in children if child[0] & ~CONSTRUCTED == tag & ~CONSTRUCTED), None)


def string(one):
    """The octets of a string, which may come in pieces."""
    content = one[2]
    return content if isinstance(content, bytes) else b"".join(string(piece) for piece in content)


# Of T.61, the set of TeletexString: accents, which stand before their letters, and letters of their own.
ACCENTS = dict(zip(b"\xc1\xc2\xc3\xc4\xc5\xc6\xc7\xc8\xca\xcb\xcd\xce\xcf", "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u0327\u030b\u0328\u030c"))
LETTERS = dict(zip(b"\xe1\xe8\xe9\xea\xf1\xf8\xf9\xfa\xfb", "ÆŁØŒæłøœß"))


def teletex(octets):
    """The text of a TeletexString; other letters as in ISO 8859-1."""
    text, accent = [], ""
    for octet in octets:
        if octet in ACCENTS:
            accent = ACCENTS[octet]
        else:
            text.append(LETTERS.get(octet, chr(octet)) + accent)
            accent = ""
    return unicodedata.normalize("NFC", "".join(text))


OCTET_STRING, GENERAL_STRING = 0x04, 0x1B
MESSAGE = IPM = IA5_TEXT = 0xA0
SUBJECT, EXTENDED = 0xA8, 0xAF


def general_text(children):
    """The text of the first GeneralString at any depth, without the sequences that name its character sets; or None."""
    for first, _, content in children:
        if first & ~CONSTRUCTED == GENERAL_STRING:
            return re.sub(rb"\x1b[ -/]*.", b"", string((first, 0, content)), flags=re.DOTALL).decode("latin-1")
        found = None if isinstance(content, bytes) else general_text(content)
        if found is not None:
            return found
    return None


def content_of(apdu):
    """The content of a message: `[0] SEQUENCE { envelope SET, content OCTET STRING }`; None for a report or a probe."""
    (first, _, children), _ = value(apdu, 0)
    return string(find(children, OCTET_STRING)) if first == MESSAGE else None


def interpersonal(content):
    """Subject and texts of an interpersonal message: `[0] SEQUENCE { heading SET, body SEQUENCE OF BodyPart }`."""
    (first, _, parts), _ = value(content, 0)
    if first != IPM:
        raise ValueError("no interpersonal message")
    heading, body = parts[0][2], parts[1][2]
    subject = find(heading, SUBJECT)
    subject = teletex(string(subject[2][0])) if subject else ""
    texts = []
    for kind, number, part in body:
        text = None
        if kind == IA5_TEXT:
            text = string(part[-1]).decode("ascii", "replace")
        elif kind == EXTENDED:
            text = general_text(part)
        texts.append(f"(a body part of type {number})" if text is None else text)
    return subject, texts


def show(deliver, apdu):
    """Prints a delivery, and gives the subject."""
    print(f"{deliver['kind']} {deliver['identifier']} ({deliver['trace']})")
    print(f"  from {deliver.get('originator', '(a report)')}")
    for recipient in deliver["recipients"]:
        print(f"  to {recipient['address']}")
    subject = ""
    try:
        content = content_of(apdu)
        if content is None:
            print(f"  {len(apdu)} octets")
        elif deliver.get("content_type") in ("2", "22"):
            subject, texts = interpersonal(content)
            print(f"  subject {subject}")
            for line in "\n".join(texts).splitlines():
                print(f"  | {line}")
        else:
            print(f"  content {content.hex()}")
    except (ValueError, IndexError, TypeError) as error:
        print(f"  cannot read: {error}; {apdu.hex()}")
    return subject


def reply(connection, tag, deliver, subject, text):
    """Submits an answer to the originator, from the first recipient."""
    message = {
        "originator": deliver["recipients"][0]["address"],
        "recipients": [deliver["originator"]],
        "subject": f"Re: {subject}".encode("latin-1", "replace").decode("latin-1")[:128],
        "priority": deliver.get("priority", "normal"),
    }
    connection.write("submit", {"tag": tag, "message": message}, text.encode())


def serve(connection, arguments):
    """Takes deliveries until there were enough of them and all replies have their answers."""
    connection.write("attach", {"version": 1, "name": arguments.name})
    delivered, waiting = 0, set()
    while arguments.count is None or delivered < arguments.count or waiting:
        frame = connection.read()
        if frame is None:
            raise Refused("the MTA closed the connection")
        kind, value, octets = frame
        if kind == "attached":
            print(f"attached to {value['mta']} in {value['domain']}")
        elif kind == "deliver":
            subject = show(value, octets)
            if arguments.reply and value["kind"] == "message":
                tag = value["id"]
                waiting.add(tag)
                reply(connection, tag, value, subject, arguments.reply)
            connection.write("done", {"id": value["id"], "result": "delivered"})
            delivered += 1
        elif kind == "submitted":
            waiting.discard(value["tag"])
            print(f"submitted {value['identifier']} ({value['id']})")
        elif kind == "refused":
            waiting.discard(value["tag"])
            print(f"not submitted: {value['error']}", file=sys.stderr)
        sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description="Attach to the X.400 MTA of vere as a gateway.")
    parser.add_argument("socket", help="the socket of the MTA (x400.socket)")
    parser.add_argument("name", help="the name of the gateway in the settings")
    parser.add_argument("--reply", metavar="TEXT", help="answer each message with this text")
    parser.add_argument("--count", type=int, metavar="N", help="end after N deliveries")
    arguments = parser.parse_args()
    try:
        serve(Connection(arguments.socket), arguments)
    except (Refused, OSError, ValueError) as error:
        sys.exit(f"x400_gateway: {error}")


if __name__ == "__main__":
    main()
