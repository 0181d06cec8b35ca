//! The section of the mail store.

use super::Assembly;
use crate::mail_store::{BodySharing, MailStore, NewMailbox};

impl Assembly {
    pub(super) fn mail_store(&self) -> MailStore {
        MailStore {
            reserve: self.need("store.reserve"),
            reclaim_from: self.need("store.reclaim_from"),
            reclaim_share: self.need("store.reclaim_share"),
            backup_hold_max: self.need("store.backup_hold_max"),
            keep_expunged: self.need("store.keep_expunged"),
            keep_expunged_size: self.need("store.keep_expunged_size"),
            sharing: self.choice("store.sharing", |text| match text {
                "account" => Some(BodySharing::Account),
                "all" => Some(BodySharing::All),
                _ => None,
            }),
            files_into_junk: self.choice("store.marked", |text| match text {
                "junk" => Some(true),
                "inbox" => Some(false),
                _ => None,
            }),
            mailboxes: self.new_mailboxes(),
        }
    }

    fn new_mailboxes(&self) -> Vec<NewMailbox> {
        let texts: Vec<String> = self.need("store.mailboxes");
        let read = texts.iter().map(|text| NewMailbox::parse(text));
        // The texts were parsed before.
        read.filter_map(Result::ok).collect()
    }
}
