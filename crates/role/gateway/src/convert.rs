//! From the words of the SMTP server to the envelope that the queue keeps.

use vere_queue as queue;
use vere_smtp::command::{BodyType, MailFrom, Notify, Ret, Xtext};

/// The queue's form of a NOTIFY parameter.
pub(super) fn notify(notify: Option<Notify>) -> queue::Notify {
    match notify {
        None => queue::Notify::default(),
        Some(Notify::Never) => queue::Notify::NEVER,
        Some(Notify::On {
            success,
            failure,
            delay,
        }) => queue::Notify::on(success, failure, delay),
    }
}

/// The same wish, without reports of success.
pub(super) const fn without_success(notify: Notify) -> Notify {
    match notify {
        Notify::On {
            failure: false,
            delay: false,
            ..
        }
        | Notify::Never => Notify::Never,
        Notify::On { failure, delay, .. } => Notify::On {
            success: false,
            failure,
            delay,
        },
    }
}

/// The queue's form of a BODY parameter.
pub(super) fn body_type(mail: &MailFrom) -> queue::BodyType {
    match mail.body {
        BodyType::SevenBit => queue::BodyType::SevenBit,
        BodyType::EightBitMime => queue::BodyType::EightBitMime,
        BodyType::BinaryMime => queue::BodyType::BinaryMime,
    }
}

/// The queue's form of a RET parameter.
pub(super) fn ret(mail: &MailFrom) -> Option<queue::Ret> {
    mail.ret.map(|ret| match ret {
        Ret::Full => queue::Ret::Full,
        Ret::Headers => queue::Ret::Headers,
    })
}

/// The ORCPT parameter for an address that was changed on the way (RFC 3461 section 4.2).
pub(super) fn rfc822_orcpt(address: &str) -> String {
    format!("rfc822;{}", Xtext::encode(address.as_bytes()))
}
