"""A name server for TXT records, at 127.0.0.1:53 of a network namespace. Argument: a file with a name and a text on each line."""

import os
import socket
import struct
import sys

records = dict(line.rstrip("\n").split(" ", 1) for line in open(sys.argv[1]))
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
server.settimeout(0.2)
open("names-ready", "w").close()
parent = os.getppid()
# The server ends with the program that asks.
while os.getppid() == parent:
    try:
        query, client = server.recvfrom(4096)
    except socket.timeout:
        continue
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode().lower())
        at += 1 + query[at]
    name, kind = ".".join(labels), query[at + 1 : at + 3]
    text = records.get(name) if kind == b"\0\x10" else None
    known = any(other == name or other.endswith("." + name) for other in records)
    answer = b""
    if text is not None:
        data = bytes([len(text)]) + text.encode()
        answer = b"\xc0\x0c" + struct.pack(">HHIH", 16, 1, 60, len(data)) + data
    flags = 0x8580 if known else 0x8583
    head = query[:2] + struct.pack(">HHHHH", flags, 1, len(answer) > 0, 0, 0)
    server.sendto(head + query[12 : at + 5] + answer, client)
