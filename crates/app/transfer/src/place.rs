//! The argument of the command line for a place: a source or a target of mail.

use std::fs;
use std::path::{Path, PathBuf};

use vere_accounts::{Login, Remote};
use vere_process::failure::Failure;
use vere_sasl::client::Credentials;
use vere_units::Secret;

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

/// Arguments for the connection to an IMAP server, beside the place itself.
#[derive(Debug, Default, clap::Args)]
pub struct ServerArgs {
    /// Read the password of the IMAP account from the first line of this file; by default, ask at the terminal.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Run this program for each connection; the first line of its output is the password of the IMAP account. Words
    /// are separated by blanks, and no shell takes part: --password-command "pass show mail/bob".
    #[arg(long, value_name = "COMMAND", conflicts_with = "password_file")]
    password_command: Option<String>,
    /// Run this program for each connection; the first line of its output is an access token of OAuth 2.0 (XOAUTH2,
    /// OAUTHBEARER). Words are separated as for --password-command.
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["password_file", "password_command"])]
    token_command: Option<String>,
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
        if let Some(place) = vere_accounts::Place::parse(text, server.clear) {
            let place = place?;
            let login = login(&place, server)?;
            let mut remote = place.with_login(login, server.ca.clone());
            // Mail of people shrinks to a half; on this machine that only costs time.
            remote.compress = !remote.is_here();
            return Ok(Self::Imap(remote));
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
            Self::Imap(remote) => format!("imap:{}@{}", remote.login.username(), remote.host),
        }
    }
}

/// The proof of the user: a password, or a program that prints a password or a token.
fn login(place: &vere_accounts::Place, server: &ServerArgs) -> Result<Login, Failure> {
    let username = place.user.clone();
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    Ok(match (&server.password_command, &server.token_command) {
        (Some(text), _) => Login::PasswordProgram {
            username,
            words: words(text),
        },
        (None, Some(text)) => Login::TokenProgram {
            username,
            words: words(text),
        },
        (None, None) => Login::Password(Credentials {
            authzid: None,
            username,
            password: password(place, server)?,
        }),
    })
}

/// The password of an account: from the named file, or asked for at the terminal.
fn password(place: &vere_accounts::Place, server: &ServerArgs) -> Result<Secret<String>, Failure> {
    let Some(path) = &server.password_file else {
        let (user, host) = (&place.user, &place.host);
        return rpassword::prompt_password(format!("password for {user} at {host}: "))
            .map(Secret::new)
            .map_err(|error| {
                Failure::new(format!(
                    "there is no terminal to ask for the password at ({error}); --password-file names a file"
                ))
            });
    };
    vere_accounts::password_of(path)
}

#[cfg(test)]
mod tests {
    use vere_accounts::Security;

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
        let Login::Password(credentials) = &one.login else {
            panic!("{one:?}");
        };
        assert_eq!(credentials.username, "bob@example.org");
        assert_eq!(credentials.password.expose(), "se cret");
        assert_eq!(one.security, Security::Implicit);
        let server = ServerArgs {
            token_command: Some("print-token  bob".to_owned()),
            ..ServerArgs::default()
        };
        match Place::parse("imaps://bob@mail.example.org", &server) {
            Ok(Place::Imap(Remote {
                login: Login::TokenProgram { username, words },
                ..
            })) => {
                assert_eq!((username.as_str(), words.len()), ("bob", 2));
            }
            other => panic!("{other:?}"),
        }
        for wrong in ["imaps://example.org", "/is/not/there"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        let here = folder.path().display().to_string();
        assert!(matches!(parse(&here), Ok(Place::Mbox(_))));
        fs::create_dir(folder.path().join("cur")).expect("room");
        assert!(matches!(parse(&here), Ok(Place::Maildir(_))));
    }
}
