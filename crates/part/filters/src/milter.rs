//! Milters: the machine of [`vere_milter`] over a stream.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use vere_milter::{Client, Ending, Limits, Session, Verdict as Decision};

use crate::address::Address;
use crate::bounds::Bounds;
use crate::failure::Failure;
use crate::outcome::{Outcome, Verdict};
use crate::stream::{Stream, connect};

/// Shows a message to a milter.
pub(crate) async fn ask(
    address: &Address,
    bounds: &Bounds,
    body_max: usize,
    message: &[u8],
    session: &Session<'_>,
) -> Result<Outcome, Failure> {
    let limits = Limits {
        changes: bounds.changes,
        octets: bounds.change_octets,
        body: body_max,
    };
    let mut stream = connect(address).await?;
    let client = Client::new(*session, message, limits);
    let ending = talk(&mut stream, client).await?;
    Ok(outcome(ending))
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

fn outcome(ending: Ending) -> Outcome {
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
