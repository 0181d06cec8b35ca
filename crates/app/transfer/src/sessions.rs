//! Sessions with the local store and with other servers, and the way of messages into them.

use std::io;
use std::path::Path;

use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use vere_accounts::{DialError, Link, Remote, dial};
use vere_imap::client::{AppendTo, Condition, Token};
use vere_process::failure::Failure;

use super::message::Message;

/// Opens the mailboxes of an account of the local store.
///
/// # Errors
/// When the store does not run, refuses the user, or does not know the account.
pub(super) async fn local(socket: &Path, account: &str) -> Result<Link, Failure> {
    let stream = UnixStream::connect(socket).await;
    let mut stream = stream.map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                "; is the mail store running (vere serve, with [imap], [imaps] or [lmtp])?"
            }
            io::ErrorKind::PermissionDenied => "; run this as the user that vere runs as",
            _ => "",
        };
        Failure::new(format!(
            "cannot open the mail store at {}: {error}{hint}",
            socket.display()
        ))
    })?;
    stream.write_all(format!("{account}\n").as_bytes()).await?;
    let mut link = Link::over(Box::new(stream));
    let greeting = link.greeted().await?;
    match greeting.condition {
        Condition::PreAuth => Ok(link),
        _ => Err(Failure::new(format!("{account}: {}", greeting.text))),
    }
}

/// Connects to an account anywhere and logs in.
///
/// # Errors
/// As [`dial`], with a hint for a certificate of a private CA.
pub(super) async fn remote(remote: &Remote) -> Result<Link, Failure> {
    dial(remote).await.map_err(|error| match error {
        DialError::UnknownCa(error) => {
            Failure::new(format!("{error}; --ca FILE names one that is trusted too"))
        }
        error => Failure::new(error.to_string()),
    })
}

/// Sends a message to add, without waiting for the end of the command.
pub(super) async fn append(
    link: &mut Link,
    to: &AppendTo,
    message: &mut Message,
) -> Result<Token, Failure> {
    let token = link.append_several(to, message.size, 1);
    give(link, token, message).await?;
    Ok(token)
}

/// Sends messages to be added in one transaction, without waiting for the response.
pub(super) async fn append_several(
    link: &mut Link,
    messages: &mut [(AppendTo, &mut Message)],
) -> Result<Option<Token>, Failure> {
    let count = messages.len();
    let Some(((to, first), others)) = messages.split_first_mut() else {
        return Ok(None);
    };
    let token = link.append_several(to, first.size, count);
    give(link, token, first).await?;
    for (to, message) in others {
        link.append_next(to, message.size);
        give(link, token, message).await?;
    }
    Ok(Some(token))
}

async fn give(link: &mut Link, token: Token, message: &mut Message) -> Result<(), Failure> {
    message.rewind()?;
    link.give(token, |buffer| message.read(buffer)).await
}
