//! Log lines about what a receiving session refused. Texts are built only if the log level includes these lines.

use vere_smtp::refusal::Refusal;
use vere_smtp::server::{Refused, Server};
use vere_telemetry::log::MAIL_TARGET;

/// Writes a line about a sender or message, if the host of a session has refused it.
pub fn log(service: &'static str, session: &Server, reverse_path: &str, refusal: Option<&Refusal>) {
    log_any(service, session, (reverse_path, None), refusal);
}

/// Writes a line about a recipient of the open transaction, if the host of a session has refused it.
pub fn log_recipient(
    service: &'static str,
    session: &Server,
    recipient: &str,
    refusal: Option<&Refusal>,
) {
    let sender = session.mail_from().map(|mail| mail.reverse_path.as_str());
    let transaction = (sender.unwrap_or_default(), Some(recipient));
    log_any(service, session, transaction, refusal);
}

fn log_any(
    service: &'static str,
    session: &Server,
    (reverse_path, recipient): (&str, Option<&str>),
    refusal: Option<&Refusal>,
) {
    if let Some(refusal) = refusal
        && tracing::enabled!(target: MAIL_TARGET, tracing::Level::INFO)
    {
        let refused = Refused {
            reverse_path: reverse_path.to_owned(),
            recipient: recipient.map(str::to_owned),
            reply: refusal.reply().to_string(),
        };
        write(service, session, &refused);
    }
}

/// Writes lines about what the session's machine refused.
pub fn noted(service: &'static str, session: &Server, refused: &[Refused]) {
    for refused in refused {
        write(service, session, refused);
    }
}

fn write(service: &'static str, session: &Server, refused: &Refused) {
    let client = session.peer().address;
    tracing::info!(
        target: MAIL_TARGET,
        service,
        client = %client.ip().to_canonical(),
        port = client.port(),
        account = session.account(),
        reverse_path = refused.reverse_path.as_str(),
        rcpt = refused.recipient.as_deref(),
        reply = refused.reply.as_str(),
        "refused"
    );
}
