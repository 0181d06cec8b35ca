//! STATUS, the changes of the list of mailboxes, and quotas.

use crate::command::StatusItem;
use crate::write;

use super::answer::{Quota, Status};
use super::question::Question;
use super::refusal::Refusal;
use super::{About, Server};

/// A STATUS under way.
#[derive(Debug)]
pub(super) struct StatusWork {
    tag: String,
    mailbox: String,
    items: Vec<StatusItem>,
}

impl Server {
    pub(super) fn status(&mut self, tag: String, mailbox: String, items: Vec<StatusItem>) {
        if items.contains(&StatusItem::HighestModSeq) {
            self.want_mod_seqs();
        }
        let question = Question::Status {
            mailbox: mailbox.clone(),
            deleted_octets: items.contains(&StatusItem::DeletedStorage),
        };
        let work = StatusWork {
            tag,
            mailbox,
            items,
        };
        self.ask(question, About::Status(work));
    }

    pub(super) fn status_answered(&mut self, work: StatusWork, result: Result<Status, Refusal>) {
        match result {
            Ok(status) => {
                self.tell_status(&work.mailbox, &work.items, &status);
                self.complete(work.tag, "OK done");
            }
            Err(refusal) => self.no(work.tag, refusal),
        }
    }

    pub(super) fn tell_status(&mut self, mailbox: &str, items: &[StatusItem], status: &Status) {
        let append_limit = self.config.limits.message_size_max.as_u64();
        self.output.text("* STATUS ");
        write::mailbox(self.output.buffer(), mailbox, self.enabled.rev2);
        self.output.text(" (");
        for (index, item) in items.iter().enumerate() {
            let value = match item {
                StatusItem::Messages => u64::from(status.messages),
                StatusItem::Recent => u64::from(status.recent),
                StatusItem::UidNext => u64::from(status.uid_next),
                StatusItem::UidValidity => u64::from(status.uid_validity),
                StatusItem::Unseen => u64::from(status.unseen),
                StatusItem::Deleted => u64::from(status.deleted),
                // In units of 1024 octets, as STORAGE (RFC 9208 section 5.1).
                StatusItem::DeletedStorage => status.deleted_octets.div_ceil(1024),
                StatusItem::Size => status.size,
                StatusItem::HighestModSeq => status.mod_seq,
                StatusItem::AppendLimit => append_limit,
            };
            let space = if index == 0 { "" } else { " " };
            self.output.text(&format!("{space}{} {value}", item.name()));
        }
        self.output.line(")");
    }

    pub(super) fn done(&mut self, tag: String, name: &str, result: Result<(), Refusal>) {
        match result {
            Ok(()) => self.complete(tag, &format!("OK {name}")),
            Err(refusal) => self.no(tag, refusal),
        }
    }

    /// RFC 9208: one root, without a name, is all of the account.
    pub(super) fn quota_answered(
        &mut self,
        tag: String,
        mailbox: Option<String>,
        result: Result<Quota, Refusal>,
    ) {
        let quota = match result {
            Ok(quota) => quota,
            Err(refusal) => return self.no(tag, refusal),
        };
        if let Some(mailbox) = mailbox {
            self.output.text("* QUOTAROOT ");
            write::mailbox(self.output.buffer(), &mailbox, self.enabled.rev2);
            self.output.line(" \"\"");
        }
        let mut resources = Vec::new();
        if let Some(max) = quota.octets_max {
            // In units of 1024 octets (RFC 9208 section 5.1).
            resources.push(format!(
                "STORAGE {} {}",
                quota.octets.div_ceil(1024),
                max / 1024
            ));
        }
        if let Some(max) = quota.messages_max {
            resources.push(format!("MESSAGE {} {max}", quota.messages));
        }
        self.output
            .line(&format!("* QUOTA \"\" ({})", resources.join(" ")));
        self.complete(tag, "OK done");
    }
}
