//! Where an account is, and how a client logs in.

use percent_encoding::percent_decode_str;
use std::fs;
use std::io::{self, Read as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use vere_process::failure::Failure;
use vere_sasl::client::Credentials;
use vere_units::Secret;

/// Octets read from a password file; a longer line is no password.
const PASSWORD_FILE_MAX: u64 = 4_096;

/// An account of an IMAP server.
#[derive(Debug, Clone)]
pub struct Remote {
    /// The name or address of the server.
    pub host: String,
    /// The port.
    pub port: u16,
    /// How the connection is protected.
    pub security: Security,
    /// Certificates trusted beside the system's certificates.
    pub ca: Option<PathBuf>,
    /// The proof of the user.
    pub login: Login,
    /// Whether octets travel compressed where the server can (RFC 4978): for listings, ordinary mail and base64, not for
    /// sealed octets in 8-bit mails, which do not shrink.
    pub compress: bool,
}

impl Remote {
    /// Whether the server is on this machine, by its name or address.
    #[must_use]
    pub fn is_here(&self) -> bool {
        let address = self.host.parse::<IpAddr>();
        self.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }
}

/// How a connection is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// TLS from the first octet.
    Implicit,
    /// TLS by STARTTLS.
    StartTls,
    /// No TLS, at the explicit wish of the user.
    Clear,
}

/// The proof of the user.
#[derive(Debug, Clone)]
pub enum Login {
    /// A password.
    Password(Credentials),
    /// An access token of OAuth 2.0.
    Token {
        /// The user.
        username: String,
        /// The token.
        token: Secret<String>,
    },
    /// A program that prints a password, run for each connection.
    PasswordProgram {
        /// The user.
        username: String,
        /// The program and its arguments.
        words: Vec<String>,
    },
    /// A program that prints an access token of OAuth 2.0, run for each connection: tokens expire.
    TokenProgram {
        /// The user.
        username: String,
        /// The program and its arguments.
        words: Vec<String>,
    },
}

impl Login {
    /// The user.
    #[must_use]
    pub fn username(&self) -> &str {
        match self {
            Self::Password(credentials) => &credentials.username,
            Self::Token { username, .. }
            | Self::PasswordProgram { username, .. }
            | Self::TokenProgram { username, .. } => username,
        }
    }

    /// The program that prints the secret, if any.
    pub(crate) fn program(&self) -> Option<&str> {
        match self {
            Self::PasswordProgram { words, .. } | Self::TokenProgram { words, .. } => {
                words.first().map(String::as_str)
            }
            Self::Password(_) | Self::Token { .. } => None,
        }
    }
}

/// A place in the form `imaps://USER@HOST:PORT` or `imap://USER@HOST:PORT`, without the password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The user, often an address.
    pub user: String,
    /// The server.
    pub host: String,
    /// The port; 993 or 143 where the place names none.
    pub port: u16,
    /// The protection.
    pub security: Security,
}

impl Place {
    /// Parses a place; `None` for text of another scheme. `clear` allows `imap://` without TLS.
    ///
    /// # Errors
    /// When user or host are missing, or the port is none.
    pub fn parse(text: &str, clear: bool) -> Option<Result<Self, Failure>> {
        if text.starts_with("imaps://") {
            return Some(Self::of(text, Security::Implicit, 993));
        }
        text.starts_with("imap://").then(|| match clear {
            true => Self::of(text, Security::Clear, 143),
            false => Self::of(text, Security::StartTls, 143),
        })
    }

    fn of(text: &str, security: Security, port: u16) -> Result<Self, Failure> {
        let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        // A user's name is often an address.
        let (user, host) = rest.rsplit_once('@').ok_or_else(|| {
            Failure::new(format!(
                "{text}: the user is missing, as in imaps://USER@HOST"
            ))
        })?;
        let (host, port) = host_and_port(host, port)
            .filter(|(host, _)| !host.is_empty() && !user.is_empty())
            .ok_or_else(|| {
                Failure::new(format!("{text}: no host, as in imaps://USER@HOST:PORT"))
            })?;
        // RFC 5092 section 3.1; a percent sign without two digits stands for itself.
        let user = percent_decode_str(user).decode_utf8_lossy().into_owned();
        Ok(Self {
            user,
            host,
            port,
            security,
        })
    }

    /// The account at the place.
    #[must_use]
    pub fn with_password(self, password: Secret<String>, ca: Option<PathBuf>) -> Remote {
        let login = Login::Password(Credentials {
            authzid: None,
            username: self.user.clone(),
            password,
        });
        self.with_login(login, ca)
    }

    /// The account at the place, with a login for the user of the place.
    #[must_use]
    pub fn with_login(self, login: Login, ca: Option<PathBuf>) -> Remote {
        Remote {
            host: self.host,
            port: self.port,
            security: self.security,
            ca,
            login,
            compress: false,
        }
    }
}

fn host_and_port(text: &str, port: u16) -> Option<(String, u16)> {
    // [::1]:143
    if let Some(rest) = text.strip_prefix('[') {
        let (host, behind) = rest.split_once(']')?;
        let port = match behind.strip_prefix(':') {
            Some(port) => port.parse().ok()?,
            None if behind.is_empty() => port,
            None => return None,
        };
        return Some((host.to_owned(), port));
    }
    match text.split_once(':') {
        Some((host, port)) => Some((host.to_owned(), port.parse().ok()?)),
        None => Some((text.to_owned(), port)),
    }
}

/// Reads a password: the first line of a file.
///
/// # Errors
/// When the file cannot be read, or begins with an empty line.
pub fn password_of(path: &Path) -> Result<Secret<String>, Failure> {
    let wrong = |error: io::Error| Failure::new(format!("{}: {error}", path.display()));
    let mut text = String::new();
    let file = fs::File::open(path).map_err(wrong)?;
    file.take(PASSWORD_FILE_MAX)
        .read_to_string(&mut text)
        .map_err(wrong)?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(Secret::new(line.to_owned())),
        _ => Err(Failure::new(format!("{} is empty", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_a_user_and_a_host() {
        let place = |text| {
            Place::parse(text, false)
                .expect("an IMAP place")
                .expect("whole")
        };
        let one = place("imaps://bob@example.org@mail.example.org");
        assert_eq!((one.host.as_str(), one.port), ("mail.example.org", 993));
        assert_eq!(
            (one.user.as_str(), one.security),
            ("bob@example.org", Security::Implicit)
        );
        assert_eq!(place("imaps://bob%40example.org@h").user, "bob@example.org");
        assert_eq!(place("imaps://100%@h").user, "100%");
        let one = place("imap://bob@[::1]:1143/");
        assert_eq!((one.host.as_str(), one.port), ("::1", 1143));
        assert_eq!(one.security, Security::StartTls);
        for wrong in ["imaps://example.org", "imaps://a@", "imap://a@b:x"] {
            assert!(Place::parse(wrong, true).expect("IMAP").is_err(), "{wrong}");
        }
        assert!(Place::parse("mbox:x", true).is_none());
    }
}
