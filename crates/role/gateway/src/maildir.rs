//! Delivers to the mailboxes of this system.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

use bytes::Bytes;
use tokio::task::spawn_blocking;
use vere_disk::maildir::{MaildirMessage, deliver, maildir_path};
use vere_queue::{Attempt, Disposition, Envelope, RecipientResult};

use super::process::Process;

/// Files a message into the mailboxes of its recipients; `None` when the process ends meanwhile.
pub(super) async fn file(
    process: Rc<Process>,
    envelope: Rc<Envelope>,
    body: Bytes,
) -> Option<Attempt> {
    let template = process.settings().delivery.maildir.clone();
    let files = files(&envelope, &template);
    let begun = Instant::now();
    let filed = spawn_blocking(move || {
        files
            .into_iter()
            .map(|file| file.map(|file| file.write(&body)))
            .collect::<Vec<_>>()
    });
    // The blocking task never panics; it is cancelled only when the process ends.
    let results = filed.await.ok()?.into_iter().map(result_of).collect();
    process.metrics.transaction(begun.elapsed());
    Some(Attempt {
        remote: "local".to_owned(),
        reports_taken_over: false,
        results,
    })
}

/// A file to write for one recipient.
struct MailboxFile {
    directory: PathBuf,
    name: String,
    prefix: String,
}

impl MailboxFile {
    fn write(&self, body: &Bytes) -> std::io::Result<()> {
        let message = MaildirMessage {
            name: &self.name,
            prefix: self.prefix.as_bytes(),
            body,
        };
        deliver(&self.directory, &message)
    }
}

/// One file per recipient; `None` for an address without domain, which no queue should hold.
fn files(envelope: &Envelope, template: &str) -> Vec<Option<MailboxFile>> {
    let return_path = envelope.mail.reverse_path.as_deref().unwrap_or_default();
    envelope
        .mail
        .recipients
        .iter()
        .map(|recipient| {
            let (local_part, domain) = recipient.address.rsplit_once('@')?;
            Some(MailboxFile {
                directory: maildir_path(template, local_part, domain),
                name: format!(
                    "{}.{}.vere",
                    envelope.head.accepted.as_millis() / 1000,
                    envelope.head.trace
                ),
                prefix: format!(
                    "Return-Path: <{return_path}>\nDelivered-To: {}\n",
                    recipient.address
                ),
            })
        })
        .collect()
}

fn result_of(filed: Option<std::io::Result<()>>) -> RecipientResult {
    let (disposition, status, reply) = match filed {
        Some(Ok(())) => (
            Disposition::Delivered,
            "2.1.5",
            "delivered to the mailbox".to_owned(),
        ),
        Some(Err(error)) => {
            let status = if error.kind() == std::io::ErrorKind::StorageFull {
                "4.3.1"
            } else {
                "4.3.0"
            };
            (
                Disposition::Deferred,
                status,
                format!("cannot write to the mailbox: {error}"),
            )
        }
        None => (
            Disposition::Failed,
            "5.1.3",
            "not a mailbox address".to_owned(),
        ),
    };
    RecipientResult {
        disposition,
        status: status.to_owned(),
        reply,
        from_remote: false,
    }
}
