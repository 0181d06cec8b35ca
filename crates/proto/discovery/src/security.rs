//! `security.txt`: how finders of security holes reach the operator (RFC 9116).

use std::fmt::Write as _;
use std::time::Duration;

use vere_units::Timestamp;

/// The media type of the file (RFC 9116 section 3).
pub const MEDIA_TYPE: &str = "text/plain; charset=utf-8";
/// How long the file says that it is current. RFC 9116 section 2.5.5 recommends less than a year.
const LIFE: Duration = Duration::from_secs(90 * 86_400);
const DAY_MILLIS: u64 = 86_400_000;

/// Writes the file. `host` is that of the request, `contacts` are URIs; the end of its life is at midnight (UTC), so that the file is the
/// same for a day.
#[must_use]
pub fn write(host: &str, contacts: &[String], now: Timestamp) -> String {
    let mut text = String::new();
    for contact in contacts {
        // Writing to a string cannot fail.
        let _ = write!(text, "Contact: {contact}\r\n");
    }
    let midnight = now.as_millis().checked_div(DAY_MILLIS).unwrap_or_default();
    let end = Timestamp::from_millis(midnight.saturating_mul(DAY_MILLIS)) + LIFE;
    let _ = write!(text, "Expires: {end}\r\n");
    let _ = write!(
        text,
        "Canonical: https://{host}/.well-known/security.txt\r\n"
    );
    text
}
