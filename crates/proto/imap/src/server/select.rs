//! SELECT and EXAMINE (RFC 9051 sections 6.3.2 and 6.3.3, RFC 7162 sections 3.1.2 and 3.2.5).

use crate::command::{Qresync, SelectCommand};
use crate::set::UidSet;

use super::answer::{Changes, Opened};
use super::question::Question;
use super::refusal::Refusal;
use super::selected::Selected;
use super::sync::{tell_counts, tell_flags, vanished};
use super::{About, Server, Session, row};

/// A SELECT under way.
#[derive(Debug)]
pub(super) struct OpenWork {
    tag: String,
    command: SelectCommand,
}

/// The telling of what changed since the client was last here.
#[derive(Debug)]
pub(super) struct ResyncWork {
    tag: String,
    name: String,
    opened: Box<Opened>,
    known: UidSet,
}

impl Server {
    pub(super) fn select(&mut self, tag: String, command: SelectCommand) {
        if command.qresync.is_some() && !self.enabled.qresync {
            return self.bad(Some(&tag), "enable QRESYNC first");
        }
        self.enabled.condstore |= command.condstore;
        // SELECT closes the open mailbox even if SELECT fails (RFC 9051 section 6.3.2).
        if self.deselect() && (self.enabled.rev2 || self.enabled.qresync) {
            self.output
                .line("* OK [CLOSED] the mailbox before is closed");
        }
        let question = Question::Open {
            mailbox: command.mailbox.clone(),
            read_only: command.read_only,
        };
        self.ask(question, About::Open(OpenWork { tag, command }));
    }

    /// Closes the open mailbox, and returns whether a mailbox was open.
    pub(super) fn deselect(&mut self) -> bool {
        match std::mem::replace(&mut self.session, Session::NotAuthenticated) {
            Session::Selected { account, .. } => {
                self.session = Session::Authenticated { account };
                true
            }
            other => {
                self.session = other;
                false
            }
        }
    }

    /// What is open is no more, and no number means anything: the client goes on without (RFC 7162 section 3.2.11).
    pub(super) fn lose_mailbox(&mut self) {
        if self.deselect() {
            self.output.line("* OK [CLOSED] the mailbox is gone");
        }
    }

    pub(super) fn open_answered(&mut self, work: OpenWork, result: Result<Box<Opened>, Refusal>) {
        let opened = match result {
            Ok(opened) => opened,
            Err(refusal) => return self.no(work.tag, refusal),
        };
        let OpenWork { tag, command } = work;
        let selected = Selected::new(&opened, command.read_only);
        if let Session::Authenticated { account } = &mut self.session {
            self.session = Session::Selected {
                account: std::mem::take(account),
                mailbox: Box::new(selected),
            };
        }
        match command.qresync {
            Some(known) if known.uid_validity == opened.uid_validity => {
                self.ask_resync(tag, known, opened, command.mailbox);
            }
            _ => {
                self.tell_opened(&opened, &command.mailbox);
                self.opened(tag);
            }
        }
    }

    fn tell_opened(&mut self, opened: &Opened, name: &str) {
        let Session::Selected {
            mailbox: selected, ..
        } = &self.session
        else {
            return;
        };
        let output = &mut self.output;
        tell_counts(output, selected, self.enabled);
        row::known_flags(output, selected);
        let first_unseen = opened
            .first_unseen
            .and_then(|uid| selected.view.number(uid));
        if let Some(number) = first_unseen.filter(|_| !self.enabled.rev2) {
            output.line(&format!("* OK [UNSEEN {number}] the first one not seen"));
        }
        output.line(&format!(
            "* OK [UIDVALIDITY {}] UIDs are valid",
            opened.uid_validity
        ));
        output.line(&format!("* OK [UIDNEXT {}] the next UID", opened.uid_next));
        output.line(&format!(
            "* OK [HIGHESTMODSEQ {}] the last change",
            opened.mod_seq
        ));
        if self.enabled.rev2 {
            output.text("* LIST () \"/\" ");
            crate::write::mailbox(output.buffer(), name, true);
            output.line("");
        }
    }

    fn ask_resync(&mut self, tag: String, known: Qresync, opened: Box<Opened>, name: String) {
        let all = UidSet::range(1, opened.uid_next.saturating_sub(1));
        let known_uids = match known.known {
            Some(uids) => uids.intersection(&all),
            None => all,
        };
        let question = Question::Changes {
            mailbox: opened.mailbox,
            since: known.mod_seq,
            uid_next: opened.uid_next,
            // A query for old changes must not claim `\Recent`.
            read_only: true,
        };
        let work = ResyncWork {
            tag,
            name,
            opened,
            known: known_uids,
        };
        self.ask(question, About::Resync(work));
    }

    pub(super) fn resync_answered(&mut self, work: ResyncWork, result: Result<Changes, Refusal>) {
        let changes = match result {
            Ok(changes) => changes,
            Err(refusal) => {
                self.deselect();
                return self.no(work.tag, refusal);
            }
        };
        let Session::Selected { mailbox, .. } = &mut self.session else {
            return;
        };
        // Messages expunged since the mailbox was opened are left out: all reports describe one moment.
        mailbox.leave_out(&vanished(changes.gone.clone(), &mailbox.view.uids()));
        mailbox.shown(changes.mod_seq);
        self.tell_opened(&work.opened, &work.name);
        let gone = vanished(changes.gone, &work.known);
        if !gone.is_empty() {
            self.output.line(&format!("* VANISHED (EARLIER) {gone}"));
        }
        for flags in changes
            .changed
            .iter()
            .filter(|flags| work.known.contains(flags.uid))
        {
            if let Session::Selected { mailbox, .. } = &mut self.session {
                tell_flags(&mut self.output, mailbox, self.enabled, flags);
            }
        }
        self.opened(work.tag);
    }

    fn opened(&mut self, tag: String) {
        let read_only = self.selected().is_some_and(|selected| selected.read_only);
        let text = if read_only {
            "OK [READ-ONLY] mailbox open"
        } else {
            "OK [READ-WRITE] mailbox open"
        };
        self.complete(tag, text);
    }
}
