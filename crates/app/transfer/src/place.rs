//! The argument of the command line for a place: a source or a target of mail.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use vere_sasl::client::Credentials;
use vere_units::Secret;

use vere_process::failure::Failure;

/// Octets read from a password file; a longer line is no password.
const PASSWORD_FILE_MAX: u64 = 4_096;

/// A place.
#[derive(Debug, Clone)]
pub(super) enum Place {
    /// An mbox file, or a directory of mbox files.
    Mbox(PathBuf),
    /// A Maildir with its directories.
    Maildir(PathBuf),
    /// An account of an IMAP server.
    Imap(Remote),
}

/// An account of an IMAP server.
#[derive(Debug, Clone)]
pub(super) struct Remote {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) security: Security,
    /// Certificates trusted beside the system's certificates.
    pub(super) ca: Option<PathBuf>,
    pub(super) credentials: Credentials,
}

/// How a connection is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Security {
    /// TLS from the first octet.
    Implicit,
    /// TLS by STARTTLS.
    StartTls,
    /// No TLS, at the explicit wish of the user.
    Clear,
}

/// Arguments for the connection to an IMAP server, beside the place itself.
#[derive(Debug, Default, clap::Args)]
pub struct ServerArgs {
    /// Read the password of the IMAP account from the first line of this file; by default, ask at the terminal.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Trust the certificates in this PEM file beside the system's certificates.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Allow mail and password in clear text with imap://.
    #[arg(long)]
    clear: bool,
}

impl Place {
    /// Parses the argument of the command line.
    ///
    /// # Errors
    /// When the argument is no place, or the password cannot be read.
    pub(super) fn parse(text: &str, server: &ServerArgs) -> Result<Self, Failure> {
        if let Some(path) = text.strip_prefix("mbox:") {
            return Ok(Self::Mbox(path.into()));
        }
        if let Some(path) = text.strip_prefix("maildir:") {
            return Ok(Self::Maildir(path.into()));
        }
        let at = |security, port| Remote::parse(text, security, port, server).map(Self::Imap);
        if text.starts_with("imaps://") {
            return at(Security::Implicit, 993);
        }
        if text.starts_with("imap://") {
            return match server.clear {
                true => at(Security::Clear, 143),
                false => at(Security::StartTls, 143),
            };
        }
        let path = Path::new(text);
        if path.join("cur").is_dir() {
            return Ok(Self::Maildir(path.to_owned()));
        }
        if path.exists() {
            return Ok(Self::Mbox(path.to_owned()));
        }
        Err(Failure::new(format!(
            "{text}: neither mbox:PATH, maildir:PATH, imaps://USER@HOST or imap://USER@HOST, nor a file or folder \
             that is there"
        )))
    }

    /// The identity of the place, equal for every run with the same place.
    pub(super) fn identity(&self) -> String {
        let whole = |path: &Path| {
            let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
            path.display().to_string()
        };
        match self {
            Self::Mbox(path) => format!("mbox:{}", whole(path)),
            Self::Maildir(path) => format!("maildir:{}", whole(path)),
            Self::Imap(remote) => format!("imap:{}@{}", remote.credentials.username, remote.host),
        }
    }
}

impl Remote {
    fn parse(
        text: &str,
        security: Security,
        port: u16,
        server: &ServerArgs,
    ) -> Result<Self, Failure> {
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
        let password = match &server.password_file {
            Some(path) => from_file(path)?,
            None => rpassword::prompt_password(format!("password for {user} at {host}: "))
                .map(Secret::new)
                .map_err(|error| {
                    Failure::new(format!(
                        "there is no terminal to ask for the password at ({error}); --password-file names a file"
                    ))
                })?,
        };
        Ok(Self {
            host,
            port,
            security,
            ca: server.ca.clone(),
            credentials: Credentials {
                authzid: None,
                username: user.to_owned(),
                password,
            },
        })
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

fn from_file(path: &Path) -> Result<Secret<String>, Failure> {
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
    fn places_are_told_apart() {
        let folder = tempfile::tempdir().expect("a folder");
        let password = folder.path().join("password");
        fs::write(&password, "se cret\nmore\n").expect("room");
        let server = ServerArgs {
            password_file: Some(password),
            ..ServerArgs::default()
        };
        let parse = |text: &str| Place::parse(text, &server);
        let remote = |text: &str| match parse(text) {
            Ok(Place::Imap(remote)) => remote,
            other => panic!("{text}: {other:?}"),
        };
        let one = remote("imaps://bob@example.org@mail.example.org");
        assert_eq!((one.host.as_str(), one.port), ("mail.example.org", 993));
        assert_eq!(one.credentials.username, "bob@example.org");
        assert_eq!(one.credentials.password.expose(), "se cret");
        assert_eq!(one.security, Security::Implicit);
        let one = remote("imap://bob@[::1]:1143/");
        assert_eq!((one.host.as_str(), one.port), ("::1", 1143));
        assert_eq!(one.security, Security::StartTls);
        for wrong in [
            "imaps://example.org",
            "imaps://a@",
            "imap://a@b:x",
            "/is/not/there",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        let here = folder.path().display().to_string();
        assert!(matches!(parse(&here), Ok(Place::Mbox(_))));
        fs::create_dir(folder.path().join("cur")).expect("room");
        assert!(matches!(parse(&here), Ok(Place::Maildir(_))));
    }
}
