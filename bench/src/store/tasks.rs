//! The tasks of every system, and the timing of answers.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use super::imap::{Imap, ImapError, Reply};
use super::queries::Question;
use super::report::{Answer, Figure};
use super::systems::{SMALL, System};

/// The mailbox for reading.
pub(crate) const MAILBOX: &str = "Mail";
/// A mailbox with the first messages only.
pub(crate) const FEW: &str = "Few";
/// The copy for EXPUNGE.
const EXPUNGED: &str = "Expunged";
/// The mailbox for single APPENDs.
const APPENDED: &str = "Appended";

/// The count of a command: messages fetched, found or expunged.
fn counted(reply: &Reply) -> u64 {
    reply.fetched + reply.found.len() as u64 + reply.expunged
}

pub(crate) fn millis(took: Duration) -> f64 {
    took.as_secs_f64() * 1_000.0
}

pub(crate) fn figure(system: &System, task: &'static str, value: f64) -> Figure {
    Figure::new(system.name, task, value)
}

/// Adds messages over some connections, each connection with one message at a time.
fn append_each(
    system: &System,
    mailbox: &str,
    messages: &[Vec<u8>],
    connections: usize,
) -> Result<(), ImapError> {
    let share = messages.len().div_ceil(connections).max(1);
    let parts: Vec<_> = messages.chunks(share).collect();
    side_by_side(parts.len(), |place| {
        let mut imap = system.login()?;
        for message in parts[place] {
            imap.append(mailbox, message)?;
        }
        Ok(())
    })
}

/// Runs `act` in `count` threads at once; returns the error of a failed thread.
pub(crate) fn side_by_side<F>(count: usize, act: F) -> Result<(), ImapError>
where
    F: Fn(usize) -> Result<(), ImapError> + Sync,
{
    let act = &act;
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..count)
            .map(|place| scope.spawn(move || act(place)))
            .collect();
        let mut ends = running.into_iter().map(|one| one.join());
        ends.try_for_each(|end| {
            end.unwrap_or_else(|_| Err(io::Error::other("a thread died").into()))
        })
    })
}

/// Starts a system anew.
pub(crate) fn restart(system: &mut System) -> Result<(), ImapError> {
    let restarted = system.restart();
    restarted.map_err(|error| io::Error::other(error.to_string()).into())
}

/// The first SELECT after a start.
pub(crate) fn first_select(system: &mut System) -> Result<Figure, ImapError> {
    restart(system)?;
    let mut imap = system.login()?;
    let reply = imap.ok(&format!("SELECT {}", system.mailbox(MAILBOX)))?;
    Ok(Figure {
        count: Some(reply.exists),
        ..figure(system, "first SELECT", millis(reply.took))
    })
}

/// Asks each question once, and returns every reply with its figure.
pub(crate) fn ask(
    system: &System,
    imap: &mut Imap,
    questions: &[Question],
) -> Result<Vec<(Figure, Reply)>, ImapError> {
    let ask = |question: &Question| {
        let before = system.cpu();
        let reply = imap.ok(&question.command)?;
        let cpu = system.cpu().saturating_sub(before);
        let found = Figure {
            count: Some(counted(&reply)),
            cpu: Some(millis(cpu)),
            ..figure(system, question.task, millis(reply.took))
        };
        Ok((found, reply))
    };
    questions.iter().map(ask).collect()
}

/// Asks the questions of the large mailbox.
pub(crate) fn read(
    system: &System,
    questions: &[Question],
) -> Result<Vec<(Figure, Reply)>, ImapError> {
    let mut imap = system.login()?;
    imap.ok(&format!("EXAMINE {}", system.mailbox(MAILBOX)))?;
    ask(system, &mut imap, questions)
}

/// Asks the questions of the small account.
pub(crate) fn read_small(
    system: &System,
    questions: &[Question],
) -> Result<Vec<Figure>, ImapError> {
    let mut imap = system.login_as(SMALL)?;
    imap.ok(&format!("EXAMINE {}", system.small_mailbox()))?;
    let answered = ask(system, &mut imap, questions)?;
    Ok(answered.into_iter().map(|(figure, _)| figure).collect())
}

/// The questions for a freshly started system with files outside of memory.
const COLD: [(&str, &str); 4] = [
    ("list", "cold: list"),
    ("all headers", "cold: all headers"),
    ("FROM", "cold: FROM"),
    ("TEXT 1 %", "cold: TEXT 1 %"),
];

/// Asks these questions, each of a system started anew after the kernel let go of all files.
pub(crate) fn cold(system: &mut System, questions: &[Question]) -> Result<Vec<Figure>, ImapError> {
    let mut figures = Vec::new();
    for (warm, task) in COLD {
        let Some(question) = questions.iter().find(|question| question.task == warm) else {
            continue;
        };
        nix::unistd::sync();
        std::fs::write("/proc/sys/vm/drop_caches", "1")?;
        restart(system)?;
        let question = Question {
            task,
            command: question.command.clone(),
        };
        figures.extend(
            read(system, &[question])?
                .into_iter()
                .map(|(figure, _)| figure),
        );
    }
    Ok(figures)
}

/// Number of clients that ask at once.
const CLIENTS: usize = 10;

/// Distance in pages between two successive views of a client.
const CLIENT_STRIDE: usize = 7;

/// Several clients at once, each looking through the mailbox for so long: answers per second. A round is a page of
/// a list, a message and two searches; what was asked when the time is over is waited for and counts.
pub(crate) fn clients(
    system: &System,
    questions: &[Question],
    time: Duration,
) -> Result<Vec<Figure>, ImapError> {
    let searches = ["FROM", "TEXT 1 %"].map(|task| questions.iter().find(|one| one.task == task));
    let searches: Vec<&str> = searches
        .into_iter()
        .flatten()
        .map(|one| &*one.command)
        .collect();
    let pages = system.numbers.len().div_ceil(50).max(1);
    let answers = AtomicUsize::new(0);
    let (before, started) = (system.cpu(), Instant::now());
    side_by_side(CLIENTS, |client| {
        let mut imap = system.login()?;
        imap.ok(&format!("EXAMINE {}", system.mailbox(MAILBOX)))?;
        let begins = client * pages / CLIENTS;
        for round in 0.. {
            let first = 1 + (begins + round * CLIENT_STRIDE) % pages * 50;
            let page = (first + 49).min(system.numbers.len().max(1));
            let page = format!("FETCH {first}:{page} (UID FLAGS RFC822.SIZE ENVELOPE)");
            let message = format!("FETCH {first} (BODY.PEEK[])");
            let fetches = [&*page, &*message];
            for command in fetches.iter().chain(&searches) {
                imap.ok(command)?;
                answers.fetch_add(1, Ordering::Relaxed);
                if started.elapsed() >= time {
                    return Ok(());
                }
            }
        }
        Ok(())
    })?;
    let answers = answers.into_inner() as f64;
    let cpu = millis(system.cpu().saturating_sub(before)) / answers;
    let rate = answers / started.elapsed().as_secs_f64();
    Ok(vec![Figure {
        cpu: Some(cpu),
        ..figure(system, "10 clients at once", rate)
    }])
}

/// The messages found, by number in the mail; `numbers` has the number of each message of the mailbox.
pub(crate) fn answer(
    system: &'static str,
    numbers: &[u32],
    figure: &Figure,
    reply: &Reply,
) -> Option<Answer> {
    if reply.fetched > 0 {
        return None;
    }
    let places = reply.found.iter().filter_map(|found| found.checked_sub(1));
    let known = places.filter_map(|place| numbers.get(place as usize));
    let mut hits: Vec<u32> = known.copied().collect();
    hits.sort_unstable();
    let task = figure.task;
    Some(Answer { system, task, hits })
}

/// Expunges 1 % and then 20 % of a copy of the mailbox, spread over the mailbox.
pub(crate) fn expunge(system: &System) -> Result<Vec<Figure>, ImapError> {
    let mut imap = system.login()?;
    let expunged = system.mailbox(EXPUNGED);
    let selected = imap.ok(&format!("SELECT {}", system.mailbox(MAILBOX)))?;
    imap.ok(&format!("CREATE {expunged}"))?;
    imap.ok(&format!("COPY 1:* {expunged}"))?;
    imap.ok(&format!("SELECT {expunged}"))?;
    let mut left = selected.exists;
    let mut figures = Vec::new();
    for (task, every) in [("expunge 1 %", 100), ("expunge 20 %", 5)] {
        let chosen: Vec<String> = (1..=left / every)
            .map(|n| (n * every).to_string())
            .collect();
        // In pieces that every server accepts as a command.
        for chosen in chosen.chunks(500) {
            let chosen = chosen.join(",");
            imap.ok(&format!("STORE {chosen} +FLAGS.SILENT (\\Deleted)"))?;
        }
        let reply = imap.ok("EXPUNGE")?;
        left -= reply.expunged;
        figures.push(Figure {
            count: Some(reply.expunged),
            ..figure(system, task, millis(reply.took))
        });
    }
    imap.ok("CLOSE")?;
    imap.ok(&format!("DELETE {expunged}"))?;
    Ok(figures)
}

/// Adds messages over one connection and over ten, into an empty mailbox.
pub(crate) fn append(
    system: &System,
    mail: &[Vec<u8>],
    count: usize,
) -> Result<Vec<Figure>, ImapError> {
    let mut imap = system.login()?;
    let mailbox = system.mailbox(APPENDED);
    imap.ok(&format!("CREATE {mailbox}"))?;
    let mut figures = Vec::new();
    for (task, connections, count) in [
        ("APPEND, 1 connection", 1, count),
        ("APPEND, 10 connections", 10, count * 4),
    ] {
        let messages = &mail[..count.min(mail.len())];
        let started = Instant::now();
        append_each(system, &mailbox, messages, connections)?;
        let rate = messages.len() as f64 / started.elapsed().as_secs_f64();
        figures.push(figure(system, task, rate));
    }
    imap.ok(&format!("DELETE {mailbox}"))?;
    Ok(figures)
}

/// The delay between the acknowledgement of a new message and its notification to an idle client.
pub(crate) fn idle(system: &System, count: usize) -> Result<Vec<Figure>, ImapError> {
    let mut writer = system.login()?;
    let mut idler = system.login()?;
    idler.ok("SELECT INBOX")?;
    idler.idle()?;
    let message = b"Subject: notice\r\n\r\nhello\r\n";
    let mut figures = Vec::new();
    std::thread::scope(|scope| {
        let (told, notices) = channel();
        let waiting = scope.spawn(move || {
            for _ in 0..count {
                if told.send(idler.wait_exists()?).is_err() {
                    break;
                }
            }
            idler.done()
        });
        for _ in 0..count {
            writer.append("INBOX", message)?;
            let acknowledged = Instant::now();
            let Ok(notice) = notices.recv() else { break };
            let delay = notice.saturating_duration_since(acknowledged);
            figures.push(figure(system, "IDLE notice", millis(delay)));
        }
        waiting
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("a thread died").into()))
    })?;
    Ok(figures)
}
