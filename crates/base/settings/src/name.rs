//! Names that become parts of paths and log lines.

/// Octets of a name.
const OCTETS_MAX: usize = 255;

/// Checks a name that may become part of a path or a log line.
///
/// # Errors
/// When it is empty, too long, `.` or `..`, or holds a slash or a control character.
pub fn name(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > OCTETS_MAX {
        return Err("must have 1 to 255 octets".to_owned());
    }
    if text == "." || text == ".." || text.contains('/') {
        return Err("must not hold a slash, nor be . or ..".to_owned());
    }
    if text.chars().any(char::is_control) {
        return Err("must not hold control characters".to_owned());
    }
    Ok(text.to_owned())
}
