//! SEARCH: by what the mailbox knows of its messages, and where that does not do by looking into them.

use std::time::Duration;

use vere_disk::log::Directory as LogDirectory;
use vere_imap::command::SearchKey;
use vere_imap::date::Day;
use vere_imap::server::{Found, Need, Refusal};
use vere_imap::set::UidSet;
use vere_mime::{Parsed, PartKind, fields, text};
use vere_store::{BodyReader, MailboxId, Snapshot, StoreError};
use vere_units::Timestamp;

use super::convert::{flags_of, time};
use super::keeper::Keeper;
use super::messages::{Referred, content, opened_gone, refer};

/// Finds messages.
///
/// # Errors
/// What the client is told.
pub(super) async fn search(
    keeper: &Keeper,
    id: MailboxId,
    key: SearchKey,
    recent: UidSet,
    now: Timestamp,
) -> Result<Found, Refusal> {
    let needs_content = key.any(&looks_inside);
    let (snapshot, messages, reader) = keeper
        .ask(move |store| {
            let committed = store.snapshot(id)?;
            let reader = store.body_reader();
            let store = &*store;
            Ok(committed.map(|snapshot| {
                let messages: Result<Vec<Referred>, StoreError> = snapshot
                    .iter_from(0)
                    .map(|message| match needs_content {
                        true => refer(store, id, message),
                        false => Ok((*message, Vec::new())),
                    })
                    .collect();
                (snapshot, messages, reader)
            }))
        })
        .await
        .and_then(|(snapshot, messages, reader)| Ok((snapshot, messages?, reader)))
        .map_err(|error| opened_gone(&error))?;
    let look = Look {
        snapshot,
        reader,
        recent,
        now,
    };
    tokio::task::spawn_blocking(move || look.all(&fold(key), &messages))
        .await
        .map_err(|_| Refusal::Unavailable)
}

fn looks_inside(key: &SearchKey) -> bool {
    matches!(
        key,
        SearchKey::Header { .. }
            | SearchKey::Body(_)
            | SearchKey::Text(_)
            | SearchKey::SentBefore(_)
            | SearchKey::SentOn(_)
            | SearchKey::SentSince(_)
    )
}

/// The key with its texts in one case.
fn fold(key: SearchKey) -> SearchKey {
    match key {
        SearchKey::And(keys) => SearchKey::And(keys.into_iter().map(fold).collect()),
        SearchKey::Or(keys) => SearchKey::Or(Box::new((fold(keys.0), fold(keys.1)))),
        SearchKey::Not(key) => SearchKey::Not(Box::new(fold(*key))),
        SearchKey::Header { name, text } => SearchKey::Header {
            name,
            text: text.to_lowercase(),
        },
        SearchKey::Body(text) => SearchKey::Body(text.to_lowercase()),
        SearchKey::Text(text) => SearchKey::Text(text.to_lowercase()),
        other => other,
    }
}

struct Look {
    snapshot: Snapshot,
    reader: BodyReader<LogDirectory>,
    recent: UidSet,
    now: Timestamp,
}

/// A message that is looked at; its content is read when a key first needs it.
struct Candidate<'a> {
    look: &'a Look,
    referred: &'a Referred,
    content: Option<Content>,
}

#[derive(Default)]
struct Content {
    octets: Vec<u8>,
    parsed: Option<Parsed>,
}

impl Look {
    fn all(&self, key: &SearchKey, messages: &[Referred]) -> Found {
        let mut found = Found::default();
        for referred in messages {
            let mut candidate = Candidate {
                look: self,
                referred,
                content: None,
            };
            if candidate.fits(key) {
                found.uids.insert(referred.0.uid.get());
                found.mod_seq = found.mod_seq.max(referred.0.mod_seq.0);
            }
        }
        found
    }
}

impl Candidate<'_> {
    fn fits(&mut self, key: &SearchKey) -> bool {
        let message = &self.referred.0;
        let received = time(message.internal_date);
        let age = self.look.now.saturating_since(received);
        let seconds = |seconds: u32| Duration::from_secs(seconds.into());
        match key {
            SearchKey::All => true,
            SearchKey::And(keys) => keys.iter().all(|key| self.fits(key)),
            SearchKey::Or(keys) => self.fits(&keys.0) || self.fits(&keys.1),
            SearchKey::Not(key) => !self.fits(key),
            SearchKey::Flag(flag) => flags_of(&self.look.snapshot, message).flags.contains(flag),
            SearchKey::Recent => self.look.recent.contains(message.uid.get()),
            SearchKey::Messages(uids) => uids.contains(message.uid.get()),
            // The machine has put messages in their place.
            SearchKey::Sequence(_) | SearchKey::Uid(_) => false,
            SearchKey::Before(day) => Day::of(received) < *day,
            SearchKey::On(day) => Day::of(received) == *day,
            SearchKey::Since(day) => Day::of(received) >= *day,
            SearchKey::Younger(span) => age <= seconds(*span),
            SearchKey::Older(span) => age >= seconds(*span),
            SearchKey::Larger(octets) => u64::from(message.size) > *octets,
            SearchKey::Smaller(octets) => u64::from(message.size) < *octets,
            SearchKey::ModSeq(mod_seq) => message.mod_seq.0 >= *mod_seq,
            SearchKey::SentBefore(day) => self.sent().is_some_and(|sent| sent < i64::from(day.0)),
            SearchKey::SentOn(day) => self.sent() == Some(i64::from(day.0)),
            SearchKey::SentSince(day) => self.sent().is_some_and(|sent| sent >= i64::from(day.0)),
            SearchKey::Header { name, text } => self.header_holds(name, text),
            SearchKey::Body(text) => self.holds(text, false),
            SearchKey::Text(text) => self.holds(text, true),
        }
    }

    fn content(&mut self) -> &mut Content {
        let (look, referred) = (self.look, self.referred);
        self.content.get_or_insert_with(|| {
            let octets = content(referred, &look.reader, Need::Whole).unwrap_or_else(|error| {
                tracing::error!(%error, uid = referred.0.uid.get(), "message cannot be searched");
                Vec::new()
            });
            Content {
                octets,
                parsed: None,
            }
        })
    }

    fn parsed(&mut self) -> (&Parsed, &[u8]) {
        let Content { octets, parsed } = self.content();
        (parsed.get_or_insert_with(|| Parsed::of(octets)), octets)
    }

    /// The day that the Date field names.
    fn sent(&mut self) -> Option<i64> {
        let (parsed, _) = self.parsed();
        Some(parsed.envelope()?.sent?.day)
    }

    fn header_holds(&mut self, name: &str, text: &str) -> bool {
        fields(&self.content().octets)
            .filter(|field| field.is(name))
            .any(|field| text::of_field(field.value).to_lowercase().contains(text))
    }

    /// Whether the texts of the body hold a text, or with them the headers of all parts.
    fn holds(&mut self, text: &str, headers: bool) -> bool {
        let (parsed, octets) = self.parsed();
        let octets_of =
            |range: &std::ops::Range<usize>| octets.get(range.clone()).unwrap_or_default();
        let has = |whole: String| whole.to_lowercase().contains(text);
        parsed.parts.iter().enumerate().any(|(place, part)| {
            // The header of a part is within the body of the message.
            let own_header = place == 0;
            let header = fields(octets_of(&part.header)).any(|field| {
                let name = String::from_utf8_lossy(field.name);
                has(format!("{name}: {}", text::of_field(field.value)))
            });
            let body = match part.kind {
                PartKind::Single => text::of_part(part, octets_of(&part.body)).is_some_and(has),
                PartKind::Multipart | PartKind::Message => false,
            };
            body || (header && (headers || !own_header))
        })
    }
}
