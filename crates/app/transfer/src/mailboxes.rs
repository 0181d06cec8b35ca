//! Mailboxes of an account, as sources and as targets.

use std::collections::HashMap;

use vere_imap::client::{Command, Event, Listed, Response};

use super::account::{Account, Begin};
use super::listing::SUBSCRIBED;
use super::names::{self, Folder};
use vere_accounts::deaf;
use vere_process::failure::Failure;

/// Special uses that are carried over (RFC 6154 section 2).
const SPECIAL_USES: [&str; 5] = ["\\Archive", "\\Drafts", "\\Junk", "\\Sent", "\\Trash"];

impl Account {
    /// The mailboxes that can hold messages.
    pub(super) fn folders(&self) -> Vec<Folder> {
        let holds = |one: &&Listed| !one.has("\\Noselect") && !one.has("\\NonExistent");
        self.listed
            .iter()
            .enumerate()
            .filter(|(_, one)| holds(one))
            .map(|(number, one)| Folder {
                path: names::from_wire(&one.name, one.delimiter, &self.own),
                special_use: special_use(one),
                subscribed: self.tells_subscribed.then(|| one.has(SUBSCRIBED)),
                number,
            })
            .collect()
    }

    /// Creates a mailbox, if missing, and returns its numbers. A mailbox is subscribed if subscribed at its source,
    /// or if new where the source does not report subscriptions; a later run does not subscribe the mailbox again.
    pub(super) async fn prepare(
        &mut self,
        folder: &Folder,
        is_first_run: bool,
    ) -> Result<Begin, Failure> {
        let name = self.wire_name(folder);
        let is_new = !self.is_there(&name);
        if is_new {
            let used = |use_: &String| {
                self.listed
                    .iter()
                    .any(|one| special_use(one).as_ref() == Some(use_))
            };
            let can = self.link.can("CREATE-SPECIAL-USE");
            let special_use = folder.special_use.clone().filter(|own| can && !used(own));
            let create = Command::Create {
                mailbox: name.clone(),
                special_use: special_use.clone(),
            };
            self.link.run(&create, &mut deaf).await?;
            self.listed.push(Listed {
                attributes: special_use.into_iter().collect(),
                delimiter: self.own.delimiter,
                name: name.clone(),
            });
        }
        let mut same = self.listed.iter().filter(|one| one.name == name);
        let is_subscribed = same.any(|one| one.has(SUBSCRIBED));
        let wanted = folder.subscribed.unwrap_or(is_new) && (is_new || is_first_run);
        if wanted && !is_subscribed {
            let subscribe = Command::Subscribe(name.clone());
            self.link.run(&subscribe, &mut deaf).await?;
        }
        self.numbers(name).await
    }

    pub(super) async fn numbers(&mut self, mailbox: Vec<u8>) -> Result<Begin, Failure> {
        let mut numbers = HashMap::new();
        let mut hear = |event: Event<'_>| {
            if let Event::Said(Response::MailboxStatus { numbers: said, .. }) = event {
                let asked = |name: &str| matches!(name, "UIDVALIDITY" | "UIDNEXT");
                numbers.extend(said.into_iter().filter(|(name, _)| asked(name)));
            }
            Ok(())
        };
        self.link.run(&Command::Status(mailbox), &mut hear).await?;
        let number = |name: &str| {
            let number = numbers.get(name).copied();
            number
                .and_then(|number| u32::try_from(number).ok())
                .ok_or_else(|| Failure::new(format!("the server does not tell {name}")))
        };
        Ok(Begin {
            uid_validity: number("UIDVALIDITY")?,
            uid_next: number("UIDNEXT")?,
        })
    }

    fn is_there(&self, name: &[u8]) -> bool {
        let inbox = name.eq_ignore_ascii_case(b"INBOX");
        let same = |one: &Listed| match inbox {
            true => one.name.eq_ignore_ascii_case(name),
            false => one.name == name && !one.has("\\NonExistent") && !one.has("\\Noselect"),
        };
        inbox || self.listed.iter().any(same)
    }
}

fn special_use(one: &Listed) -> Option<String> {
    let own = SPECIAL_USES.iter().find(|name| one.has(name));
    own.map(|name| (*name).to_owned())
}
