//! The output of `mailq`: every waiting message, in the usual form for scripts.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde::de::DeserializeOwned;
use vere_settings::Settings;

use vere_control::{MessageRow, Request, ask, queues};
use vere_process::failure::Failure;

/// Messages asked for at once.
const PAGE: usize = 1_000;

/// The messages of all queues, in the order of their queues' names.
///
/// # Errors
/// When no gateway answers, or the user has no access.
pub(crate) fn list(settings: &Settings) -> Result<String, Failure> {
    let mut listing = Listing::default();
    let queues = queues::all(&settings.control.socket)?.into_iter();
    // What is shown of a name has the adopted queues of that name in it.
    let names: BTreeSet<String> = queues.map(|queue| queue.destination).collect();
    for name in &names {
        let mut after = None;
        loop {
            let page: Vec<MessageRow> = request(
                settings,
                &Request::QueueShow {
                    what: Some(name.clone()),
                    held: false,
                    group: None,
                    after,
                    limit: PAGE,
                },
            )?;
            page.iter().for_each(|row| listing.add(row));
            after = page.last().and_then(|row| row.id.parse().ok());
            if after.is_none() {
                break;
            }
        }
    }
    Ok(listing.finish())
}

fn request<T: DeserializeOwned>(settings: &Settings, request: &Request) -> Result<T, Failure> {
    Ok(queues::parse(ask(&settings.control.socket, request)?)?)
}

#[derive(Debug, Default)]
struct Listing {
    text: String,
    messages: usize,
    octets: u64,
}

impl Listing {
    fn add(&mut self, row: &MessageRow) {
        self.messages += 1;
        self.octets += u64::from(row.size);
        let sender = match row.reverse_path.as_deref() {
            Some("") => "MAILER-DAEMON",
            Some(sender) => sender,
            None => "?",
        };
        // The mark of Postfix for held messages.
        let mark = if row.held_until.is_some() { "!" } else { "" };
        let id = format!("{}{mark}", row.id);
        // A `String` never fails to take text.
        let _ = writeln!(
            self.text,
            "{:<16} {:>9} {:<24} {sender}",
            id, row.size, row.accepted
        );
        if let Some(reply) = &row.last_reply {
            let _ = writeln!(self.text, "    ({reply})");
        }
        for recipient in &row.recipients {
            let _ = writeln!(self.text, "{:52}{recipient}", "");
        }
        self.text.push('\n');
    }

    fn finish(self) -> String {
        if self.messages == 0 {
            return "Mail queue is empty\n".to_owned();
        }
        format!(
            "{:<16} {:>9} {:<24} -Sender/Recipient-\n{}-- {} Kbytes in {} Requests.\n",
            "-Queue ID-",
            "--Size--",
            "-Arrival Time-",
            self.text,
            self.octets.div_ceil(1024),
            self.messages
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_listed_with_what_they_wait_for() {
        assert_eq!(Listing::default().finish(), "Mail queue is empty\n");
        let mut listing = Listing::default();
        listing.add(&MessageRow {
            id: "1Y3KQ0000000".to_owned(),
            group: None,
            accepted: "2026-01-02T03:04:05Z".to_owned(),
            attempts: 1,
            not_before: None,
            held_until: None,
            held_since: None,
            held_for: None,
            size: 1500,
            priority: 0,
            destination: "b.example".to_owned(),
            state: "ready".to_owned(),
            reverse_path: Some(String::new()),
            recipients: vec!["a@b.example".to_owned(), "c@b.example".to_owned()],
            last_reply: Some("451 later".to_owned()),
        });
        let text = listing.finish();
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        assert!(lines[0].starts_with("-Queue ID-"), "{text}");
        assert!(lines[1].ends_with("MAILER-DAEMON"), "{text}");
        assert_eq!(lines[2..5], ["(451 later)", "a@b.example", "c@b.example"]);
        assert_eq!(lines[6], "-- 2 Kbytes in 1 Requests.");
    }
}
