"""A milter that does what the subject says. Argument: a Unix socket."""

import os
import sys
import time

import Milter


class Filter(Milter.Base):
    def envfrom(self, path, *parameters):
        self.subject = ""
        self.date = "no date"
        self.account = self.getsymval("{auth_authen}") or "nobody"
        self.login = self.getsymval("{auth_type}") or "no login"
        return Milter.CONTINUE

    def header(self, name, value):
        if name == "Subject":
            self.subject = value
        if name == "Date":
            self.date = "a date"
        return Milter.CONTINUE

    def eom(self):
        if self.subject == "refuse":
            self.setreply("554", "5.7.1", "no")
            return Milter.REJECT
        if self.subject == "discard":
            return Milter.DISCARD
        if self.subject in ("empty", "astray"):
            self.delrcpt("<alice@example.org>")
            self.delrcpt("<bob@example.org>")
        if self.subject == "astray":
            self.addrcpt("<nobody@example.org>")
        if self.subject == "die":
            os._exit(1)
        if self.subject == "hang":
            time.sleep(30)
        if self.subject == "who":
            self.addheader("X-Who", ", ".join([self.account, self.login, self.date]))
        if self.subject == "later":
            self.setreply("451", "4.7.1", "later")
            return Milter.TEMPFAIL
        if self.subject == "change":
            self.addheader("X-Milter", "seen")
            self.addrcpt("<bob@example.org>")
            self.addrcpt("<nobody@example.org>")
            self.delrcpt("<alice@example.org>")
            self.chgfrom("<other@good.test>")
            self.replacebody(b"another text\r\n")
        return Milter.CONTINUE


Milter.factory = Filter
Milter.set_flags(Milter.ADDHDRS + Milter.CHGBODY + Milter.ADDRCPT + Milter.DELRCPT + Milter.CHGFROM)
Milter.runmilter("test", sys.argv[1], 60)
