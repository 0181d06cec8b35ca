//! What is asked of every system, and how each answer is timed.

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use super::imap::{Imap, ImapError, Reply};
use super::mail::Mail;
use super::report::Figure;
use super::systems::{RECIPIENTS, System};
use crate::process::Process;

/// The mailbox that is read.
pub(crate) const MAILBOX: &str = "Mail";
/// Its copy that messages are expunged from.
const EXPUNGED: &str = "Expunged";
/// Where messages are added one by one.
const APPENDED: &str = "Appended";

/// Connections that fill the mailbox.
const FILLERS: usize = 16;

/// A command whose reply is timed.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    /// What the figure is called.
    pub(crate) task: &'static str,
    pub(crate) command: String,
}

/// The questions that leave the mailbox as it is.
pub(crate) fn questions(mail: &Mail) -> Vec<Question> {
    let mut questions = Vec::new();
    let mut ask = |task, command: String| questions.push(Question { task, command });
    ask(
        "list",
        "FETCH 1:* (FLAGS INTERNALDATE RFC822.SIZE ENVELOPE)".to_owned(),
    );
    let fields = "FETCH 1:* (BODY.PEEK[HEADER.FIELDS (FROM TO SUBJECT DATE)])";
    ask("four fields", fields.to_owned());
    ask("all headers", "FETCH 1:* (BODY.PEEK[HEADER])".to_owned());
    ask("FROM", "SEARCH FROM \"linux\"".to_owned());
    ask("SUBJECT", "SEARCH SUBJECT \"kernel\"".to_owned());
    ask("SENTSINCE", "SEARCH SENTSINCE 1-Jan-2005".to_owned());
    ask("TEXT absent", "SEARCH TEXT \"zqxjkvwy\"".to_owned());
    for (task, share) in [
        ("TEXT 0.1 %", 0.001),
        ("TEXT 1 %", 0.01),
        ("TEXT 10 %", 0.1),
        ("TEXT 50 %", 0.5),
    ] {
        ask(task, format!("SEARCH TEXT \"{}\"", mail.word(share)));
    }
    for (task, share) in [
        ("BODY 0.1 %", 0.001),
        ("BODY 1 %", 0.01),
        ("BODY 10 %", 0.1),
    ] {
        ask(task, format!("SEARCH BODY \"{}\"", mail.word(share)));
    }
    questions
}

/// What the figure of a command counts: what is fetched, found or expunged.
fn counted(reply: &Reply) -> u64 {
    reply.fetched + reply.found + reply.expunged
}

fn millis(took: Duration) -> f64 {
    took.as_secs_f64() * 1_000.0
}

fn figure(system: &System, task: &'static str, value: f64) -> Figure {
    Figure {
        system: system.name,
        task,
        value,
        count: None,
    }
}

/// Fills the mailbox over several connections; the order of messages is not that of the file.
pub(crate) fn fill(system: &System, mail: &Mail) -> Result<Vec<Figure>, ImapError> {
    system.login()?.ok(&format!("CREATE {MAILBOX}"))?;
    let started = Instant::now();
    append_all(system, MAILBOX, &mail.messages, FILLERS)?;
    let rate = mail.messages.len() as f64 / started.elapsed().as_secs_f64();
    let mut figures = vec![figure(system, "filled, 16 connections", rate)];
    let octets = system.disk()? as f64 / (1024.0 * 1024.0);
    figures.push(figure(system, "disk", octets));
    Ok(figures)
}

/// Adds messages over some connections, each sending its next one when the last is acknowledged.
fn append_all(
    system: &System,
    mailbox: &str,
    messages: &[Vec<u8>],
    connections: usize,
) -> Result<(), ImapError> {
    std::thread::scope(|scope| {
        let share = messages.len().div_ceil(connections).max(1);
        let fill = |messages: &[Vec<u8>]| {
            let mut imap = system.login()?;
            for message in messages {
                imap.append(mailbox, message)?;
            }
            Ok(())
        };
        let running: Vec<_> = messages
            .chunks(share)
            .map(|messages| scope.spawn(move || fill(messages)))
            .collect();
        let mut ends = running.into_iter().map(|fill| fill.join());
        ends.try_for_each(|end| {
            end.unwrap_or_else(|_| Err(io::Error::other("a thread died").into()))
        })
    })
}

/// The first SELECT after a start.
pub(crate) fn first_select(system: &mut System) -> Result<Figure, ImapError> {
    system
        .restart()
        .map_err(|error| io::Error::other(error.to_string()))?;
    let mut imap = system.login()?;
    let reply = imap.ok(&format!("SELECT {MAILBOX}"))?;
    Ok(Figure {
        count: Some(reply.exists),
        ..figure(system, "first SELECT", millis(reply.took))
    })
}

/// Asks the questions once each.
pub(crate) fn read(system: &System, questions: &[Question]) -> Result<Vec<Figure>, ImapError> {
    let mut imap = system.login()?;
    imap.ok(&format!("EXAMINE {MAILBOX}"))?;
    let mut figures = Vec::new();
    for question in questions {
        let before = system.cpu();
        let reply = imap.ok(&question.command)?;
        if question.task == "list" {
            let cpu = system.cpu().saturating_sub(before);
            figures.push(figure(system, "list, CPU", millis(cpu)));
        }
        figures.push(Figure {
            count: Some(counted(&reply)),
            ..figure(system, question.task, millis(reply.took))
        });
    }
    Ok(figures)
}

/// Expunges 1 % and then 20 % of a copy of the mailbox, spread over it.
pub(crate) fn expunge(system: &System) -> Result<Vec<Figure>, ImapError> {
    let mut imap = system.login()?;
    let selected = imap.ok(&format!("SELECT {MAILBOX}"))?;
    imap.ok(&format!("CREATE {EXPUNGED}"))?;
    imap.ok(&format!("COPY 1:* {EXPUNGED}"))?;
    imap.ok(&format!("SELECT {EXPUNGED}"))?;
    let mut left = selected.exists;
    let mut figures = Vec::new();
    for (task, every) in [("expunge 1 %", 100), ("expunge 20 %", 5)] {
        let chosen: Vec<String> = (1..=left / every)
            .map(|n| (n * every).to_string())
            .collect();
        // In pieces that every server takes as one command.
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
    imap.ok(&format!("DELETE {EXPUNGED}"))?;
    Ok(figures)
}

/// Adds messages over one connection and over ten, into a mailbox that is empty at first.
pub(crate) fn append(system: &System, mail: &Mail, count: usize) -> Result<Vec<Figure>, ImapError> {
    let mut imap = system.login()?;
    imap.ok(&format!("CREATE {APPENDED}"))?;
    let mut figures = Vec::new();
    for (task, connections, count) in [
        ("APPEND, 1 connection", 1, count),
        ("APPEND, 10 connections", 10, count * 4),
    ] {
        let messages = &mail.messages[..count.min(mail.messages.len())];
        let started = Instant::now();
        append_all(system, APPENDED, messages, connections)?;
        let rate = messages.len() as f64 / started.elapsed().as_secs_f64();
        figures.push(figure(system, task, rate));
    }
    imap.ok(&format!("DELETE {APPENDED}"))?;
    Ok(figures)
}

/// How long after its acknowledgement a new message is told to a client that idles.
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

/// Delivers messages to fifteen mailboxes each over one LMTP connection.
pub(crate) fn deliver(
    system: &System,
    mail: &Mail,
    count: usize,
) -> Result<Vec<Figure>, ImapError> {
    let written = || {
        let processes = system.processes();
        processes.iter().filter_map(octets_written).sum::<u64>()
    };
    let messages = &mail.messages[..count.min(mail.messages.len())];
    let mut lmtp = Lmtp::connect(system)?;
    lmtp.deliver(&messages[0])?;
    let before = written();
    let started = Instant::now();
    for message in messages {
        lmtp.deliver(message)?;
    }
    let writes = messages.len() * RECIPIENTS;
    let rate = writes as f64 / started.elapsed().as_secs_f64();
    let kib = written().saturating_sub(before) as f64 / messages.len() as f64 / 1024.0;
    Ok(vec![
        figure(system, "delivered to 15", rate),
        figure(system, "written by delivery to 15", kib),
    ])
}

/// Octets that a process sent to disks.
fn octets_written(process: &Process) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{}/io", process.id)).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("write_bytes: "));
    line?.parse().ok()
}

/// An LMTP connection (RFC 2033) that sends each transaction in one piece.
struct Lmtp {
    reader: BufReader<TcpStream>,
    envelope: String,
}

impl Lmtp {
    fn connect(system: &System) -> io::Result<Self> {
        let stream = TcpStream::connect(system.lmtp)?;
        stream.set_nodelay(true)?;
        let mut envelope = "MAIL FROM:<sender@bench.test>\r\n".to_owned();
        for account in super::systems::accounts().skip(1) {
            envelope.push_str(&format!("RCPT TO:<{account}>\r\n"));
        }
        envelope.push_str("DATA\r\n");
        let mut lmtp = Self {
            reader: BufReader::new(stream),
            envelope,
        };
        lmtp.reply('2')?;
        lmtp.reader.get_mut().write_all(b"LHLO bench.test\r\n")?;
        lmtp.reply('2')?;
        Ok(lmtp)
    }

    fn reply(&mut self, class: char) -> io::Result<()> {
        let mut line = String::new();
        loop {
            line.clear();
            self.reader.read_line(&mut line)?;
            if !line.starts_with(class) {
                return Err(io::Error::other(format!("LMTP: {}", line.trim_end())));
            }
            if line.as_bytes().get(3) != Some(&b'-') {
                return Ok(());
            }
        }
    }

    fn deliver(&mut self, message: &[u8]) -> io::Result<()> {
        let envelope = std::mem::take(&mut self.envelope);
        let sent = self.reader.get_mut().write_all(envelope.as_bytes());
        self.envelope = envelope;
        sent?;
        for _ in 0..=RECIPIENTS {
            self.reply('2')?;
        }
        self.reply('3')?;
        let mut text = Vec::with_capacity(message.len() + 64);
        for line in message.split_inclusive(|octet| *octet == b'\n') {
            if line.starts_with(b".") {
                text.push(b'.');
            }
            text.extend_from_slice(line);
        }
        if !text.ends_with(b"\r\n") {
            text.extend_from_slice(b"\r\n");
        }
        text.extend_from_slice(b".\r\n");
        self.reader.get_mut().write_all(&text)?;
        for _ in 0..RECIPIENTS {
            self.reply('2')?;
        }
        Ok(())
    }
}

/// Memory that the system takes for a connection that has not logged in, and for one that idles. It is
/// started anew: what it let go of before would be used first, and not be seen.
pub(crate) fn memory(system: &mut System, count: usize) -> Result<Vec<Figure>, ImapError> {
    system
        .restart()
        .map_err(|error| io::Error::other(error.to_string()))?;
    let system = &*system;
    let resident = || {
        let processes = system.processes();
        processes.iter().filter_map(resident).sum::<u64>() as f64
    };
    let mut figures = Vec::new();
    // What the first connections make it allocate once is not theirs.
    let warm: Vec<Imap> = (0..10).map(|_| system.login()).collect::<Result<_, _>>()?;
    let before = resident();
    let fresh: Vec<Imap> = (0..count)
        .map(|_| Imap::connect_small(system.imap))
        .collect::<Result<_, _>>()?;
    let each = (resident() - before) / count as f64;
    figures.push(figure(system, "memory before login", each.max(0.0)));
    drop((fresh, warm));
    let before = resident();
    let mut idlers = Vec::with_capacity(count);
    for _ in 0..count {
        let mut imap = system.login_small()?;
        imap.ok("SELECT INBOX")?;
        imap.idle()?;
        idlers.push(imap);
    }
    let each = (resident() - before) / count as f64;
    figures.push(figure(system, "memory of IDLE", each.max(0.0)));
    // All of them are told of a message.
    let mut writer = system.login()?;
    let started = Instant::now();
    writer.append("INBOX", b"Subject: to all\r\n\r\nhello\r\n")?;
    for imap in &mut idlers {
        imap.wait_exists()?;
    }
    figures.push(figure(system, "all IDLE told", millis(started.elapsed())));
    Ok(figures)
}

/// Resident memory of a process in KiB.
fn resident(process: &Process) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{}/status", process.id)).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}
