//! Filling of the systems with the same mail, fast, and the assignment of messages to their numbers afterwards.
//!
//! Several connections add messages, many by one command where the server has MULTIAPPEND, else many
//! commands in a row before the first answer. A system that is not worth waiting for gets files. The
//! order within the mailbox is the system's; each message has a separate date to be known by.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use super::imap::{Imap, ImapError};
use super::mail::{Mail, internal_date, internal_seconds, number_of};
use super::report::Figure;
use super::systems::{Files, READER, SMALL, System, give_to_nobody, run};
use super::tasks::{FEW, MAILBOX, figure};
use super::usage;

/// Connections that fill a mailbox.
const FILLERS: usize = 8;

/// Messages, and octets of messages, sent before the client waits for an answer.
const BATCH_MESSAGES: usize = 64;
const BATCH_OCTETS: usize = 4 * 1024 * 1024;

/// Fills both accounts: first the small mailbox with the first `small` messages, then the large mailbox, which in a
/// partial system gets the first `few` messages.
pub(crate) fn fill(
    system: &mut System,
    mail: &Mail,
    small: usize,
    few: usize,
) -> Result<Vec<Figure>, ImapError> {
    let small = first(mail, small);
    let messages = match system.is_partial {
        true => first(mail, few),
        false => &mail.messages,
    };
    add(system, SMALL, &system.small_mailbox(), small)?;
    let mailbox = system.mailbox(MAILBOX);
    let (before, cpu, started) = (
        usage::written(&system.processes()),
        system.cpu(),
        Instant::now(),
    );
    let refused = add(system, READER, &mailbox, messages)?;
    let count = messages.len() as f64;
    let rate = count / started.elapsed().as_secs_f64();
    let indexing = Instant::now();
    system.index()?;
    let indexed = indexing.elapsed().as_secs_f64();
    system.numbers = numbers(system, &mailbox, messages.len() - refused)?;
    let cpu = system.cpu().saturating_sub(cpu).as_secs_f64() * 1e6 / count;
    let written = usage::written(&system.processes()).saturating_sub(before) as f64;
    let mut figures = vec![figure(system, "refused", refused as f64)];
    if !system.is_partial {
        figures.extend(disk(system)?);
    }
    if system.files().is_none() {
        figures.push(figure(system, "filled", rate));
        figures.push(figure(system, "filled, CPU", cpu));
        figures.push(figure(system, "filled, written", written / MIB));
    }
    if system.has_index_made() {
        figures.push(figure(system, "indexed apart", indexed));
    }
    Ok(figures)
}

/// Disk use of a system, and the parts of the sum, where the index lies apart or the system reserves space before a
/// write.
fn disk(system: &System) -> io::Result<Vec<Figure>> {
    let all = system.disk()?;
    let (index, ahead) = (system.index_disk()?, system.disk_ahead()?);
    let apart = index.unwrap_or_default() + ahead.unwrap_or_default();
    let parts = [
        ("disk", Some(all)),
        ("disk, mail", Some(all.saturating_sub(apart))),
        ("disk, index", index),
        ("disk, room ahead", ahead),
    ];
    let parts = parts.into_iter();
    let figures = parts.filter_map(|(task, octets)| Some((task, octets? as f64 / MIB)));
    Ok(figures
        .map(|(task, mib)| figure(system, task, mib))
        .collect())
}

/// Gives our system a mailbox of the first messages only, for the comparison with a partial system.
pub(crate) fn fill_part(
    system: &mut System,
    mail: &Mail,
    few: usize,
) -> Result<Vec<Figure>, ImapError> {
    let (mailbox, messages) = (system.mailbox(FEW), first(mail, few));
    let refused = add(system, READER, &mailbox, messages)?;
    system.part_numbers = numbers(system, &mailbox, messages.len() - refused)?;
    Ok(Vec::new())
}

/// The first messages, or all.
fn first(mail: &Mail, count: usize) -> &[Vec<u8>] {
    mail.messages.get(..count).unwrap_or(&mail.messages)
}

/// Octets of a MiB.
pub(super) const MIB: f64 = 1024.0 * 1024.0;

/// Creates a mailbox of some messages; returns the number of messages that the system refused.
pub(crate) fn add(
    system: &System,
    user: &str,
    mailbox: &str,
    messages: &[Vec<u8>],
) -> Result<usize, ImapError> {
    let mut imap = system.login_as(user)?;
    imap.ok(&format!("CREATE {mailbox}"))?;
    match system.files() {
        Some(files) => Ok(put(files, user, mailbox, messages).map(|()| 0)?),
        None => extend(system, user, mailbox, 0, messages),
    }
}

/// Adds messages to a mailbox behind its present messages; returns the number of messages that the system refused.
pub(crate) fn extend(
    system: &System,
    user: &str,
    mailbox: &str,
    present: usize,
    messages: &[Vec<u8>],
) -> Result<usize, ImapError> {
    let at_once = system.login_as(user)?.can("MULTIAPPEND")?;
    let share = messages.len().div_ceil(FILLERS).max(1);
    std::thread::scope(|scope| {
        let fill = move |first, messages: &[Vec<u8>]| {
            let mut imap = system.login_as(user)?;
            let mut refused = 0;
            for batch in batches(first, messages) {
                refused += append(&mut imap, mailbox, &batch, at_once)?;
            }
            Ok(refused)
        };
        let running: Vec<_> = messages
            .chunks(share)
            .enumerate()
            .map(|(place, messages)| scope.spawn(move || fill(present + place * share, messages)))
            .collect();
        let ends = running.into_iter().map(|fill| fill.join());
        ends.map(|end| end.unwrap_or_else(|_| Err(io::Error::other("a thread died").into())))
            .sum()
    })
}

/// Messages with their dates, in batches sent without waiting; the number of the first message is `first`.
fn batches(first: usize, messages: &[Vec<u8>]) -> Vec<Vec<(String, &[u8])>> {
    let mut batches: Vec<Vec<(String, &[u8])>> = Vec::new();
    let mut octets = 0;
    for (place, message) in messages.iter().enumerate() {
        let full = batches
            .last()
            .is_none_or(|batch| batch.len() == BATCH_MESSAGES);
        if full || octets + message.len() > BATCH_OCTETS {
            batches.push(Vec::new());
            octets = 0;
        }
        octets += message.len();
        if let Some(batch) = batches.last_mut() {
            batch.push((internal_date(first + place), message));
        }
    }
    batches
}

/// Adds messages; gives how many were refused.
fn append(
    imap: &mut Imap,
    mailbox: &str,
    batch: &[(String, &[u8])],
    at_once: bool,
) -> Result<usize, ImapError> {
    if at_once {
        match imap.append_at_once(mailbox, batch) {
            // The system refuses a message of the batch; single commands show which message.
            Err(ImapError::Refused { .. }) => {}
            reply => return reply.map(|_| 0),
        }
    }
    let replies = imap.append_in_a_row(mailbox, batch)?;
    Ok(replies.iter().filter(|reply| reply.is_err()).count())
}

/// Copies messages as files into an existing mailbox.
fn put(files: &Files, user: &str, mailbox: &str, messages: &[Vec<u8>]) -> io::Result<()> {
    match files {
        Files::Maildir(maildir) => {
            let name = mailbox.trim_start_matches("INBOX.");
            let folder = maildir.join(format!(".{name}/cur"));
            put_files(&folder, messages, "\n", |number| {
                format!("{}.M{number}P1.bench:2,", internal_seconds(number))
            })
        }
        Files::Cyrus { tell, take } => {
            let mailbox = format!("user/{user}/{mailbox}");
            let folder = String::from_utf8_lossy(&run(tell, Some(&mailbox))?).into_owned();
            let folder = Path::new(folder.trim_end());
            put_files(folder, messages, "\r\n", |number| {
                format!("{}.", number + 1)
            })?;
            run(take, Some(&mailbox)).map(drop)
        }
    }
}

/// Writes messages into a directory, with their dates and the line ends of the system.
fn put_files(
    folder: &Path,
    messages: &[Vec<u8>],
    end: &str,
    name: impl Fn(usize) -> String,
) -> io::Result<()> {
    for (number, message) in messages.iter().enumerate() {
        let mut text = Vec::with_capacity(message.len());
        for line in message.split_inclusive(|octet| *octet == b'\n') {
            match line.strip_suffix(b"\r\n") {
                Some(line) => text.extend(line.iter().chain(end.as_bytes())),
                None => text.extend_from_slice(line),
            }
        }
        let path = folder.join(name(number));
        fs::write(&path, text)?;
        let date = SystemTime::UNIX_EPOCH + Duration::from_secs(internal_seconds(number));
        File::options()
            .write(true)
            .open(&path)?
            .set_modified(date)?;
        give_to_nobody(&path)?;
    }
    Ok(())
}

/// The number of each message of a mailbox, in the order of the mailbox, whose size must be `expected`.
fn numbers(system: &System, mailbox: &str, expected: usize) -> Result<Vec<u32>, ImapError> {
    let mut imap = system.login()?;
    imap.ok(&format!("EXAMINE {mailbox}"))?;
    let responses = imap.responses("FETCH 1:* (INTERNALDATE)")?;
    let numbers: Vec<u32> = responses
        .iter()
        .filter_map(|line| number_of(line))
        .collect();
    match numbers.len() == expected {
        true => Ok(numbers),
        false => Err(ImapError::Count {
            expected,
            found: numbers.len(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_bounded_and_lose_nothing() {
        let messages: Vec<Vec<u8>> = (0..200).map(|number| vec![b'x'; number]).collect();
        let sizes = |batches: &[Vec<(String, &[u8])>]| -> Vec<usize> {
            batches.iter().map(Vec::len).collect()
        };
        let cut = batches(0, &messages);
        assert_eq!(sizes(&cut), [64, 64, 64, 8]);
        assert_eq!(cut[1][0], (internal_date(64), &messages[64][..]));
        let large = vec![vec![0; BATCH_OCTETS / 2]; 3];
        assert_eq!(sizes(&batches(7, &large)), [2, 1]);
        assert_eq!(
            sizes(&batches(0, &[vec![0; BATCH_OCTETS * 2], vec![1]])),
            [1, 1]
        );
    }

    #[test]
    fn files_have_dates_and_the_ends_of_lines_that_are_wanted() {
        if !nix::unistd::geteuid().is_root() {
            eprintln!("skipped: files are given to another user, which only root may do");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let message = [b"A: b\r\n\r\nc\rd\r\n".to_vec()];
        let name = |number| format!("m{number}");
        put_files(folder.path(), &message, "\n", name).unwrap();
        let path = folder.path().join("m0");
        assert_eq!(fs::read(&path).unwrap(), b"A: b\n\nc\rd\n");
        let date = fs::metadata(&path).unwrap().modified().unwrap();
        let since = date.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(since.as_secs(), internal_seconds(0));
    }
}
