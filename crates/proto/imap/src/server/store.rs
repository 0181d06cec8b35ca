//! STORE (RFC 9051 section 6.4.6, RFC 7162 section 3.1.3).

use crate::command::StoreCommand;

use super::answer::FlagsChanged;
use super::question::{Question, StoreQuery};
use super::refusal::Refusal;
use super::sync::{tell_flags, tell_mod_seq};
use super::{About, Server, Session};

/// A STORE under way.
#[derive(Debug)]
pub(super) struct StoreWork {
    tag: String,
    uid: bool,
    silent: bool,
    conditional: bool,
}

impl Server {
    pub(super) fn store(&mut self, tag: String, command: StoreCommand) {
        if command.unchanged_since.is_some() {
            self.want_mod_seqs();
        }
        let Some(selected) = self.selected() else {
            return;
        };
        if selected.read_only {
            return self
                .complete_numbered(tag, "NO [NOPERM] the mailbox was opened to be read only");
        }
        let Some(uids) = selected.resolve(&command.set, command.uid) else {
            return self.bad(Some(&tag), "there is no message of this number");
        };
        let query = StoreQuery {
            mailbox: selected.key,
            uids,
            action: command.action,
            flags: command.flags,
            unchanged_since: command.unchanged_since,
        };
        let work = StoreWork {
            tag,
            uid: command.uid,
            silent: command.silent,
            conditional: command.unchanged_since.is_some(),
        };
        self.ask(Question::Store(query), About::Store(work));
    }

    pub(super) fn store_answered(
        &mut self,
        work: StoreWork,
        result: Result<FlagsChanged, Refusal>,
    ) {
        let done = match result {
            Ok(done) => done,
            Err(refusal) => return self.no(work.tag, refusal),
        };
        let Session::Selected { mailbox, .. } = &mut self.session else {
            return;
        };
        mailbox.dirty |= !done.changed.is_empty();
        for flags in &done.rows {
            mailbox.told(flags);
            mailbox.shown(flags.mod_seq);
            if !work.silent {
                tell_flags(&mut self.output, mailbox, self.enabled, flags);
            } else if self.enabled.condstore && done.changed.contains(flags.uid) {
                tell_mod_seq(&mut self.output, mailbox, flags.uid, flags.mod_seq);
            }
        }
        let modified = if work.uid {
            done.modified
        } else {
            mailbox.view.numbers(&done.modified)
        };
        let text = if work.conditional && !modified.is_empty() {
            format!("OK [MODIFIED {modified}] some had changed since")
        } else {
            "OK done".to_owned()
        };
        if work.uid {
            self.complete(work.tag, &text);
        } else {
            self.complete_numbered(work.tag, &text);
        }
    }
}
