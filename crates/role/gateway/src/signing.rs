//! Signs the mail of local users (DKIM, RFC 6376), with the help of the signer role.
//!
//! The gateway hashes and canonicalizes; the signer has the keys. A message is signed once, before storage: every copy
//! and every attempt carries the same signature, and the body is never changed.

use bytes::Bytes;
use vere_settings::{Settings, WhenUnavailable};
use vere_smtp::address::AddrSpec;
use vere_smtp::refusal::Refusal;
use vere_smtp::server::SessionInfo;

use super::header::Header;
use super::process::Process;
use super::service::Service;
use super::signer::Unavailable;

/// Returns the message with signatures in front, if the sender is local and the author's domain has keys.
///
/// # Errors
/// When the signer does not answer, and the settings want the client to try again.
pub(super) async fn sign_own(
    process: &Process,
    service: Service,
    session: &SessionInfo,
    header: &Header<'_>,
    message: Bytes,
) -> Result<Bytes, Refusal> {
    let settings = process.settings();
    let (Some(signer), Some(dkim)) = (&process.signer, &settings.dkim) else {
        return Ok(message);
    };
    let author = header.author();
    if !is_own(process, &settings, service, session, author.as_deref()) {
        return Ok(message);
    }
    let signed = signer.sign(author, message.clone()).await;
    match (signed, dkim.when_unavailable) {
        (Ok(signed), _) => Ok(signed),
        (Err(Unavailable), WhenUnavailable::Unsigned) => Ok(message),
        (Err(Unavailable), WhenUnavailable::Defer) => Err(Refusal::LocalError),
    }
}

/// Returns a report with signatures in front, if the domain of the host name has keys. While the signer does not
/// answer, reports leave unsigned: no client exists that could try again.
pub(super) async fn sign_report(process: &Process, report: Bytes) -> Bytes {
    match &process.signer {
        Some(signer) => {
            let author = Header::of(&report).author();
            let signed = signer.sign(author, report.clone()).await;
            signed.unwrap_or(report)
        }
        None => report,
    }
}

/// Whether the gateway vouches for the author: a program of this machine, a host that may relay, or an account that
/// owns the address in From. Thus no account gets a signature for the address of another account.
fn is_own(
    process: &Process,
    settings: &Settings,
    service: Service,
    session: &SessionInfo,
    author: Option<&str>,
) -> bool {
    let Some(account) = &session.account else {
        return service == Service::Sendmail || settings.relay.contains(session.address.ip());
    };
    let author = author.and_then(|author| AddrSpec::parse(author).ok());
    author.is_some_and(|author| process.router.check_sender(account, &author).is_ok())
}
