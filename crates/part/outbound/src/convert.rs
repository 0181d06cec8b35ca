//! From the envelope that the queue keeps to the words of the SMTP client, and back.

use bytes::Bytes;
use vere_queue as queue;
use vere_queue::{Disposition, Envelope, RecipientResult, TlsWish};
use vere_smtp::address::{AddrSpec, ForwardPath, ReversePath};
use vere_smtp::client::{OutgoingMessage, RecipientOutcome, TransactionOutcome};
use vere_smtp::command::{BodyType, Notify, Orcpt, RcptTo, Ret, Xtext};
use vere_smtp::reply::Reply;

/// The message for the client machine. An address in the envelope was checked when it came in; one that
/// does not parse any more is a recipient that no server can be told, given by its index.
pub(super) fn outgoing(envelope: &Envelope, body: Bytes) -> Result<OutgoingMessage, Vec<usize>> {
    let address = |text: &str| AddrSpec::parse(text).ok();
    let reverse_path = match envelope.mail.reverse_path.as_deref() {
        None => ReversePath::Null,
        Some(text) => address(text).map_or(ReversePath::Null, ReversePath::Address),
    };
    let mut recipients = Vec::with_capacity(envelope.mail.recipients.len());
    let mut broken = Vec::new();
    for (index, recipient) in envelope.mail.recipients.iter().enumerate() {
        match address(&recipient.address) {
            Some(address) => recipients.push(RcptTo {
                forward_path: ForwardPath::Address(address),
                notify: outgoing_notify(recipient.notify),
                orcpt: recipient.orcpt.as_deref().and_then(Orcpt::parse),
            }),
            None => broken.push(index),
        }
    }
    if !broken.is_empty() {
        return Err(broken);
    }
    Ok(OutgoingMessage {
        body_type: match envelope.mail.body_type {
            queue::BodyType::SevenBit => BodyType::SevenBit,
            queue::BodyType::EightBitMime => BodyType::EightBitMime,
            queue::BodyType::BinaryMime => BodyType::BinaryMime,
        },
        smtputf8: envelope.mail.smtputf8,
        require_tls: envelope.mail.tls == TlsWish::Required,
        priority: envelope.head.priority,
        ret: envelope.mail.ret.map(|ret| match ret {
            queue::Ret::Full => Ret::Full,
            queue::Ret::Headers => Ret::Headers,
        }),
        envid: envelope.mail.envid.as_deref().and_then(Xtext::parse),
        ..OutgoingMessage::new(reverse_path, recipients, body)
    })
}

fn outgoing_notify(notify: queue::Notify) -> Option<Notify> {
    if notify == queue::Notify::NEVER {
        return Some(Notify::Never);
    }
    notify.given().then(|| Notify::On {
        success: notify.success(),
        failure: notify.failure(),
        delay: notify.delay(),
    })
}

/// The enhanced status code of a reply; a general one of its class when the server gave none.
fn status(reply: &Reply) -> String {
    match reply.enhanced {
        Some(status) => status.to_string(),
        None => format!("{}.0.0", reply.code / 100),
    }
}

/// The client machine's outcome in the form of the settlement.
pub(super) fn results(outcome: &TransactionOutcome) -> Vec<RecipientResult> {
    let result = |recipient: &RecipientOutcome| {
        let (disposition, reply) = match recipient {
            RecipientOutcome::Delivered(reply) => (Disposition::Delivered, reply),
            RecipientOutcome::Failed(reply) => (Disposition::Failed, reply),
            RecipientOutcome::Deferred(reply) => (Disposition::Deferred, reply),
        };
        RecipientResult {
            disposition,
            status: match recipient {
                // 552 for too many recipients (RFC 5321 section 4.5.3.1.10): reports must not say that
                // it was for good.
                RecipientOutcome::Deferred(reply) if reply.is_permanent() => "4.5.3".to_owned(),
                _ => status(reply),
            },
            reply: super::reply_line(reply),
            from_remote: true,
        }
    };
    outcome.recipients.iter().map(result).collect()
}

/// The results for an envelope with addresses that cannot be written in a command any more: those fail,
/// the others wait for the next attempt.
pub(super) fn broken(envelope: &Envelope, broken: &[usize]) -> Vec<RecipientResult> {
    let result = |index: usize| {
        let (disposition, status, reply) = if broken.contains(&index) {
            (Disposition::Failed, "5.1.3", "address cannot be used")
        } else {
            (
                Disposition::Deferred,
                "4.3.0",
                "another recipient's address cannot be used",
            )
        };
        RecipientResult {
            disposition,
            status: status.to_owned(),
            reply: reply.to_owned(),
            from_remote: false,
        }
    };
    (0..envelope.mail.recipients.len()).map(result).collect()
}
