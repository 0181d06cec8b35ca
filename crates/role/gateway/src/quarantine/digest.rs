//! Tells local recipients once a day of new mail in the quarantine, if the settings want that.
//!
//! A file has the [`Mark`], written before the digests are stored: digests that a crash or a full spool leaves out are lost, and no digest comes twice.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use vere_delivery::{Lines, Part};
use vere_process::clock;
use vere_quarantine::Mark;
use vere_queue::{BodyType, Destination, Envelope, Mail, Notify, Recipient, ScheduleHead};
use vere_settings::Settings;
use vere_spoolwire::{Batch, SpoolError};
use vere_units::{Timestamp, TraceId};

use super::facts::Facts;
use super::found::{Found, all, breathe, keep_for};
use crate::group::Groups;
use crate::signing;

/// The time between two digests.
const DAY: Duration = Duration::from_secs(86_400);
/// Messages in one digest.
const ENTRIES_MAX: usize = 100;
/// Messages in all digests of a day, in memory at once.
const ENTRIES_IN_ALL_MAX: usize = 50_000;
/// Characters of a stranger's text in a digest.
const CHARS_MAX: usize = 100;
/// The file below the data folder with the mark.
const FILE: &str = "quarantine-digest";

/// A message in a digest.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    id: TraceId,
    since: Timestamp,
    from: String,
    subject: String,
}

/// The messages for one recipient.
#[derive(Debug, Default)]
struct Listed {
    entries: Vec<Entry>,
    /// Messages beyond the entries.
    more: usize,
}

/// The digests of a day.
#[derive(Debug, Default)]
struct Gathered {
    recipients: BTreeMap<String, Listed>,
    /// The messages in them.
    told: Vec<(TraceId, Timestamp)>,
    /// The earliest acceptance of a message that cannot be read now.
    unread: Option<Timestamp>,
}

fn path(settings: &Settings) -> PathBuf {
    settings.data.join(FILE)
}

/// The mark of the last digests. Without one, and after a clock that was ahead, the present time: the first digests
/// leave a day later.
fn mark(settings: &Settings, now: Timestamp) -> Mark {
    let read = std::fs::read_to_string(path(settings)).ok();
    let mark = read.as_deref().and_then(Mark::read);
    mark.filter(|mark| mark.last <= now).unwrap_or_else(|| {
        let mark = Mark::at(now);
        note(settings, &mark);
        mark
    })
}

/// Writes the mark down, and returns whether that worked.
fn note(settings: &Settings, mark: &Mark) -> bool {
    let (path, new) = (path(settings), path(settings).with_extension("new"));
    let written = std::fs::write(&new, mark.to_string());
    let written = written.and_then(|()| std::fs::rename(&new, &path));
    if let Err(error) = &written {
        tracing::warn!(%error, path = %path.display(), "time of the digests cannot be written");
    }
    written.is_ok()
}

/// Sends digests, if a day has passed since the last ones.
pub(super) async fn tell(groups: &Rc<Groups>) {
    let settings = groups.process().settings();
    let is_wanted = settings.judging.as_ref().is_some_and(|one| one.has_digest);
    if !is_wanted || !groups.are_recovered() {
        return;
    }
    let now = clock::now();
    let mark = mark(&settings, now);
    if now.saturating_since(mark.last) < DAY {
        return;
    }
    let gathered = gather(groups, &mark, now).await;
    // The mark is written first: otherwise a full disk would give the same digests again and again.
    if !note(&settings, &mark.after(now, &gathered.told, gathered.unread)) {
        return;
    }
    let (mut told, mut untold) = (0, 0);
    for (recipient, listed) in gathered.recipients {
        match send(groups, &settings, &recipient, &listed, now).await {
            Ok(()) => told += 1,
            Err(error) => {
                untold += 1;
                tracing::warn!(%error, recipient, "digest of the quarantine cannot be stored");
            }
        }
    }
    if told + untold > 0 {
        tracing::info!(told, untold, "recipients told of mail in the quarantine");
    }
}

/// Lists new messages for local recipients since the last digests, the oldest first.
async fn gather(groups: &Groups, mark: &Mark, now: Timestamp) -> Gathered {
    let mut gathered = Gathered::default();
    let mut count = 0;
    for (index, Found { aside, .. }) in all(groups).into_iter().enumerate() {
        breathe(index).await;
        let (id, accepted) = (aside.message.trace, aside.message.accepted);
        if aside.destination != Destination::LOCAL || !mark.is_new(id, accepted, now) {
            continue;
        }
        let (envelope, body) = match aside.read().await {
            Ok(Some(read)) => read,
            Ok(None) => continue,
            Err(_) => {
                let earlier = gathered.unread.map_or(accepted, |one| one.min(accepted));
                gathered.unread = Some(earlier);
                continue;
            }
        };
        gathered.told.push((id, accepted));
        let facts = Facts::of(&body);
        for recipient in envelope.mail.recipients {
            let listed = gathered.recipients.entry(recipient.address).or_default();
            if listed.entries.len() >= ENTRIES_MAX || count >= ENTRIES_IN_ALL_MAX {
                listed.more += 1;
                continue;
            }
            count += 1;
            listed.entries.push(Entry {
                id,
                since: accepted,
                from: shown(facts.from.as_deref().unwrap_or("(no From)")),
                subject: shown(facts.subject.as_deref().unwrap_or("(no Subject)")),
            });
        }
    }
    gathered
}

async fn send(
    groups: &Groups,
    settings: &Settings,
    recipient: &str,
    listed: &Listed,
    now: Timestamp,
) -> Result<(), SpoolError> {
    let process = groups.process();
    let trace = process.ids.next(now);
    let body = compose(settings, trace, recipient, listed, now);
    let body = signing::sign_report(process, Bytes::from(body)).await;
    let mail = Mail {
        body_type: match body.is_ascii() {
            true => BodyType::SevenBit,
            false => BodyType::EightBitMime,
        },
        smtputf8: !recipient.is_ascii(),
        recipients: vec![Recipient {
            address: recipient.to_owned(),
            notify: Notify::NEVER,
            orcpt: None,
        }],
        ..Mail::default()
    };
    let part = Part {
        destination: Destination::LOCAL,
        envelope: Envelope {
            head: ScheduleHead::new(trace, now, body.len()),
            mail,
        },
        body,
    };
    let (batch, lines) = (Batch::new(), Lines::new());
    groups.own.store(batch, vec![part], &lines).await?;
    process.metrics.all.quarantine.digests.inc();
    Ok(())
}

/// Writes the message.
fn compose(
    settings: &Settings,
    trace: TraceId,
    recipient: &str,
    listed: &Listed,
    now: Timestamp,
) -> String {
    let hostname = &settings.hostname;
    let domain = recipient.rsplit_once('@').map_or("", |(_, domain)| domain);
    let domain = if domain.is_empty() { hostname } else { domain };
    let count = listed.entries.len() + listed.more;
    let messages = if count == 1 { "message" } else { "messages" };
    let days = keep_for(settings).as_secs() / DAY.as_secs();
    let mut text = format!(
        "From: Mail system <postmaster@{domain}>\r\nTo: <{recipient}>\r\n\
         Subject: {count} new {messages} in the quarantine\r\nDate: {date}\r\n\
         Message-ID: <{trace}@{hostname}>\r\nAuto-Submitted: auto-generated\r\n\
         MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Transfer-Encoding: 8bit\r\n\r\n\
         This mail came for you, looks unwanted, and was kept aside. To get one of\r\n\
         the messages, send its id to postmaster@{domain}. Without that, each message\r\n\
         is removed after {days} days.\r\n\r\n\
         Names and subjects are as the senders wrote them, and may be forged.\r\n",
        date = now.rfc5322(),
    );
    for entry in &listed.entries {
        let Entry {
            id,
            since,
            from,
            subject,
        } = entry;
        let _ = write!(
            text,
            "\r\n{id}  {since}\r\n    From: {from}\r\n    Subject: {subject}\r\n"
        );
    }
    if listed.more > 0 {
        let _ = write!(text, "\r\nand {} more\r\n", listed.more);
    }
    text
}

/// A stranger's text in one line: cut, with escapes for unprintable characters.
fn shown(text: &str) -> String {
    let mut letters = text.chars();
    let mut out = String::new();
    for letter in letters.by_ref().take(CHARS_MAX) {
        match letter {
            '"' | '\'' | '\\' => out.push(letter),
            _ => out.extend(letter.escape_debug()),
        }
    }
    if letters.next().is_some() {
        out.push_str("...");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        let text = "version = 1\nhostname = \"mx.example.org\"\n";
        Settings::parse(text, "vere.toml").unwrap()
    }

    fn listed(count: usize, more: usize) -> Listed {
        let entry = |number: usize| Entry {
            id: TraceId::new(number as u64),
            since: Timestamp::from_millis(0),
            from: shown("\"Bank\" <a@b.example>\r\nBcc: c@d"),
            subject: shown(&"x".repeat(5_000)),
        };
        Listed {
            entries: (0..count).map(entry).collect(),
            more,
        }
    }

    #[test]
    fn a_digest_is_a_bounded_message_in_which_texts_of_strangers_are_harmless() {
        let now = Timestamp::from_millis(1_000);
        let compose =
            |listed: &Listed| compose(&settings(), TraceId::new(7), "ann@example.org", listed, now);
        let text = compose(&listed(1, 0));
        let (header, body) = text.split_once("\r\n\r\n").unwrap();
        for line in [
            "From: Mail system <postmaster@example.org>",
            "To: <ann@example.org>",
            "Subject: 1 new message in the quarantine",
            "Auto-Submitted: auto-generated",
        ] {
            assert!(header.lines().any(|one| one == line), "{header}");
        }
        assert!(
            body.contains("    From: \"Bank\" <a@b.example>\\r\\nBcc: c@d\r\n"),
            "{body}"
        );
        assert!(body.contains("removed after 30 days"), "{body}");
        let text = compose(&listed(ENTRIES_MAX, 23));
        assert!(text.contains("Subject: 123 new messages in the quarantine\r\n"));
        assert!(text.ends_with("\r\nand 23 more\r\n"), "{text}");
        assert!(text.len() < 100_000);
        assert!(
            text.split("\r\n")
                .all(|line| line.len() < 998 && !line.contains(['\r', '\n']))
        );
    }

    #[test]
    fn the_first_digests_leave_after_a_day_and_no_clock_brings_them_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = settings();
        settings.data = folder.path().to_owned();
        let day = |number: u64| Timestamp::from_millis(number * 86_400_000);
        let last = |now| mark(&settings, now).last;
        assert_eq!(last(day(5)), day(5));
        assert_eq!(last(day(6)), day(5));
        note(&settings, &Mark::at(day(400)));
        assert_eq!(last(day(7)), day(7), "the clock was ahead");
        assert_eq!(last(day(8)), day(7));
        std::fs::write(path(&settings), "x").unwrap();
        assert_eq!(last(day(9)), day(9));
    }

    /// The next digests tell of a message that was accepted before digests and stored while they were gathered, of one that could not be read,
    /// and of no other twice.
    #[test]
    fn every_message_is_in_the_digests_of_one_day() {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = settings();
        settings.data = folder.path().to_owned();
        let second = |number: u64| Timestamp::from_millis(number * 1_000);
        let day = |number: u64| second(number * 86_400);
        let id = TraceId::new;
        note(&settings, &Mark::at(day(1)));
        let first = mark(&settings, day(2));
        let early = day(1) + Duration::from_secs(5);
        let late = second(2 * 86_400 - 5);
        assert!(first.is_new(id(1), early, day(2)) && first.is_new(id(2), late, day(2)));
        assert!(!first.is_new(id(3), day(1), day(2)), "told the day before");
        assert!(!first.is_new(id(3), second(2 * 86_400 + 1), day(2)));
        note(
            &settings,
            &first.after(day(2), &[(id(1), early), (id(2), late)], None),
        );
        let next = mark(&settings, day(3));
        assert_eq!(next.last, day(2));
        for (number, accepted, is_new) in [
            (1, early, false),
            (2, late, false),
            // Stored after the look, accepted before the other one.
            (4, second(2 * 86_400 - 590), true),
            (5, day(2), true),
            (6, second(2 * 86_400 - 600), false),
        ] {
            assert_eq!(
                next.is_new(id(number), accepted, day(3)),
                is_new,
                "{number}"
            );
        }
        // A message of the evening cannot be read: the mark waits, and what was told stays told.
        let evening = second(2 * 86_400 + 40_000);
        let told = [(id(7), evening), (id(8), evening + Duration::from_secs(1))];
        note(&settings, &next.after(day(3), &told, Some(evening)));
        let last = mark(&settings, day(4));
        let is_new = |number| last.is_new(id(number), evening, day(4));
        assert!(is_new(9) && !is_new(7) && !is_new(8));
        // A file of an older program.
        std::fs::write(path(&settings), "172800000\n").unwrap();
        assert_eq!(mark(&settings, day(3)), Mark::at(day(2)));
    }
}
