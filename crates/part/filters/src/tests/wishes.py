"""A milter that does what the subject says. Arguments: a Unix socket."""

import sys

import Milter


class Filter(Milter.Base):
    def __init__(self):
        self.id = Milter.uniqueID()

    def connect(self, name, family, address):
        self.seen = "%s %s %s" % (name, address[0], self.getsymval("j"))
        return Milter.CONTINUE

    def hello(self, name):
        self.seen += " " + name
        return Milter.CONTINUE

    def envfrom(self, path, *parameters):
        self.subject = ""
        self.size = 0
        self.seen += " " + path
        return Milter.CONTINUE

    def envrcpt(self, path, *parameters):
        self.seen += " " + path
        if path == "<refused@d.example>":
            self.setreply("550", "5.1.1", "not here")
            return Milter.REJECT
        return Milter.CONTINUE

    def header(self, name, value):
        if name == "Subject":
            self.subject = value
        return Milter.CONTINUE

    def eoh(self):
        return Milter.CONTINUE

    def body(self, chunk):
        self.size += len(chunk)
        return Milter.CONTINUE

    def eom(self):
        if self.subject == "reject":
            self.setreply("554", "5.7.1", "first", "100%% no")
            return Milter.REJECT
        if self.subject == "defer":
            return Milter.TEMPFAIL
        if self.subject == "discard":
            return Milter.DISCARD
        if self.subject == "quarantine":
            self.quarantine("to be looked at")
            return Milter.CONTINUE
        if self.subject == "die":
            sys.stdout.flush()
            import os
            os._exit(1)
        if self.subject == "change":
            self.progress()
            self.addheader("X-Seen", "%s %d" % (self.seen, self.size))
            self.addheader("X-Folded", "one\n\ttwo", 0)
            self.chgheader("X-A", 2, "changed")
            self.chgheader("x-b", 1, "")
            self.chgheader("X-New", 5, "added")
            self.addrcpt("<new@d.example>")
            self.delrcpt("<e@d.example>")
            self.chgfrom("<other@b.example>")
            self.replacebody(b"new body\r\n" * 20000)
        return Milter.CONTINUE


Milter.factory = Filter
Milter.set_flags(
    Milter.ADDHDRS + Milter.CHGHDRS + Milter.CHGBODY + Milter.ADDRCPT + Milter.DELRCPT
    + Milter.QUARANTINE + Milter.CHGFROM
)
Milter.runmilter("test", sys.argv[1], 60)
