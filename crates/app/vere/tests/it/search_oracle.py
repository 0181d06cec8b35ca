"""What a search must find, by Python's email package, beside what the store finds.

    search_oracle.py vectors FILE
    search_oracle.py fill ADDRESS MAILBOX MESSAGES      (each: four octets of length, low first, and itself)
    search_oracle.py ask ADDRESS MAILBOX QUERIES SEED   (messages are fetched, so nothing is remembered)
    search_oracle.py churn ADDRESS MAILBOX OTHER SEED   (expunges a fifth, moves a tenth)

It ends with 1 and says what differs. docs/internals/search.md has the rules.
"""

import binascii
import datetime
import email
import email.errors
import email.header
import random
import re
import socket
import struct
import sys
import time
import unicodedata
from bisect import bisect_right

ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
NO_BASE64 = bytes(octet for octet in range(256) if octet not in ALPHABET + b"=")
# Where the label means more than what Python takes it for (the Encoding Standard).
CODECS = {
    "iso-8859-1": "cp1252", "iso8859-1": "cp1252", "latin1": "cp1252", "windows-1252": "cp1252",
    "gb2312": "gb18030", "gbk": "gb18030", "euc-kr": "cp949", "ks_c_5601-1987": "cp949",
    "shift_jis": "cp932", "iso-8859-9": "cp1254", "big5": "big5hkscs", "iso-8859-11": "cp874",
}
ASCII = ("us-ascii", "ascii", "ansi_x3.4-1968", "iso-ir-6")
OWN_ZONES = {"from": "From", "to": "To", "cc": "Cc", "bcc": "Bcc", "subject": "Subject"}
MAPPED = {}


def decompose(character):
    """As far as UnicodeData.txt goes, nothing put in another order."""
    fields = unicodedata.decomposition(character).split()
    if not fields:
        # Syllables of Hangul are not in the table.
        return unicodedata.normalize("NFKD", character)
    return "".join(decompose(chr(int(field, 16))) for field in fields if field[0] != "<")


def casemap(text):
    """i;unicode-casemap (RFC 5051)."""
    if text.isascii():
        return text.upper()
    out = []
    for character in text:
        mapped = MAPPED.get(character)
        if mapped is None:
            title = character.title()
            mapped = decompose(title if len(title) == 1 else character)
            MAPPED[character] = mapped
        out.append(mapped)
    return "".join(out)


def in_cp1252(octets):
    """What the code page does not assign is a control character."""
    try:
        return octets.decode("cp1252")
    except UnicodeDecodeError:
        return "".join(
            chr(octet) if octet in (0x81, 0x8D, 0x8F, 0x90, 0x9D) else bytes([octet]).decode("cp1252")
            for octet in octets)


def in_charset(octets, charset):
    name = (charset or "us-ascii").strip().lower().replace("_", "-")
    name = {"shift-jis": "shift_jis", "ks-c-5601-1987": "ks_c_5601-1987"}.get(name, name)
    if name not in ASCII:
        codec = CODECS.get(name, name)
        if codec == "cp1252":
            return in_cp1252(octets)
        try:
            return octets.decode(codec, "replace")
        except (LookupError, ValueError):
            pass
    try:
        return octets.decode("utf-8")
    except UnicodeDecodeError:
        return in_cp1252(octets)


def from_base64(octets):
    octets = octets.translate(None, NO_BASE64)
    at = octets.find(b"=")
    while at >= 0:
        if len(octets[:at].replace(b"=", b"")) % 4 >= 2:
            octets = octets[:at]
            break
        at = octets.find(b"=", at + 1)
    octets = octets.replace(b"=", b"")
    if len(octets) % 4 == 1:
        octets = octets[:-1]
    return binascii.a2b_base64(octets + b"=" * (-len(octets) % 4))


def from_codes(octets):
    return re.sub(rb"=([0-9A-Fa-f]{2})", lambda code: bytes([int(code[1], 16)]), octets)


def from_quoted_printable(octets):
    octets = re.sub(rb"[ \t]+(?=\r?\n|\Z)", b"", octets)
    return from_codes(re.sub(rb"=\r?\n", b"", octets))


def raw(text):
    return text.encode("utf-8", "surrogateescape")


def of_field(value):
    """The value of a field: unfolded, encoded words undone."""
    line = re.sub(r"[\r\n]", "", value).strip(" \t\x0c")
    text, run, at = [], None, 0

    def flush():
        nonlocal run
        if run:
            text.append(in_charset(run[1], run[0]))
        run = None

    for word in email.header.ecre.finditer(line):
        between = line[at:word.start()]
        at = word.end()
        charset = word["charset"].split("*")[0].lower()
        encoded = raw(word["encoded"])
        if word["encoding"] in "bB":
            octets = from_base64(encoded)
        else:
            octets = from_codes(encoded.replace(b"_", b" "))
        joined = run is not None and not between.strip(" \t")
        if joined and run[0] == charset:
            run = (charset, run[1] + octets)
            continue
        flush()
        if not joined and between:
            text.append(in_charset(raw(between), None))
        run = (charset, octets)
    flush()
    if line[at:]:
        text.append(in_charset(raw(line[at:]), None))
    return "".join(text)


# Quoted strings, comments (which may lie within each other), and every other character for itself.
QUOTED = re.compile(r'"((?:\\.|[^"\\])*)(?:"|\\?\Z)', re.DOTALL)


def behind_comment(line, at):
    depth = 0
    while at < len(line):
        if line[at] == "\\":
            at += 1
        elif line[at] == "(" and depth < 32:
            depth += 1
        elif line[at] == ")":
            depth -= 1
            if not depth:
                return at + 1
        at += 1
    return len(line)


def pieces(line):
    """What a list of addresses is made of: where each piece ends, and its kind and text."""
    at = 0
    while at < len(line):
        if line[at] == '"':
            match = QUOTED.match(line, at)
            at = match.end()
            yield at, "word", re.sub(r"\\(.)", r"\1", match[1], flags=re.DOTALL)
        elif line[at] == "(":
            at = behind_comment(line, at)
            yield at, "blank", ""
        else:
            at += 1
            blank = line[at - 1] in " \t"
            yield at, "blank" if blank else line[at - 1] if line[at - 1] in "<>@:;," else "word", line[at - 1]


def respelled(line):
    """mailbox@host of each address of a list that does not have it written in one piece."""
    found, start, group = [], 0, False
    bare, angle, closed, blank = "", None, False, False

    def finish(end):
        nonlocal bare, angle, closed, blank, start
        text = bare if angle is None else angle
        if text or angle is not None:
            mailbox, _, host = text.rpartition("\0")
            spelled = mailbox.replace("\0", "@") + "@" + host.replace("\0", "@")
            if "\0" in text and host and spelled not in line[start:end]:
                found.append(spelled)
            start = end
        bare, angle, closed, blank = "", None, False, False

    # An `@` that is not in quotes is NUL, until it is known which of them is the last.
    for end, kind, text in pieces(line):
        if kind == "," and not (angle is not None and not closed and angle[:1] == "\0") or kind == ";" and group:
            finish(end)
            if kind == ";":
                group, start = False, end
        elif kind == ":" and angle is None:
            bare, blank, group, start = "", False, True, end
        elif closed:
            continue
        elif kind == "blank":
            blank = True
        elif angle is not None:
            if kind == ">":
                closed = True
            else:
                angle = "" if kind == ":" else angle + ("\0" if kind == "@" else text)
        elif kind == "<":
            angle = ""
        elif kind == "@":
            bare, blank = bare + "\0", False
        elif text:
            bare += " " * (blank and bare[-1:] not in ("", "\0")) + text
            blank = False
    finish(len(line))
    return found


def texts_of(octets):
    """The texts of a message: zone and text, in any case."""
    message = email.message_from_bytes(octets)
    fields, own, bodies = [], [], []

    def visit(part, root):
        for name, value in part.raw_items():
            value = value if isinstance(value, str) else str(value)
            text = of_field(value)
            fields.append(("Header", name.rstrip(" \t") + ": " + text))
            zone = OWN_ZONES.get(name.rstrip(" \t").lower())
            if root and zone:
                own.append((zone, text))
                if zone != "Subject":
                    line = re.sub(r"[\r\n]", "", value).strip(" \t\x0c")
                    own.extend((zone, in_charset(raw(address), None)) for address in respelled(line))
        kind, subtype = part.get_content_maintype(), part.get_content_subtype()
        encoding = str(part.get("content-transfer-encoding", "")).split(";")[0].strip().lower()
        encoded = encoding in ("base64", "quoted-printable")
        if part.is_multipart():
            if kind == "multipart" or subtype in ("rfc822", "global") and not encoded:
                for child in part.get_payload():
                    visit(child, False)
        elif kind in ("text", "multipart"):
            # get_payload() would decode it.
            body = raw(part._payload or "")
            if encoding == "base64":
                body = from_base64(body)
            elif encoding == "quoted-printable":
                body = from_quoted_printable(body)
            charset = part.get_param("charset")
            bodies.append(("Body", in_charset(body, charset if isinstance(charset, str) else None)))

    visit(message, True)
    return fields + own + bodies


def is_misread(octets):
    """Whether Python ends a header at a line that it does not know, and we do not."""
    for part in email.message_from_bytes(octets).walk():
        if any(isinstance(defect, email.errors.MissingHeaderBodySeparatorDefect) for defect in part.defects):
            return True
    return False


def header_fields(octets):
    return [(name.rstrip(" \t").lower(), of_field(str(value)))
            for name, value in email.message_from_bytes(octets).raw_items()]


class Imap:
    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=120)
        self.file = self.socket.makefile("rb")
        self.count = 0
        self.file.readline()
        self.command(b"LOGIN alice@example.org secret")

    def command(self, *parts):
        """Sends a command, literals between its parts; gives its untagged lines with their literals."""
        self.count += 1
        tag = b"t%d" % self.count
        line = tag + b" " + parts[0]
        for number, part in enumerate(parts[1:]):
            if number % 2 == 0:
                self.socket.sendall(line + b"{%d}\r\n" % len(part))
                answer = self.file.readline()
                assert answer.startswith(b"+"), answer
                line = part
            else:
                line += part
        self.socket.sendall(line + b"\r\n")
        said = []
        while True:
            line = self.file.readline()
            if line.startswith(tag + b" "):
                assert line.startswith(tag + b" OK"), (parts[0][:200], line)
                return said
            assert line, "connection closed"
            literal = re.search(rb"\{(\d+)\}\r\n\Z", line)
            said.append((line, self.file.read(int(literal[1])) if literal else b""))

    def search(self, *parts):
        """Asks twice: the second time is answered out of what is remembered, where that is so."""
        found = self.search_once(*parts)
        again = self.search_once(*parts)
        if again != found:
            raise AssertionError(f"asked again: {parts} {sorted(found ^ again)[:5]}")
        return again

    def search_once(self, *parts):
        said = self.command(b"UID SEARCH CHARSET UTF-8 " + parts[0], *parts[1:])
        lines = [line for line, _ in said if line.startswith(b"* SEARCH")]
        return {int(uid) for line in lines for uid in line.split()[2:]}


class Haystack:
    """Texts of many messages, one after the other."""

    def __init__(self):
        self.parts, self.starts, self.uids, self.len = [], [], [], 0

    def add(self, uid, text):
        octets = casemap(text).encode("utf-8", "replace")
        self.starts.append(self.len)
        self.uids.append(uid)
        self.parts.append(octets)
        self.len += len(octets) + 1

    def close(self):
        self.parts = b"\xff".join(self.parts)
        self.starts.append(self.len)

    def find(self, text):
        needle, found, at = casemap(text).encode("utf-8"), set(), 0
        if "\ufffd" in text:
            return found
        while True:
            at = self.parts.find(needle, at)
            if at < 0:
                return found
            number = bisect_right(self.starts, at) - 1
            found.add(self.uids[number])
            at = self.starts[number + 1]


class Oracle:
    ZONES = ("Body", "Header", "From", "To", "Cc", "Bcc", "Subject")

    def __init__(self, messages):
        self.aside = {uid for uid in messages if is_misread(messages[uid])}
        self.uids = sorted(set(messages) - self.aside)
        self.stacks = {zone: Haystack() for zone in self.ZONES}
        self.named = {}
        self.messages = messages
        for uid in self.uids:
            for zone, text in texts_of(messages[uid]):
                self.stacks[zone].add(uid, text)
            for name, text in header_fields(messages[uid]):
                self.named.setdefault(name, Haystack()).add(uid, text)
        for stack in [*self.stacks.values(), *self.named.values()]:
            stack.close()

    def find(self, key, text):
        if key == "BODY":
            return self.stacks["Body"].find(text)
        if key == "TEXT":
            return self.stacks["Body"].find(text) | self.stacks["Header"].find(text)
        if key.startswith("HEADER "):
            stack = self.named.get(key[7:].lower())
            return stack.find(text) if stack else set()
        return self.stacks[key.title()].find(text)


LENGTHS = (1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30, 39, 40, 41, 45, 60, 100, 300, 1000)
NAMES = ("Received", "Message-ID", "X-Mailer", "Content-Type", "Reply-To", "Delivered-To")


def draw(oracle, dice):
    """A key and a text that is in some message, whole words, parts of them or phrases."""
    key = dice.choice(("BODY", "BODY", "TEXT", "TEXT", "FROM", "TO", "CC", "SUBJECT", "HEADER"))
    texts = texts_of(oracle.messages[dice.choice(oracle.uids)])
    if key == "HEADER":
        key = "HEADER " + dice.choice(NAMES)
        texts = [text.split(": ", 1)[-1] for zone, text in texts if zone == "Header"]
    else:
        zones = {"BODY": ("Body",), "TEXT": ("Body", "Header")}.get(key, (key.title(),))
        texts = [text for zone, text in texts if zone in zones]
    texts = [text for text in texts if text]
    if not texts:
        return None
    text = dice.choice(texts)
    # Where words are not of ASCII is looked at more often than chance would.
    odd = [at for at, character in enumerate(text) if ord(character) > 127] if dice.random() < 0.3 else []
    length = dice.choice(LENGTHS)
    at = max(0, dice.choice(odd) - dice.randrange(length)) if odd else dice.randrange(len(text))
    needle = text[at:at + length]
    if dice.random() < 0.25:
        words = text.split()
        at = dice.randrange(len(words)) if words else 0
        needle = " ".join(words[at:at + dice.randrange(1, 4)])
    if dice.random() < 0.1 and needle:
        at = dice.randrange(len(needle))
        needle = needle[:at] + dice.choice("QXZ\u017eq7") + needle[at + 1:]
    needle = dice.choice((str, str.lower, str.upper, str.swapcase))(needle)
    if not needle or "\x00" in needle or any(0xD800 <= ord(one) < 0xE000 for one in needle):
        return None
    return key, needle


FLAGS = ("\\Seen", "\\Flagged", "\\Answered", "\\Deleted", "\\Draft", "Work", "$Forwarded")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
DATE = re.compile(
    r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), )?(\d{1,2}) (%s) (\d{4}) (\d\d):(\d\d)(?::(\d\d))? ([+-]\d{4}|GMT)"
    % "|".join(MONTHS))


def sent_on(octets):
    """The day of Date as it is written, if there is one about which nobody can be of two minds."""
    dates = [value for name, value in email.message_from_bytes(octets).raw_items() if name.strip().lower() == "date"]
    if not dates:
        return None, True
    found = DATE.fullmatch(str(dates[0]).strip()) if len(dates) == 1 else None
    # The year 0102 is what a program wrote that counts from 1900.
    if not found or found[3] < "1900" or found[4] > "23" or found[5] > "59" or (found[6] or "00") > "59":
        return None, False
    try:
        return datetime.date(int(found[3]), MONTHS.index(found[2]) + 1, int(found[1])), True
    except ValueError:
        return None, False


class Rows:
    """What a mailbox knows of its messages beside their texts."""

    def __init__(self, rows, messages, aside):
        self.aside, self.unsure = aside, set(aside)
        self.flags, self.came, self.size, self.sent = {}, {}, {}, {}
        for uid, line in rows.items():
            self.flags[uid] = set(re.search(r"FLAGS \(([^)]*)\)", line)[1].lower().split())
            came = re.search(r'INTERNALDATE "([ \d]\d)-(\w{3})-(\d{4}) (\d\d):(\d\d):(\d\d) \+0000"', line)
            self.came[uid] = datetime.datetime(
                int(came[3]), MONTHS.index(came[2]) + 1, int(came[1]), int(came[4]), int(came[5]), int(came[6]))
            self.size[uid] = int(re.search(r"RFC822\.SIZE (\d+)", line)[1])
            assert self.size[uid] == len(messages[uid]), (uid, self.size[uid], len(messages[uid]))
            self.sent[uid], sure = sent_on(messages[uid])
            if not sure:
                self.unsure.add(uid)

    def those(self, fits):
        return {uid for uid in self.flags if fits(uid)}

    def draw(self, dice):
        """A key, the messages that fit, and those of which it is not known."""
        uid = dice.choice(sorted(self.flags))
        kind = dice.choice(("came", "sent", "sent", "size", "flag", "flag", "age"))
        if kind == "came":
            day = self.came[uid].date() + datetime.timedelta(days=dice.choice((-1, 0, 0, 1)))
            return self.by_day(dice, ("SINCE", "BEFORE", "ON"), day, {uid: came.date() for uid, came in self.came.items()}, self.aside)
        if kind == "sent":
            day = self.sent[uid]
            if not day:
                return None
            day += datetime.timedelta(days=dice.choice((-1, 0, 0, 1)))
            return self.by_day(dice, ("SENTSINCE", "SENTBEFORE", "SENTON"), day, self.sent, self.unsure)
        if kind == "size":
            size = max(0, self.size[uid] + dice.choice((-1, 0, 1)))
            if dice.random() < 0.5:
                return "LARGER %d" % size, self.those(lambda uid: self.size[uid] > size), self.aside
            return "SMALLER %d" % size, self.those(lambda uid: self.size[uid] < size), self.aside
        if kind == "flag":
            flag = dice.choice(FLAGS)
            has = self.those(lambda uid: flag.lower() in self.flags[uid])
            key = flag[1:].upper() if flag[0] == "\\" else "KEYWORD " + flag
            if dice.random() < 0.5:
                return key, has, self.aside
            return "UN" + key, set(self.flags) - has, self.aside
        # Time goes on meanwhile: nothing may be about so old.
        now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
        age = {uid: max(0, int((now - came).total_seconds())) for uid, came in self.came.items()}
        span = age[uid] + dice.choice((-7200, 7200))
        if not 0 < span < 1 << 32 or any(abs(own - span) < 3600 for own in age.values()):
            return None
        if dice.random() < 0.5:
            return "OLDER %d" % span, self.those(lambda uid: age[uid] >= span), self.aside
        return "YOUNGER %d" % span, self.those(lambda uid: age[uid] <= span), self.aside

    def by_day(self, dice, names, day, days, aside):
        key = dice.choice(names)
        fits = {
            "SINCE": lambda own: own >= day, "BEFORE": lambda own: own < day, "ON": lambda own: own == day,
        }[key.removeprefix("SENT")]
        text = "%s %d-%s-%04d" % (key, day.day, MONTHS[day.month - 1], day.year)
        return text, self.those(lambda uid: days[uid] is not None and fits(days[uid])), aside


def joined(*parts):
    """Parts of commands one behind the other: text, literal, text, and so on."""
    all = [b""]
    for part in parts:
        all[-1] += part[0]
        all.extend(part[1:])
    return all


def combined(oracle, rows, dice, depth):
    """Several keys as one: parts of the command, what fits, and what is not known."""
    kind = dice.choice(("and", "or", "not", "row", "row", "text")) if depth else dice.choice(("row", "row", "text"))
    if kind == "row":
        while not (drawn := rows.draw(dice)):
            pass
        return [drawn[0].encode()], *drawn[1:]
    if kind == "text":
        while not (drawn := draw(oracle, dice)):
            pass
        key, text = parts_of(*drawn)
        return [key, text, b""], oracle.find(*drawn), rows.aside
    one, hits, aside = combined(oracle, rows, dice, depth - 1)
    if kind == "not":
        return joined([b"NOT "], one), set(rows.flags) - hits, aside
    other, more, beside = combined(oracle, rows, dice, depth - 1)
    if kind == "or":
        return joined([b"OR "], one, [b" "], other), hits | more, aside | beside
    return joined([b"("], one, [b" "], other, [b")"]), hits & more, aside | beside


def ask_rows(imap, oracle, rows, count, dice):
    """Dates, sizes and flags, alone and together with texts."""
    wrong, some = 0, 0
    for number in range(count):
        parts, hits, aside = combined(oracle, rows, dice, number % 4)
        found = imap.search(*parts) - aside
        hits = hits - aside
        some += bool(hits) and len(hits) < len(rows.flags)
        if found != hits:
            wrong += 1
            print("differs:", parts, "missing", sorted(hits - found)[:5], len(hits - found),
                  "too many", sorted(found - hits)[:5], len(found - hits), flush=True)
    print(f"  {count} of dates, sizes and flags, alone and combined, {some} with some and not all,"
          f" {len(rows.unsure)} dates set aside, {wrong} differences")
    return wrong


def band(share):
    for number, least in enumerate((0.3, 0.03, 0.005, 1e-9)):
        if share >= least:
            return ("50 %", "10 %", "1 %", "0.1 %")[number]
    return "0"


def parts_of(key, text):
    return key.encode() + b" ", text.encode("utf-8")


def fetch_all(imap):
    messages, rows = {}, {}
    for line, octets in imap.command(b"UID FETCH 1:* (UID FLAGS INTERNALDATE RFC822.SIZE BODY.PEEK[])"):
        uid = re.search(rb"UID (\d+)", line)
        if uid and octets:
            messages[int(uid[1])] = octets
            rows[int(uid[1])] = line.decode("ascii")
    return messages, rows


# What clients ask for to show a list of messages.
LISTS = (
    b"FROM TO SUBJECT DATE",
    b"Date From Sender Subject To Cc Message-ID References Content-Type In-Reply-To Reply-To List-Post X-Label",
    b"references",
    b"Bcc Importance Keywords List-Id List-Unsubscribe MIME-Version Newsgroups Precedence Priority X-Mailer X-Priority",
)


def lists(imap):
    """Fields of headers as the index has them, and with one that it has not, so that messages are read."""
    wrong = 0
    for fields in LISTS:
        kept, read = (
            {int(re.search(rb"UID (\d+)", line)[1]): octets
             for line, octets in imap.command(b"UID FETCH 1:* (UID BODY.PEEK[HEADER.FIELDS (%s)])" % asked) if octets}
            for asked in (fields, fields + b" X-In-No-Message-At-All")
        )
        differ = [uid for uid in kept.keys() | read.keys() if kept.get(uid) != read.get(uid)]
        wrong += len(differ)
        if differ or not kept:
            print("fields differ:", fields, sorted(differ)[:5], len(kept), flush=True)
            wrong += not kept
    return wrong


def ask(address, mailbox, count, seed):
    imap = Imap(address)
    imap.command(b"SELECT " + mailbox.encode())
    messages, rows = fetch_all(imap)
    unlike = lists(imap)
    began = time.time()
    oracle = Oracle(messages)
    dice = random.Random(seed)
    made = time.time() - began
    wrong, bands, times, asked, tries = unlike, {}, {}, 0, 0
    before = None
    while asked < count and tries < count * 60:
        tries += 1
        drawn = draw(oracle, dice)
        if not drawn:
            continue
        expected = oracle.find(*drawn)
        own = band(len(expected) / max(1, len(messages)))
        # Rare texts are the most common to be drawn.
        if bands.get(own, 0) > count // 5:
            continue
        bands[own] = bands.get(own, 0) + 1
        asked += 1
        cases = [(parts_of(*drawn), expected)]
        if before and dice.random() < 0.3:
            (other, more) = before
            cases.append(((b"(" + other[0], other[1], b" " + cases[0][0][0], cases[0][0][1], b")"), expected & more))
            cases.append(((b"OR " + other[0], other[1], b" " + cases[0][0][0], cases[0][0][1]), expected | more))
            cases.append(((b"NOT " + cases[0][0][0], cases[0][0][1]), set(oracle.uids) - expected))
        before = cases[0]
        for command, hits in cases:
            began = time.time()
            found = imap.search(*command) - oracle.aside
            times.setdefault((own, len(cases)), []).append(time.time() - began)
            if found != hits:
                wrong += 1
                print("differs:", command, "missing", sorted(hits - found)[:5], len(hits - found),
                      "too many", sorted(found - hits)[:5], len(found - hits), flush=True)
    print(f"{mailbox}: {len(messages)} messages ({len(oracle.aside)} set aside), {asked} texts (seed {seed}), {wrong} differences; by band {bands};"
          f" read by the oracle in {made:.1f} s")
    wrong += ask_rows(imap, oracle, Rows(rows, messages, oracle.aside), count, dice)
    for (own, cases), taken in sorted(times.items()):
        taken.sort()
        if cases == 1:
            print(f"  band {own}: median {taken[len(taken) // 2] * 1000:.1f} ms, most {taken[-1] * 1000:.1f} ms")
    return wrong


def fill(address, mailbox, path):
    imap = Imap(address)
    imap.command(b"CREATE " + mailbox.encode())
    began, count, dice = time.time(), 0, random.Random(1)

    def append(message):
        flags = " ".join(flag for flag in FLAGS if dice.random() < 0.3)
        came = datetime.datetime(1955, 1, 1) + datetime.timedelta(seconds=dice.randrange(90 * 365 * 86_400))
        date = "%2d-%s-%d %s +0000" % (came.day, MONTHS[came.month - 1], came.year, came.time())
        imap.command(b"APPEND %s (%s) \"%s\" " % (mailbox.encode(), flags.encode(), date.encode()), message)

    with open(path, "rb") as file:
        while head := file.read(4):
            append(file.read(struct.unpack("<I", head)[0]))
            count += 1
    for year in range(1955, 1975):
        date = "%d %s %d 00:30:00 +0100" % (dice.randrange(1, 29), dice.choice(MONTHS), year)
        append(b"Date: %s\r\nSubject: old\r\n\r\nOf %d.\r\n" % (date.encode(), year))
    print(f"{count} messages in {time.time() - began:.1f} s")
    return 0


def churn(address, mailbox, other, seed):
    imap = Imap(address)
    imap.command(b"CREATE " + other.encode())
    imap.command(b"SELECT " + mailbox.encode())
    uids = sorted(imap.search(b"ALL"))
    dice = random.Random(seed)
    dice.shuffle(uids)
    gone, moved = uids[:len(uids) // 5], uids[len(uids) // 5:len(uids) * 3 // 10]
    imap.command(b"UID STORE " + b",".join(b"%d" % uid for uid in gone) + b" +FLAGS.SILENT (\\Deleted)")
    imap.command(b"EXPUNGE")
    imap.command(b"UID MOVE " + b",".join(b"%d" % uid for uid in moved) + b" " + other.encode())
    return 0


def vectors(path):
    def octets(text):
        text = re.sub(r"\\x([0-9a-f]{2})", lambda code: chr(0xDC00 + int(code[1], 16)), text)
        return text.encode("utf-8", "surrogateescape")

    def characters(text):
        text = text.replace("\\r", "\r").replace("\\n", "\n")
        return re.sub(r"\\u([0-9A-F]{4})", lambda code: chr(int(code[1], 16)), text)

    wrong = 0
    with open(path, encoding="utf-8") as file:
        blocks = file.read().split("\n%%\n")
    for block in blocks:
        lines = block.lstrip("\n").split("\n")
        while lines and (lines[0].startswith("#") or not lines[0]):
            lines.pop(0)
        if not lines:
            continue
        at = lines.index("--")
        message = octets("\r\n".join(lines[:at]))
        expected = [tuple(line.split("|", 1)) for line in lines[at + 1:]]
        expected = sorted((zone, characters(text)) for zone, text in expected)
        found = sorted((zone, casemap(text)) for zone, text in texts_of(message))
        if found != expected:
            wrong += 1
            print("differs:", lines[0], *(set(found) ^ set(expected)), sep="\n  ")
    print(f"{len(blocks) - 1} vectors, {wrong} differ")
    return wrong


def main():
    action, *arguments = sys.argv[1:]
    sys.setrecursionlimit(5000)
    if action == "vectors":
        return vectors(*arguments)
    if action == "fill":
        return fill(*arguments)
    if action == "churn":
        return churn(arguments[0], arguments[1], arguments[2], int(arguments[3]))
    return ask(arguments[0], arguments[1], int(arguments[2]), int(arguments[3]))


sys.exit(1 if main() else 0)
