//! Reports changes of the open mailbox to the client, in the permitted places (RFC 9051 sections 5.2 and
//! 7.5).

use crate::ModSeq;
use crate::set::UidSet;

use super::answer::{Changes, FlagsOf, Gone};
use super::output::Output;
use super::question::Question;
use super::refusal::Refusal;
use super::row;
use super::selected::{Selected, from};
use super::{About, Enabled, Phase, Server, Session};

/// The work after the report.
#[derive(Debug)]
pub(super) struct SyncWork {
    then: Then,
    /// Whether message numbers may change.
    may_expunge: bool,
}

#[derive(Debug)]
enum Then {
    /// End a command.
    Complete {
        tag: String,
        text: String,
        /// Whether the number of the last change is told with it (RFC 7162 section 3.2.7).
        mod_seq: bool,
    },
    /// Wait on.
    Idle(String),
}

impl SyncWork {
    pub(super) fn idle(tag: String) -> Self {
        Self {
            then: Then::Idle(tag),
            may_expunge: true,
        }
    }

    fn complete(tag: String, text: &str, may_expunge: bool) -> Self {
        Self {
            then: Then::Complete {
                tag,
                text: text.to_owned(),
                mod_seq: false,
            },
            may_expunge,
        }
    }
}

impl Server {
    /// Ends a command, behind what the client has to be told.
    pub(super) fn complete(&mut self, tag: String, text: &str) {
        self.sync(SyncWork::complete(tag, text, true));
    }

    /// Ends a command that must not change message numbers.
    pub(super) fn complete_numbered(&mut self, tag: String, text: &str) {
        self.sync(SyncWork::complete(tag, text, false));
    }

    /// Ends a command that expunged messages, and reports the mod-sequence of the change.
    pub(super) fn complete_removal(&mut self, tag: String, text: &str) {
        let mod_seq = self.enabled.condstore;
        self.sync(SyncWork {
            then: Then::Complete {
                tag,
                text: text.to_owned(),
                mod_seq,
            },
            may_expunge: true,
        });
    }

    /// Begins to idle.
    pub(super) fn idle(&mut self, tag: String) {
        self.sync(SyncWork::idle(tag));
    }

    pub(super) fn sync(&mut self, work: SyncWork) {
        if let Session::Selected { mailbox, .. } = &mut self.session {
            if mailbox.dirty {
                mailbox.dirty = false;
                let question = Question::Changes {
                    mailbox: mailbox.key,
                    since: mailbox.mod_seq,
                    uid_next: mailbox.uid_next,
                    read_only: mailbox.read_only,
                };
                return self.ask(question, About::Sync(work));
            }
            if work.may_expunge {
                tell_gone(&mut self.output, mailbox, self.enabled);
            }
        }
        self.synced(work);
    }

    pub(super) fn sync_answered(&mut self, work: SyncWork, result: Result<Changes, Refusal>) {
        match (result, &mut self.session) {
            (Ok(changes), Session::Selected { mailbox, .. }) => {
                tell(
                    &mut self.output,
                    mailbox,
                    self.enabled,
                    work.may_expunge,
                    changes,
                );
            }
            (Err(Refusal::Gone), _) => {
                // The command succeeded all the same; the command itself may have removed the mailbox.
                self.lose_mailbox();
                return self.synced(work);
            }
            // The next command asks for changes again.
            (Err(_), Session::Selected { mailbox, .. }) => mailbox.dirty = true,
            _ => {}
        }
        let again = matches!(work.then, Then::Idle(_));
        match self.selected() {
            Some(selected) if selected.dirty && again => self.sync(work),
            _ => self.synced(work),
        }
    }

    fn synced(&mut self, work: SyncWork) {
        match work.then {
            Then::Idle(tag) => self.phase = Phase::Idle(tag),
            Then::Complete { tag, text, mod_seq } => {
                let number = self.selected().map(|selected| selected.mod_seq);
                match number.filter(|_| mod_seq) {
                    Some(number) => {
                        let rest = text.strip_prefix("OK ").unwrap_or(&text);
                        self.output
                            .line(&format!("{tag} OK [HIGHESTMODSEQ {number}] {rest}"));
                    }
                    None => self.output.line(&format!("{tag} {text}")),
                }
            }
        }
    }
}

/// Takes changes over, and tells the client.
fn tell(
    output: &mut Output,
    selected: &mut Selected,
    enabled: Enabled,
    may_expunge: bool,
    changes: Changes,
) {
    let before = selected.view.last();
    let gone = match changes.gone {
        Gone::These(uids) => uids.intersection(&selected.view.uids()),
        Gone::AllBut(uids) => selected.view.uids().difference(&uids),
    };
    selected.gone.extend_from(&gone);
    if may_expunge {
        tell_gone(output, selected, enabled);
    }
    let added = from(&changes.added, before.saturating_add(1));
    if !added.is_empty() {
        selected.view.append(&added);
        selected
            .recent
            .extend_from(&from(&added, changes.recent_from));
        tell_counts(output, selected, enabled);
    }
    let own = std::mem::take(&mut selected.own);
    for flags in &changes.changed {
        let known = own.get(&flags.uid) == Some(&flags.mod_seq);
        // The flags of new messages still have to be fetched.
        if !known && flags.uid <= before {
            tell_flags(output, selected, enabled, flags);
        }
    }
    selected.mod_seq = changes.mod_seq.max(selected.mod_seq);
    selected.uid_next = changes.uid_next.max(selected.uid_next);
}

/// Reports expunged messages, which shifts the numbers of later messages.
fn tell_gone(output: &mut Output, selected: &mut Selected, enabled: Enabled) {
    let gone = std::mem::take(&mut selected.gone);
    if gone.is_empty() {
        return;
    }
    if enabled.qresync {
        output.line(&format!("* VANISHED {gone}"));
    } else {
        // From the end, so that the numbers of the remaining messages do not shift.
        for number in selected.view.numbers(&gone).iter().rev() {
            output.line(&format!("* {number} EXPUNGE"));
        }
    }
    selected.view.remove(&gone);
    selected.recent = selected.recent.difference(&gone);
    selected.saved = selected.saved.difference(&gone);
}

/// Tells how many messages there are.
pub(super) fn tell_counts(output: &mut Output, selected: &Selected, enabled: Enabled) {
    output.line(&format!("* {} EXISTS", selected.view.len()));
    if !enabled.rev2 {
        output.line(&format!("* {} RECENT", selected.recent.len()));
    }
}

/// Reports the flags of a message in view.
pub(super) fn tell_flags(
    output: &mut Output,
    selected: &mut Selected,
    enabled: Enabled,
    flags: &FlagsOf,
) {
    let Some(number) = selected.view.number(flags.uid) else {
        return;
    };
    row::announce(output, selected, &flags.flags);
    output.text(&format!("* {number} FETCH (UID {} FLAGS ", flags.uid));
    row::flags(output, selected, enabled, flags);
    if enabled.condstore {
        output.text(&format!(" MODSEQ ({})", flags.mod_seq));
    }
    output.line(")");
}

/// Tells the number of the last change of a message, but not its flags.
pub(super) fn tell_mod_seq(output: &mut Output, selected: &Selected, uid: u32, mod_seq: ModSeq) {
    if let Some(number) = selected.view.number(uid) {
        output.line(&format!("* {number} FETCH (UID {uid} MODSEQ ({mod_seq}))"));
    }
}

/// The UIDs of `known` that are expunged (RFC 7162 section 3.2.5).
pub(super) fn vanished(gone: Gone, known: &UidSet) -> UidSet {
    match gone {
        Gone::These(uids) => uids.intersection(known),
        Gone::AllBut(uids) => known.difference(&uids),
    }
}
