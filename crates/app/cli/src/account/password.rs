//! Where a new password comes from.

use std::io::{self, IsTerminal as _, Write as _};

use clap::Args;
use vere_directory::password::{Salts, credentials};
use vere_ports::directory::{AccountName, Credentials};
use vere_units::Secret;

use vere_health::auth::first_line;
use vere_process::failure::Failure;

/// Shorter passwords can be guessed over the network.
const LENGTH_ADVISED: usize = 8;

/// The source of a new password; by default a user at a terminal is asked, and a program is refused.
#[derive(Debug, Args)]
pub(crate) struct PasswordArgs {
    /// Read the password from the first line of standard input.
    #[arg(long, conflicts_with_all = ["generate", "no_password"])]
    password_stdin: bool,
    /// Generate a password and print it.
    #[arg(long, conflicts_with = "no_password")]
    generate: bool,
    /// Set no password: the account accepts mail, and every login is refused.
    #[arg(long)]
    no_password: bool,
}

/// A password, and whether the password has to be shown.
#[derive(Debug)]
pub(super) enum Chosen {
    /// The user knows the password already.
    Given(Secret<String>),
    /// No person knows the password yet.
    Generated(Secret<String>),
    /// No password.
    Nothing,
}

impl Chosen {
    /// The stored form of the password.
    pub(super) fn credentials(&self) -> Result<Option<Credentials>, Failure> {
        match self {
            Self::Given(password) | Self::Generated(password) => {
                new_credentials(password).map(Some)
            }
            Self::Nothing => Ok(None),
        }
    }
}

impl PasswordArgs {
    /// Reads, asks for or generates the password.
    pub(super) fn choose(&self, name: &AccountName) -> Result<Chosen, Failure> {
        if self.no_password {
            return Ok(Chosen::Nothing);
        }
        if self.password_stdin {
            let password = first_line(&mut io::stdin().lock())?;
            warn_if_short(&password);
            return Ok(Chosen::Given(password));
        }
        if self.generate {
            return Ok(Chosen::Generated(generate()));
        }
        if !io::stdin().is_terminal() {
            return Err(Failure::new(
                "standard input is no terminal to ask for a password at: say --password-stdin, --generate \
                 or --no-password; nothing was changed",
            ));
        }
        let ask = |prompt: String| rpassword::prompt_password(prompt).map(Secret::new);
        let password = ask(format!("password for {name} (empty: one is generated): "))?;
        if password.expose().is_empty() {
            return Ok(Chosen::Generated(generate()));
        }
        if ask("again: ".to_owned())? != password {
            return Err(Failure::new("the passwords differ, nothing was changed"));
        }
        warn_if_short(&password);
        Ok(Chosen::Given(password))
    }
}

fn warn_if_short(password: &Secret<String>) {
    if password.expose().chars().count() < LENGTH_ADVISED {
        let text =
            format!("vere: warning: a password under {LENGTH_ADVISED} characters is soon guessed");
        // The password is set in any case.
        let _ = writeln!(io::stderr(), "{text}");
    }
}

/// Derives the stored form of a password.
pub(crate) fn new_credentials(password: &Secret<String>) -> Result<Credentials, Failure> {
    let salts = Salts {
        argon2: random()?,
        scram: random()?,
    };
    Ok(credentials(password, &salts)?)
}

/// Generates a password of 100 random bits that can be read out and typed: five groups of four characters, without
/// characters that look alike.
pub(crate) fn generate() -> Secret<String> {
    const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let octets: [u8; 20] = match random() {
        Ok(octets) => octets,
        // The kernel's generator fails only before it is seeded at boot.
        Err(failure) => panic!("{failure}"),
    };
    let mut text = String::with_capacity(24);
    for (place, octet) in octets.iter().enumerate() {
        if place > 0 && place % 4 == 0 {
            text.push('-');
        }
        text.push(char::from(ALPHABET[usize::from(octet & 31)]));
    }
    Secret::new(text)
}

fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut octets = [0; N];
    getrandom::fill(&mut octets)
        .map_err(|error| Failure::new(format!("the system gives no random octets: {error}")))?;
    Ok(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_passwords_are_typable_and_differ() {
        let (one, other) = (generate(), generate());
        assert_ne!(one, other);
        let text = one.expose();
        assert_eq!(text.len(), 24);
        assert!(text.split('-').all(|group| group.len() == 4), "{text}");
        assert!(!text.contains(['0', '1', 'l', 'o', 'O', 'I']), "{text}");
    }
}
