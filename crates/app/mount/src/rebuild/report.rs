//! What a rebuild has found, for people and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};
use vere_recovery::{Recovered, SlotReport, SlotState};
use vere_settings::Volume as Described;

use super::salvage;
use crate::folders::Description;
use crate::upkeep;

/// Where the rows came from.
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) checkpoint: Option<u64>,
    pub(super) commits: usize,
    pub(super) generation: u64,
    pub(super) fingerprint: String,
    pub(super) writer: u16,
}

#[derive(Debug)]
pub(super) struct Report {
    tag: String,
    name: String,
    file: String,
    slot: String,
    accounts: Vec<(u16, String)>,
    slots: Vec<SlotReport>,
    behind: Vec<u16>,
    failing: Vec<(u16, String)>,
    rows: Vec<(Vec<u8>, Vec<u8>)>,
    /// Accounts that were given and are none of the volume.
    pub(super) strange: Vec<String>,
    /// Mails of mailbox `head` that are none of the volume.
    pub(super) ignored: Vec<String>,
    /// Whether the volume has other accounts now than the facts say.
    pub(super) accounts_differ: bool,
    pub(super) origin: Option<Origin>,
    pub(super) salvaged: Value,
    pub(super) check: Value,
}

const fn word(state: &SlotState) -> &'static str {
    match state {
        SlotState::Opens => "opens",
        SlotState::Revoked => "revoked",
        SlotState::Closed => "closed",
        SlotState::Untried => "untried",
    }
}

impl Report {
    pub(super) fn new(
        tag: &str,
        description: &Description,
        described: &Described,
        recovered: &Recovered,
    ) -> Self {
        let accounts = described.accounts.iter();
        Self {
            tag: tag.to_owned(),
            name: recovered.facts.name.clone(),
            file: description.file.display().to_string(),
            slot: description.slot().display().to_string(),
            accounts: accounts
                .map(|account| (account.number, account.url.clone()))
                .collect(),
            slots: recovered.slots.clone(),
            behind: recovered.behind.iter().map(|account| account.0).collect(),
            failing: recovered
                .faults
                .iter()
                .map(|(account, fault)| (account.0, fault.clone()))
                .collect(),
            rows: recovered.facts.rows.clone(),
            strange: Vec::new(),
            ignored: Vec::new(),
            accounts_differ: false,
            origin: None,
            salvaged: Value::Null,
            check: Value::Null,
        }
    }

    /// The rows of the facts.
    pub(super) fn rows(&self) -> &[(Vec<u8>, Vec<u8>)] {
        &self.rows
    }

    pub(super) fn is_clean(&self) -> bool {
        self.check["clean"] == Value::Bool(true)
            && self.ignored.is_empty()
            && self.failing.is_empty()
    }

    pub(super) fn json(&self) -> Value {
        let origin = self.origin.as_ref();
        let slot = |slot: &SlotReport| {
            let accounts: Vec<u16> = slot.accounts.iter().map(|account| account.0).collect();
            json!({
                "number": slot.number,
                "mail": slot.mail.to_string(),
                "label": slot.label,
                "state": word(&slot.state),
                "accounts": accounts,
            })
        };
        let account = |(number, url): &(u16, String)| json!({ "number": number, "url": url });
        let failing =
            |(number, reason): &(u16, String)| json!({ "account": number, "reason": reason });
        json!({
            "volume": self.tag,
            "name": self.name,
            "file": self.file,
            "slot": self.slot,
            "accounts": self.accounts.iter().map(account).collect::<Vec<_>>(),
            "key_slots": self.slots.iter().map(slot).collect::<Vec<_>>(),
            "ignored": self.ignored,
            "not_of_the_volume": self.strange,
            "accounts_behind": self.behind,
            "accounts_failing": self.failing.iter().map(failing).collect::<Vec<_>>(),
            "accounts_differ": self.accounts_differ,
            "generation": origin.map(|origin| origin.generation),
            "fingerprint": origin.map(|origin| &origin.fingerprint),
            "checkpoint": origin.and_then(|origin| origin.checkpoint),
            "commits": origin.map(|origin| origin.commits),
            "writer": origin.map(|origin| origin.writer),
            "salvaged": self.salvaged,
            "check": self.check,
        })
    }

    pub(super) fn shown(&self) -> String {
        let mut text = format!("The volume {} ({:?}) is found.\n", self.tag, self.name);
        // Writing into a text does not fail.
        let mut line = |line: String| {
            let _written = writeln!(text, "{line}");
        };
        for slot in &self.slots {
            let label = slot.label.as_deref().unwrap_or("no label read");
            line(format!(
                "key slot {}: {} ({label})",
                slot.number,
                word(&slot.state)
            ));
        }
        for text in &self.ignored {
            line(format!("ignored: {text}"));
        }
        for url in &self.strange {
            line(format!("{url}: no account of the volume"));
        }
        for account in &self.behind {
            line(format!(
                "given account {account}: the facts of the volume are old or absent"
            ));
        }
        for (account, reason) in &self.failing {
            line(format!("given account {account}: {reason}"));
        }
        if self.accounts_differ {
            line("the volume has other accounts by its rows than by its facts: compare `vere fs accounts list`".to_owned());
        }
        if let Some(origin) = &self.origin {
            let from = match origin.checkpoint {
                Some(covers) => format!("the checkpoint of generation {covers}"),
                None => "the first commit".to_owned(),
            };
            let writer = match origin.writer {
                0 => "registers when the lead answers".to_owned(),
                writer => format!("is writer {writer}"),
            };
            line(format!(
                "generation {} (fingerprint {}), from {from} and {} commits behind; this machine {writer}",
                origin.generation, origin.fingerprint, origin.commits
            ));
        }
        if self.salvaged != Value::Null {
            let _written = writeln!(text, "{}", salvage::shown(&self.salvaged));
        }
        text.push_str(&upkeep::checked(&self.check));
        let _written = writeln!(
            text,
            "{} and {} are written. `vere fs mount` mounts the volume.",
            self.file, self.slot
        );
        text
    }
}
