//! Lists in the DNS and content filters, asked about a message in a file.

use std::fmt::Write as _;
use std::net::IpAddr;

use bytes::Bytes;
use serde::Serialize;
use vere_filters::{Filters, Mail, Session};
use vere_judge::{Facts, Greylist, Listing};
use vere_judging::remove_foreign;
use vere_lists::Lists;
use vere_process::failure::Failure;
use vere_settings::{FilteredMail, Settings};

use super::args::ExplainArgs;
use crate::filter::report::Report;

/// The answers of everybody who was asked about a message in a file.
#[derive(Debug, Serialize)]
pub(super) struct Asked {
    /// `None` where the lists are left out.
    lists: Option<Vec<Row>>,
    /// `None` where the filters are left out.
    filters: Option<Report>,
    greylist: &'static str,
}

/// The answer of a list.
#[derive(Debug, Serialize)]
struct Row {
    list: String,
    weight: i16,
    answer: &'static str,
}

/// The session of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sender<'a> {
    pub(super) client: IpAddr,
    pub(super) client_name: &'a str,
    pub(super) helo: &'a str,
    pub(super) reverse_path: &'a str,
    pub(super) recipients: &'a [String],
}

impl Asked {
    /// Asks nobody yet. The greylist of the running front is known to the front alone.
    pub(super) fn new(settings: &Settings, client: IpAddr) -> (Self, Option<Greylist>) {
        let front = settings.front.as_ref();
        let greylists = front.filter(|front| front.greylist_delay.is_some());
        let (greylist, fact) = match greylists {
            None => ("off", None),
            Some(front)
                if front.allowed_networks.contains(client) || settings.relay.contains(client) =>
            {
                (
                    "not asked: the settings allow the client",
                    Some(Greylist::Exempt),
                )
            }
            Some(_) => (
                "unknown: only the running front knows whom it has put off",
                None,
            ),
        };
        let asked = Self {
            lists: None,
            filters: None,
            greylist,
        };
        (asked, fact)
    }

    /// Asks the lists about the client, unless the options leave the lists out.
    ///
    /// # Errors
    /// When the system's list of name servers cannot be used.
    pub(super) async fn ask_lists(
        &mut self,
        args: &ExplainArgs,
        settings: &Settings,
        client: IpAddr,
    ) -> Result<Vec<Listing>, Failure> {
        if args.no_lists {
            return Ok(Vec::new());
        }
        let front = settings.front.as_ref();
        let lists = front.map(|front| &front.lists);
        let Some(lists) = lists.filter(|lists| !lists.lists.is_empty()) else {
            self.lists = Some(Vec::new());
            return Ok(Vec::new());
        };
        let asked = Lists::new(settings, lists)?;
        asked.probe().await;
        let found = asked.ask(client).await;
        let listed = found.entries.iter();
        let listed = listed.filter(|entry| entry.outcome.is_listed());
        let listings = listed.map(|entry| Listing {
            list: entry.name.to_string(),
            weight: entry.weight,
        });
        let rows = found.entries.iter().map(|entry| Row {
            list: entry.name.to_string(),
            weight: entry.weight,
            answer: entry.outcome.as_str(),
        });
        self.lists = Some(rows.collect());
        Ok(listings.collect())
    }

    /// Shows the message to the filters for received mail, unless the options leave the filters out. The answers become facts.
    ///
    /// # Errors
    /// When a file with a password cannot be used.
    pub(super) async fn ask_filters(
        &mut self,
        args: &ExplainArgs,
        settings: &Settings,
        (sender, message): (Sender<'_>, &[u8]),
        facts: &mut Facts,
    ) -> Result<(), Failure> {
        if args.no_filters {
            return Ok(());
        }
        let mut settings = settings.clone();
        let filters = &mut settings.filters;
        filters.retain(|filter| filter.mail != FilteredMail::Submitted);
        let filters = Filters::new(&settings);
        let filters = filters.map_err(|error| Failure::new(error.to_string()))?;
        let mut body = message.to_vec();
        remove_foreign(&mut body, &settings.hostname);
        let recipients: Vec<_> = sender.recipients.iter().map(String::as_str).collect();
        let session = Session {
            client: sender.client.to_canonical(),
            port: 0,
            client_name: sender.client_name,
            helo: sender.helo,
            reverse_path: sender.reverse_path,
            recipients: &recipients,
            account: "",
            id: "explain",
            host: &settings.hostname,
            tls_version: "",
            tls_cipher: "",
        };
        let body = Bytes::from(body);
        let found = filters.ask(Mail::Received, &body, &session).await;
        self.filters = Some(Report::of(&settings, &found));
        facts.filters = found.filters;
        facts.viruses = found.viruses;
        facts.cut |= found.cut;
        Ok(())
    }

    /// The answers in lines.
    pub(super) fn text(&self) -> String {
        let mut out = format!("\nGREYLIST\n  {}\n\nLISTS\n", self.greylist);
        match self.lists.as_deref() {
            None => out.push_str("  left out (--no-lists)\n"),
            Some([]) => out.push_str("  none asked\n"),
            Some(rows) => {
                for row in rows {
                    let _ = writeln!(
                        out,
                        "  {}  {} (weight {})",
                        row.list, row.answer, row.weight
                    );
                }
            }
        }
        out.push_str("\nFILTERS\n");
        match self.filters.as_ref().map(Report::text) {
            None => out.push_str("  left out (--no-filters)\n"),
            Some(text) if text.is_empty() => out.push_str("  none asked\n"),
            Some(text) => {
                for line in text.lines() {
                    let _ = writeln!(out, "  {line}");
                }
            }
        }
        out.push_str("\nLEARNED SENDERS\n  not looked up for a file\n");
        out
    }
}
