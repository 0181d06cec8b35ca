//! Accounts of a volume, and programs that print secrets.

use crate::errors::Problem;

/// Checks an account: `imaps://USER@HOST`, `imap://USER@HOST`, with a port or without, with a `/` at the end or without.
///
/// # Errors
/// Another scheme, no user, no host, a port that is none, or a password.
pub(super) fn account(text: &str) -> Result<String, String> {
    let wanted = "expected imaps://USER@HOST/, imaps://USER@HOST:PORT/ or the same with imap://";
    let rest = ["imaps://", "imap://"]
        .into_iter()
        .find_map(|scheme| text.strip_prefix(scheme))
        .ok_or(wanted)?;
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let (user, host) = rest.rsplit_once('@').ok_or(wanted)?;
    if user.is_empty() || host.is_empty() || text.contains(char::is_whitespace) {
        return Err(wanted.to_owned());
    }
    if user.contains(':') {
        return Err("expected no password here; password_file names the file with it".to_owned());
    }
    let port = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or(wanted)?.1,
        None => host.find(':').map_or("", |at| host.get(at..).unwrap_or("")),
    };
    match port.strip_prefix(':') {
        None if port.is_empty() => Ok(text.to_owned()),
        Some(number) if number.parse::<u16>().is_ok_and(|port| port > 0) => Ok(text.to_owned()),
        _ => Err(wanted.to_owned()),
    }
}

/// Checks that a command names a program.
///
/// # Errors
/// No word, or an empty first word.
pub(super) fn command(words: Vec<String>, wanted: String) -> Result<Vec<String>, Problem> {
    match words.first() {
        Some(program) if !program.is_empty() => Ok(words),
        _ => Err(Problem::NotAllowed {
            found: "no program".to_owned(),
            allowed: format!("expected {wanted}"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::account;

    #[test]
    fn accounts() {
        for right in [
            "imaps://bob@mail.example.org/",
            "imap://bob@example.org@mail.example.org:1143",
            "imaps://bob@[2001:db8::1]:993/",
        ] {
            assert!(account(right).is_ok(), "{right}");
        }
        for wrong in [
            "https://bob@mail.example.org/",
            "imaps://mail.example.org/",
            "imaps://bob@",
            "imaps://bob@mail.example.org:0/",
            "imaps://bob@mail.example.org:port/",
            "imaps://bob@[2001:db8::1/",
            "imaps://bob:secret@mail.example.org/",
        ] {
            assert!(account(wrong).is_err(), "{wrong}");
        }
    }
}
