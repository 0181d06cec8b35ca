//! The way into an account for a pool: login, and the namespace of the account's own mailboxes.

use std::time::Duration;

use tokio::time::timeout;
use vere_imap::client::{Command, Event, Namespace, Response};
use vere_process::failure::Failure;

use crate::dial::{DialError, dial_within};
use crate::link::Link;
use crate::remote::Remote;

/// Connects, logs in, and learns where the account's own mailboxes are.
pub(crate) async fn enter(
    remote: &Remote,
    known: Option<Namespace>,
    longest: Duration,
) -> Result<(Link, Namespace), DialError> {
    let mut link = dial_within(remote, Some(longest)).await?;
    let namespace = match known {
        Some(namespace) => namespace,
        None => timeout(longest, namespace(&mut link))
            .await
            .map_err(Failure::from)??,
    };
    Ok((link, namespace))
}

async fn namespace(link: &mut Link) -> Result<Namespace, Failure> {
    let mut own = None;
    let mut delimiter = None;
    if link.can("NAMESPACE") {
        let mut hear = |event: Event<'_>| {
            if let Event::Said(Response::Namespace(said)) = event {
                own = said;
            }
            Ok(())
        };
        let token = link.send(&Command::Namespace);
        link.wait(token, &mut hear).await?;
    }
    if let Some(own) = own {
        return Ok(own);
    }
    let mut hear = |event: Event<'_>| {
        if let Event::Said(Response::Listed(one)) = event {
            delimiter = one.delimiter;
        }
        Ok(())
    };
    // RFC 9051 section 6.3.9: an empty pattern asks for the delimiter.
    let token = link.send(&Command::ListMatching(Vec::new()));
    link.wait(token, &mut hear).await?;
    // A refusal leaves a server without levels.
    Ok(Namespace {
        prefix: Vec::new(),
        delimiter,
    })
}
