//! Log lines about what a receiving session refused. Texts are built only if the log level includes these lines.

use vere_smtp::refusal::Refusal;
use vere_smtp::server::{Refused, Server};
use vere_telemetry::log::MAIL_TARGET;

/// Writes a line about a sender, recipient or message that the host of a session refused.
pub fn log(
    service: &'static str,
    session: &Server,
    reverse_path: &str,
    recipient: Option<&str>,
    refusal: &Refusal,
) {
    if tracing::enabled!(target: MAIL_TARGET, tracing::Level::INFO) {
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
