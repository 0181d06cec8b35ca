//! A connection for watching a mailbox by IDLE (RFC 2177), or by NOOP at servers without IDLE.

use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::{Instant, sleep_until, timeout};
use vere_imap::client::{Command, Event, Response, Token};
use vere_ports::mail_accounts::{Answer, RequestId};
use vere_process::failure::Failure;

use crate::connection::Report;
use crate::folder::Folder;
use crate::link::{Link, deaf};

/// IDLE is begun anew before servers and routers forget the connection.
const RENEW: Duration = Duration::from_secs(4 * 60);

/// Pause between two NOOPs.
pub(crate) const POLL: Duration = Duration::from_secs(30);

/// Watches until the connection ends or the pool drops `requests`. The first request is answered at once: the mailbox
/// may have changed before the connection existed. A command may take as long as `patience`.
pub(crate) async fn run(
    number: usize,
    mut link: Link,
    folder: Folder,
    mailbox: String,
    patience: Duration,
    (requests, reports): (
        UnboundedReceiver<RequestId>,
        UnboundedSender<(usize, Report)>,
    ),
) {
    let name = folder.wire(&mailbox);
    let ended = match open(&mut link, name, patience).await {
        Ok(()) => watch((number, patience), &mut link, requests, &reports).await,
        Err(failure) => Err(failure),
    };
    if let Err(failure) = ended {
        let _ = reports.send((number, Report::Ended(failure.to_string(), None)));
    }
}

/// Opens the mailbox; created if absent.
async fn open(link: &mut Link, name: Vec<u8>, patience: Duration) -> Result<(), Failure> {
    let select = Command::Select(name.clone());
    let token = link.send(&select);
    if timed(link, token, patience).await? {
        return Ok(());
    }
    let create = link.send(&Command::Create {
        mailbox: name,
        special_use: None,
    });
    let token = link.send(&select);
    // Another session may have created the mailbox meanwhile.
    timed(link, create, patience).await?;
    match timed(link, token, patience).await? {
        true => Ok(()),
        false => Err(Failure::new("the mailbox to watch cannot be opened")),
    }
}

/// Waits for the end of a command; whether the server agreed.
async fn timed(link: &mut Link, token: Token, patience: Duration) -> Result<bool, Failure> {
    let status = timeout(patience, link.wait(token, &mut deaf)).await??;
    Ok(status.is_ok())
}

async fn watch(
    (number, patience): (usize, Duration),
    link: &mut Link,
    mut requests: UnboundedReceiver<RequestId>,
    reports: &UnboundedSender<(usize, Report)>,
) -> Result<(), Failure> {
    let idles = link.can("IDLE");
    let mut changed = true;
    let mut waiting: Vec<RequestId> = Vec::new();
    loop {
        let token = idles.then(|| link.machine().idle());
        let until = Instant::now() + if idles { RENEW } else { POLL };
        loop {
            if changed && !waiting.is_empty() {
                changed = false;
                let answers = waiting.drain(..).map(|id| (id, Ok(Answer::Changed)));
                if reports
                    .send((number, Report::Answers(answers.collect())))
                    .is_err()
                {
                    return Ok(());
                }
            }
            let mut heard = false;
            let mut hear = |event: Event<'_>| {
                heard |= matches!(event, Event::Said(Response::Exists(_)));
                Ok(())
            };
            tokio::select! {
                pumped = link.pump(&mut hear) => pumped?,
                request = requests.recv() => match request {
                    Some(request) => waiting.push(request),
                    None => return Ok(()),
                },
                () = sleep_until(until) => break,
            }
            changed |= heard;
        }
        let token = match token {
            Some(token) => {
                link.machine().end_idle();
                token
            }
            None => link.send(&Command::Noop),
        };
        let mut hear = |event: Event<'_>| {
            changed |= matches!(event, Event::Said(Response::Exists(_)));
            Ok(())
        };
        timeout(patience, link.wait(token, &mut hear)).await??;
    }
}
