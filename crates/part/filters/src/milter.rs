//! Milters: the machine of [`vere_milter`] over a stream, and connections that are used again.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Instant;
use vere_milter::{Client, Ending, Limits, Options, Session, Verdict as Decision};

use crate::address::Address;
use crate::bounds::Bounds;
use crate::failure::Failure;
use crate::outcome::{Outcome, Verdict};
use crate::stream::{Stream, connect};

/// Idle connections that are kept.
const KEPT_MAX: usize = 8;
/// How long an idle connection is kept.
const KEPT_FOR: Duration = Duration::from_secs(30);

/// Connections on which a milter waits for another client.
#[derive(Debug, Default)]
pub(crate) struct Connections(Mutex<Vec<Kept>>);

#[derive(Debug)]
struct Kept {
    stream: Box<dyn Stream>,
    options: Options,
    since: Instant,
}

impl Connections {
    fn take(&self) -> Option<Kept> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|kept| kept.since.elapsed() < KEPT_FOR);
        kept.pop()
    }

    fn keep(&self, stream: Box<dyn Stream>, options: Options) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT_MAX {
            let since = Instant::now();
            kept.push(Kept {
                stream,
                options,
                since,
            });
        }
    }
}

/// Shows a message to a milter.
pub(crate) async fn ask(
    address: &Address,
    bounds: &Bounds,
    body_max: usize,
    kept: &Connections,
    message: &[u8],
    session: &Session<'_>,
) -> Result<Outcome, Failure> {
    let limits = Limits {
        changes: bounds.changes,
        octets: bounds.change_octets,
        body: body_max,
    };
    if let Some(Kept {
        mut stream,
        options,
        ..
    }) = kept.take()
    {
        let client = Client::new(*session, message, limits, Some(options), true);
        match talk(&mut stream, client).await {
            Ok(ending) => return Ok(settle(ending, stream, kept)),
            // The milter closed an idle connection; a new connection says whether the milter lives.
            Err(Failure::Closed(_) | Failure::Broken { .. }) => {}
            Err(failure) => return Err(failure),
        }
    }
    let mut stream = connect(address).await?;
    let client = Client::new(*session, message, limits, None, true);
    let ending = talk(&mut stream, client).await?;
    Ok(settle(ending, stream, kept))
}

async fn talk(stream: &mut Box<dyn Stream>, mut client: Client<'_>) -> Result<Ending, Failure> {
    let mut piece = vec![0; 16 * 1024];
    loop {
        while let Some(octets) = client.output() {
            let written = stream.write_all(&octets).await;
            // The end is a courtesy: the verdict is there.
            if !client.is_over() {
                written.map_err(|error| Failure::writing(&error))?;
            }
        }
        if client.is_over() {
            break;
        }
        let read = stream.read(&mut piece).await;
        let read = read.map_err(|error| Failure::reading(&error))?;
        if read == 0 {
            let event = client.waits_for();
            let event = event.map_or("the negotiation".to_owned(), |event| event.to_string());
            return Err(Failure::Closed(format!("the answer to {event}")));
        }
        client.input(piece.get(..read).unwrap_or_default())?;
    }
    let none = || Failure::Closed("the verdict".to_owned());
    client.end().ok_or_else(none)
}

fn settle(ending: Ending, stream: Box<dyn Stream>, kept: &Connections) -> Outcome {
    if let Some(options) = ending.options {
        kept.keep(stream, options);
    }
    let verdict = match ending.verdict {
        Decision::Accept => Verdict::Accept,
        Decision::Discard => Verdict::Quarantine("discarded by the filter".to_owned()),
        Decision::Quarantine(reason) => Verdict::Quarantine(reason),
        Decision::Refuse(_, recipient, refusal) => {
            let text = match recipient {
                Some(recipient) if refusal.text.is_empty() => format!("recipient <{recipient}>"),
                Some(recipient) => format!("{} (recipient <{recipient}>)", refusal.text),
                None => refusal.text,
            };
            match refusal.temporary {
                true => Verdict::Defer(text),
                false => Verdict::Reject(text),
            }
        }
    };
    Outcome {
        changes: ending.changes,
        ..Outcome::new(verdict)
    }
}
