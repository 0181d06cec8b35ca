//! COPY, MOVE (RFC 6851), EXPUNGE and CLOSE.

use crate::set::SequenceSet;

use super::answer::Copied;
use super::question::Question;
use super::refusal::Refusal;
use super::{About, Server};

/// A COPY or MOVE under way.
#[derive(Debug)]
pub(super) struct CopyWork {
    tag: String,
    remove: bool,
}

impl Server {
    pub(super) fn copy(
        &mut self,
        tag: String,
        uid: bool,
        set: &SequenceSet,
        target: String,
        remove: bool,
    ) {
        let Some(selected) = self.selected() else {
            return;
        };
        if remove && selected.read_only {
            return self.complete(tag, "NO [NOPERM] the mailbox was opened to be read only");
        }
        let Some(uids) = selected.resolve(set, uid) else {
            return self.bad(Some(&tag), "there is no message of this number");
        };
        let question = Question::Copy {
            mailbox: selected.key,
            uids,
            target,
            remove,
        };
        self.ask(question, About::Copy(CopyWork { tag, remove }));
    }

    pub(super) fn copy_answered(&mut self, work: CopyWork, result: Result<Copied, Refusal>) {
        let copied = match result {
            Ok(copied) => copied,
            Err(refusal) => return self.no(work.tag, refusal),
        };
        // The target may be the open mailbox.
        if let Some(selected) = self.selected() {
            selected.dirty = true;
        }
        if copied.to.is_empty() {
            return self.complete(work.tag, "OK nothing to copy");
        }
        let code = format!(
            "[COPYUID {} {} {}]",
            copied.uid_validity, copied.from, copied.to
        );
        if work.remove {
            // Before the messages go, so that the client can tell where to (RFC 6851 section 4.3).
            self.output.line(&format!("* OK {code} moved"));
            self.complete_removal(work.tag, "OK done");
        } else {
            self.complete(work.tag, &format!("OK {code} copied"));
        }
    }

    pub(super) fn expunge(&mut self, tag: String, set: Option<&SequenceSet>) {
        let Some(selected) = self.selected() else {
            return;
        };
        if selected.read_only {
            return self.complete(tag, "NO [NOPERM] the mailbox was opened to be read only");
        }
        let uids = set.map(|set| selected.resolve(set, true).unwrap_or_default());
        let question = Question::Expunge {
            mailbox: selected.key,
            uids,
        };
        self.ask(question, About::Expunge { tag, close: false });
    }

    /// CLOSE: removes without telling, and nothing is open any more (RFC 9051 section 6.4.1).
    pub(super) fn close_mailbox(&mut self, tag: String) {
        let Some(selected) = self.selected() else {
            return;
        };
        if selected.read_only {
            self.deselect();
            return self.complete(tag, "OK mailbox closed");
        }
        let question = Question::Expunge {
            mailbox: selected.key,
            uids: None,
        };
        self.ask(question, About::Expunge { tag, close: true });
    }

    pub(super) fn expunge_answered(
        &mut self,
        tag: String,
        close: bool,
        result: Result<(), Refusal>,
    ) {
        if let Err(refusal) = result {
            return self.no(tag, refusal);
        }
        if close {
            self.deselect();
            return self.complete(tag, "OK mailbox closed");
        }
        if let Some(selected) = self.selected() {
            selected.dirty = true;
        }
        self.complete_removal(tag, "OK done");
    }
}
