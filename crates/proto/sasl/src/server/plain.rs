//! PLAIN, RFC 4616.

use super::{Failure, PasswordAttempt, Step, checked_name, checked_password};
use crate::Mechanism;

/// Reads the only message.
///
/// ```text
/// message = [authzid] UTF8NUL authcid UTF8NUL passwd
/// authcid = 1*SAFE ; MUST accept up to 255 octets
/// authzid = 1*SAFE ; MUST accept up to 255 octets
/// passwd  = 1*SAFE ; MUST accept up to 255 octets
/// SAFE    = UTF1 / UTF2 / UTF3 / UTF4 ;; any UTF-8 character except NUL
/// ```
pub(super) fn response(message: &[u8]) -> Result<Step, Failure> {
    let mut parts = message.split(|octet| *octet == 0);
    let (Some(authzid), Some(authcid), Some(password), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(Failure::Malformed("PLAIN message"));
    };
    let authzid = match authzid {
        b"" => None,
        name => Some(checked_name(name)?.to_owned()),
    };
    Ok(Step::Password(PasswordAttempt {
        mechanism: Mechanism::Plain,
        authzid,
        authcid: checked_name(authcid)?.to_owned(),
        password: checked_password(password)?,
    }))
}
