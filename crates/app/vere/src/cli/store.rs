//! `vere store`: the mail store's files, while nothing else uses them.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;
use vere_disk::log::Directory;
use vere_disk::mail_meta::FjallMeta;
use vere_ports::directory::AccountName;
use vere_settings::Settings;
use vere_store::{CheckReport, Finding, Reclaim, Store, StoreConfig};
use vere_units::ByteSize;

use super::{Failure, Outcome};
use crate::store::keeper::MailStore as FileStore;
use crate::store::search::{self, SharedIndex};

mod explain;

/// Looks after the mail store's files, while the system is stopped.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Reads everything and compares what must agree; ends with 1 when something is wrong.
    Check {
        /// Prints JSON: an object with the counts and `findings`, a list of texts.
        #[arg(long)]
        json: bool,
    },
    /// Prints how much is stored, and how much of it is shared.
    Stats {
        /// Prints JSON: an object with the counts.
        #[arg(long)]
        json: bool,
    },
    /// Searches a mailbox and says what answered: the index, or messages that were looked into.
    Explain {
        /// The account, as user@example.org.
        account: AccountName,
        /// The mailbox.
        mailbox: String,
        /// What follows SEARCH in IMAP: 'BODY free SINCE 1-Jan-2026'.
        search: String,
    },
    /// Gives back the room of messages that no mailbox holds any more.
    Compact {
        /// Leaves segments alone of which less than this goes, in percent.
        #[arg(long, value_name = "PERCENT", default_value_t = 10)]
        dead_min: u64,
    },
}

/// Octets of metadata that are kept in memory.
const META_CACHE: ByteSize = ByteSize::mib(32);

/// Runs the command.
///
/// # Errors
/// When the store cannot be opened, is in use, or cannot be read.
pub(crate) fn run(command: &StoreCommand, settings: &Settings) -> Result<Outcome, Failure> {
    let folder = settings.data.join("store");
    let mut store = open(&folder)?;
    match command {
        StoreCommand::Check { json } => {
            let report = Report::of(&mut store, &folder)?;
            let text = if *json {
                report.as_json()?
            } else {
                report.counts() + &report.findings()
            };
            let wrong = report.is_wrong();
            Ok(Outcome::Report(text, ExitCode::from(u8::from(wrong))))
        }
        StoreCommand::Stats { json } => {
            let report = Report::of(&mut store, &folder)?;
            Ok(Outcome::Print(if *json {
                report.as_json()?
            } else {
                report.counts()
            }))
        }
        StoreCommand::Explain {
            account,
            mailbox,
            search,
        } => explain::explain(&mut store, &folder, account, mailbox, search).map(Outcome::Print),
        StoreCommand::Compact { dead_min } => {
            let saved = compact(&mut store, *dead_min)?;
            Ok(Outcome::Print(format!(
                "{} given back\n",
                ByteSize::new(saved)
            )))
        }
    }
}

fn open(folder: &Path) -> Result<FileStore, Failure> {
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::new(format!(
            "cannot open the mail store in {}: {error}",
            folder.display()
        ))
    };
    // Made by the role alone: a mistyped folder is not an empty store.
    let disk = Directory::open(&folder.join("log")).map_err(|error| wrong(&error))?;
    let meta = FjallMeta::open(&folder.join("meta"), META_CACHE).map_err(|error| wrong(&error))?;
    let (store, report) =
        Store::open(disk, meta, StoreConfig::default()).map_err(|error| wrong(&error))?;
    if report.cut > 0 {
        tracing::info!(
            octets = report.cut,
            "cut what a crash tore, nothing of it acknowledged"
        );
    }
    Ok(store)
}

fn compact(store: &mut FileStore, dead_min: u64) -> Result<u64, Failure> {
    let mut saved = 0;
    loop {
        match store.reclaim(dead_min)? {
            Reclaim::Marking => {}
            Reclaim::Job(job) => saved += store.finish_reclaim(job.run())?,
            Reclaim::Done => return Ok(saved),
        }
    }
}

/// What a check of store and index found.
struct Report {
    store: CheckReport,
    index_octets: u64,
    index_findings: Vec<String>,
}

impl Report {
    fn of(store: &mut FileStore, folder: &Path) -> Result<Self, Failure> {
        let index = SharedIndex::open(folder, store.log_id())?;
        let (index_octets, index_findings) = search::check(store, &index)?;
        Ok(Self {
            store: store.check_all()?,
            index_octets,
            index_findings,
        })
    }

    fn is_wrong(&self) -> bool {
        !(self.store.findings.is_empty() && self.index_findings.is_empty())
    }

    fn counts(&self) -> String {
        let size = ByteSize::new;
        let report = &self.store;
        let rows = [
            ("accounts", report.accounts.to_string()),
            ("mailboxes", report.mailboxes.to_string()),
            ("messages", report.messages.to_string()),
            (
                "  as clients count them",
                size(report.logical_octets).to_string(),
            ),
            ("bodies", report.bodies.to_string()),
            (
                "  each counted once",
                size(report.shared_octets).to_string(),
            ),
            (
                "  as they are stored",
                size(report.stored_octets).to_string(),
            ),
            ("log", size(report.log_octets).to_string()),
            ("search index", size(self.index_octets).to_string()),
        ];
        rows.iter().fold(String::new(), |mut text, (name, value)| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<24} {value:>14}");
            text
        })
    }

    fn sentences(&self) -> Vec<String> {
        let store = self.store.findings.iter().map(sentence);
        store.chain(self.index_findings.iter().cloned()).collect()
    }

    fn findings(&self) -> String {
        match self.sentences().as_slice() {
            [] => "nothing is wrong\n".to_owned(),
            sentences => sentences.join("\n") + "\n",
        }
    }

    fn as_json(&self) -> Result<String, Failure> {
        let report = &self.store;
        let value = serde_json::json!({
            "accounts": report.accounts,
            "mailboxes": report.mailboxes,
            "messages": report.messages,
            "logical_octets": report.logical_octets,
            "bodies": report.bodies,
            "shared_octets": report.shared_octets,
            "stored_octets": report.stored_octets,
            "log_octets": report.log_octets,
            "search_index_octets": self.index_octets,
            "findings": self.sentences(),
        });
        Ok(serde_json::to_string_pretty(&value)? + "\n")
    }
}

fn sentence(finding: &Finding) -> String {
    match finding {
        Finding::Unlisted { account, name } => {
            format!("{account}: the list names {name}, which is not there")
        }
        Finding::Unreachable { mailbox, messages } => {
            format!(
                "mailbox {}: in no list, {messages} messages in it",
                mailbox.0
            )
        }
        Finding::Counters { mailbox, reason } => format!("mailbox {}: {reason}", mailbox.0),
        Finding::Body {
            mailbox,
            uid,
            error,
        } => {
            format!("mailbox {}, message {uid}: {error}", mailbox.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use vere_store::{
        Flags, InternalDate, MailboxId, OperationId, Prepared, QuotaLimit, RecipientFields,
        SystemFlags, Target,
    };
    use vere_units::Timestamp;

    use super::*;

    fn sync(store: &mut FileStore) {
        while let Some(job) = store.sync_job().unwrap() {
            store.finish_sync(job.run()).unwrap();
        }
    }

    fn inbox(store: &mut FileStore) -> MailboxId {
        let ann = AccountName::parse("ann@demo.test").unwrap();
        let opened = store.open_account(&ann, Timestamp::from_millis(1)).unwrap();
        sync(store);
        opened.when(store.synced()).unwrap()
    }

    fn deliver(store: &mut FileStore, number: u8) {
        let text = format!(
            "Subject: {number}\r\n\r\n{}\r\n",
            "x\u{1}".repeat(usize::from(number))
        );
        let noise: Vec<u8> = (0..20_000_u32)
            .map(|n| (n.wrapping_mul(n) >> 7) as u8 ^ number)
            .collect();
        let body = Prepared::new(&[text.as_bytes(), &noise].concat(), &[], &[]).unwrap();
        let target = Target {
            mailbox: inbox(store),
            flags: Flags {
                system: SystemFlags::DELETED,
                keywords: Vec::new(),
            },
            internal_date: InternalDate::default(),
            fields: RecipientFields::default(),
            quota: QuotaLimit::default(),
        };
        let results = store
            .deliver(&body, &[target], OperationId([number; 16]))
            .unwrap();
        sync(store);
        assert!(results.when(store.synced()).unwrap()[0].is_ok());
    }

    /// A store with one message and a segment that says of it that it holds a text.
    fn indexed_as(text: &str) -> (tempfile::TempDir, FileStore) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("log")).unwrap();
        std::fs::create_dir_all(folder.path().join("search")).unwrap();
        let mut store = open(folder.path()).unwrap();
        deliver(&mut store, 7);
        let id = inbox(&mut store);
        let snapshot = store.snapshot(id).unwrap();
        let snapshot = snapshot.when(store.synced()).unwrap();
        let message = *snapshot.get(0).unwrap();
        let mut octets = store.body_reader().open(message.blob).unwrap();
        let octets = octets.message().unwrap();
        let parsed = vere_mime::Parsed::of(&octets);
        let searched = vere_mime::Searched {
            own: b"",
            message: &octets,
            parts: &parsed.parts,
        };
        let mut builder = vere_search::Builder::new(store.log_id(), id.0);
        builder.message(vere_search::Document {
            uid: message.uid.get(),
            body: message.blob.0,
            sent: None,
        });
        let _ = searched.texts(|_| true, &mut |zone, found| {
            let instead = matches!(zone, vere_mime::Zone::Subject) && !text.is_empty();
            builder.text(zone, if instead { text } else { found });
            std::ops::ControlFlow::Continue(())
        });
        let disk = Directory::open(&folder.path().join("search")).unwrap();
        let mut index = vere_search::Index::open(disk, store.log_id()).unwrap();
        index.put(id.0, (1, 1), &builder.finish().unwrap()).unwrap();
        (folder, store)
    }

    #[test]
    fn an_index_of_other_texts_is_found() {
        let (folder, mut store) = indexed_as("");
        let report = Report::of(&mut store, folder.path()).unwrap();
        assert!(!report.is_wrong(), "{}", report.findings());
        assert!(report.index_octets > 0);
        let (folder, mut store) = indexed_as("SOMETHING");
        let report = Report::of(&mut store, folder.path()).unwrap();
        assert!(report.is_wrong());
        assert!(
            report
                .findings()
                .contains("the search index is not that of its messages")
        );
    }

    #[test]
    fn a_search_is_explained() {
        let (folder, mut store) = indexed_as("");
        let ann = AccountName::parse("ann@demo.test").unwrap();
        let mut explain = |search: &str| {
            explain::explain(&mut store, folder.path(), &ann, "INBOX", search).unwrap()
        };
        let certain = explain("SUBJECT 7 DELETED");
        assert!(
            certain.contains("1 messages; index: 1 segments"),
            "{certain}"
        );
        assert!(certain.contains("answered by the index alone"), "{certain}");
        assert!(certain.contains("1 messages found"), "{certain}");
        let looked = explain("NOT TEXT \"subject: 8\" 1:*");
        assert!(looked.contains("1 messages found"), "{looked}");
        assert!(explain("SUBJECT 8").contains("0 messages found"));
        let wrong = explain::explain(&mut store, folder.path(), &ann, "INBOX", "NONSENSE");
        assert!(wrong.is_err());
        let wrong = explain::explain(&mut store, folder.path(), &ann, "Nowhere", "ALL");
        assert!(wrong.is_err());
    }

    #[test]
    fn a_store_on_files_is_checked_and_compacted() {
        let folder = tempfile::tempdir().unwrap();
        assert!(open(folder.path()).is_err());
        std::fs::create_dir(folder.path().join("log")).unwrap();
        let disk = Directory::open(&folder.path().join("log")).unwrap();
        let meta = FjallMeta::open(&folder.path().join("meta"), META_CACHE).unwrap();
        let config = StoreConfig {
            segment_size: ByteSize::kib(64),
            log_id: 9,
            ..StoreConfig::default()
        };
        let mut store = Store::open(disk, meta, config).unwrap().0;
        (1..=20).for_each(|number| deliver(&mut store, number));
        let id = inbox(&mut store);
        let expunged = store.expunge(id, None).unwrap();
        sync(&mut store);
        assert_eq!(expunged.when(store.synced()).unwrap().len(), 20);
        deliver(&mut store, 21);
        drop(store);

        let mut store = open(folder.path()).unwrap();
        let before = store.check_all().unwrap();
        assert_eq!(
            (before.messages, before.bodies, before.findings.len()),
            (1, 1, 0)
        );
        let saved = compact(&mut store, 10).unwrap();
        assert!(saved > 0, "{before:?}");
        let after = store.check_all().unwrap();
        assert!(after.log_octets < before.log_octets);
        let report = Report::of(&mut store, folder.path()).unwrap();
        assert!(report.counts().contains("messages"));
        assert!(report.as_json().unwrap().contains("\"bodies\": 1"));
        assert_eq!(report.findings(), "nothing is wrong\n");
        drop(store);
        // From the log alone.
        std::fs::remove_dir_all(folder.path().join("meta")).unwrap();
        let mut store = open(folder.path()).unwrap();
        assert_eq!(store.check_all().unwrap().messages, 1);
    }
}
