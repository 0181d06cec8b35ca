//! Checks of texts that several kinds share, and texts for messages.

use toml::de::DeValue;
use vere_units::Span;

/// Shortens a text for a message; escapes what would break the line.
pub(crate) fn shown(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    format!("{short:?}")
}

/// The type of a value for a message.
pub(crate) fn type_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a section",
    }
}

/// Checks a host name: `label *( "." label )`, labels of letters, digits and inner hyphens, at most
/// 63 octets each and 253 in all (RFC 1123 section 2.1); international names as A-labels.
pub(super) fn host_name(text: &str) -> Result<String, String> {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|octet| octet.is_ascii_alphanumeric() || octet == b'-')
    };
    if text.len() > 253 || !text.split('.').all(label) {
        return Err("expected a host name (letters, digits, hyphens and dots; \
                    international names in the xn-- form)"
            .to_owned());
    }
    let top = text.rsplit('.').next().unwrap_or_default();
    if top.bytes().all(|octet| octet.is_ascii_digit()) {
        return Err("expected a host name; found the form of an IP address".to_owned());
    }
    Ok(text.to_ascii_lowercase())
}

/// Checks a domain, or a dot and a domain for those below it.
pub(super) fn domains(text: &str) -> Result<String, String> {
    match text.strip_prefix('.') {
        Some(above) => host_name(above).map(|above| format!(".{above}")),
        None => host_name(text),
    }
}

/// Checks a pattern of senders; the null reverse-path becomes the empty text.
pub(super) fn senders(text: &str) -> Result<String, String> {
    match text.rsplit_once('@') {
        _ if text == "<>" => Ok(String::new()),
        Some((local, domain)) if !local.is_empty() && !text.contains(['<', '>', ' ']) => {
            host_name(domain).map(|domain| format!("{local}@{domain}"))
        }
        Some(_) => Err("expected an address without angle brackets".to_owned()),
        None => domains(text),
    }
}

/// Checks an address with a dot-atom before the sign (RFC 5322 section 3.2.3), in ASCII.
pub(super) fn mail_address(text: &str) -> Result<String, String> {
    let is_atom = |atom: &str| {
        let is_fit =
            |octet: u8| octet.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&octet);
        !atom.is_empty() && atom.bytes().all(is_fit)
    };
    match text.rsplit_once('@') {
        Some((local, domain)) if local.len() <= 64 && local.split('.').all(is_atom) => {
            host_name(domain).map(|domain| format!("{local}@{domain}"))
        }
        _ => Err(
            "expected an address such as postmaster@example.org, without angle brackets".to_owned(),
        ),
    }
}

/// Checks a span within bounds in milliseconds.
pub(super) fn span(text: &str, min: u64, max: u64) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error| format!("{error}"))?;
    if !(min..=max).contains(&span.as_millis()) {
        let (min, max) = (Span::from_millis(min), Span::from_millis(max));
        return Err(format!("expected a span from {min} to {max}"));
    }
    Ok(span)
}
