//! `vere auth`: the server's check of passwords.

use std::io::{self, BufRead, IsTerminal as _, Read as _};
use std::process::ExitCode;

use clap::Subcommand;
use serde_json::json;
use vere_directory::Login;
use vere_login::directory::open;
use vere_ports::directory::{AccountName, Credentials};
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_settings::Settings;
use vere_units::Secret;

/// Exit code for a refused password: a finding, no failure of the command.
const REFUSED: u8 = 3;
/// Octets read from standard input; longer input is no password.
const INPUT_MAX: u64 = 4_096;

/// Check passwords.
#[derive(Debug, Subcommand)]
pub enum AuthCommand {
    /// Check a password against the directory, as the server does, and print why a login is refused.
    ///
    /// The check reads the directory alone: no server is asked, and limits against guessing do not count. Exit code 0:
    /// accepted, 3: refused.
    Test {
        /// The name that the client gives: the whole address of the account.
        address: String,
        /// Read the password from the first line of standard input.
        #[arg(long)]
        password_stdin: bool,
        /// Print JSON: an object with `account`, `accepted` and, if refused, `reason`.
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command.
///
/// # Errors
/// When no password is given, or the directory cannot be read.
pub fn run(command: &AuthCommand, settings: &Settings) -> Result<Outcome, Failure> {
    let AuthCommand::Test {
        address,
        password_stdin,
        json,
    } = command;
    let password = password(address, *password_stdin)?;
    let refused = refusal(address, &password, settings)?;
    let value = json!({ "account": address, "accepted": refused.is_none(), "reason": refused });
    let text = match &refused {
        None => format!("{address}: accepted\n"),
        Some(reason) => format!("{address}: refused: {reason}\n"),
    };
    let code = ExitCode::from(if refused.is_some() { REFUSED } else { 0 });
    let text = match json {
        true => format!("{value:#}\n"),
        false => text,
    };
    Ok(Outcome::Report(text, code))
}

/// Reads a password from a line, without its end; a password may begin or end with spaces.
///
/// # Errors
/// When the input cannot be read, or holds no password.
pub fn first_line(input: &mut impl BufRead) -> Result<Secret<String>, Failure> {
    let mut line = String::new();
    input.take(INPUT_MAX).read_line(&mut line)?;
    let line = line.strip_suffix('\n').unwrap_or(&line);
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.is_empty() {
        return Err(Failure::new(
            "standard input holds no password, nothing was changed",
        ));
    }
    Ok(Secret::new(line.to_owned()))
}

fn password(address: &str, from_input: bool) -> Result<Secret<String>, Failure> {
    if from_input {
        return first_line(&mut io::stdin().lock());
    }
    if !io::stdin().is_terminal() {
        return Err(Failure::new(
            "expected a terminal to ask for the password; found none: use --password-stdin",
        ));
    }
    let prompt = format!("password for {address}: ");
    Ok(Secret::new(rpassword::prompt_password(prompt)?))
}

/// The reason of a refused login; `None` for an accepted login. Clients hear of no reason.
fn refusal(
    address: &str,
    password: &Secret<String>,
    settings: &Settings,
) -> Result<Option<String>, Failure> {
    let directory = open(settings)?;
    if let Login::Accepted(_) = directory.verify_password(address, password)? {
        return Ok(None);
    }
    let Ok(name) = AccountName::parse(address) else {
        let text = "the name is no whole address; clients have to give one such as ann@example.org";
        return Ok(Some(text.to_owned()));
    };
    let account = directory.store().account(&name)?;
    let credentials = account.as_ref().map(|account| account.credentials.as_ref());
    Ok(Some(match credentials {
        None => format!(
            "there is no account {name}; see: vere account list {}",
            name.domain()
        ),
        Some(None) => format!("{name} has no password; set one with: vere account passwd {name}"),
        Some(Some(credentials)) if Credentials::is_locked(credentials) => {
            format!("{name} is disabled; enable it with: vere account enable {name}")
        }
        Some(Some(_)) => "wrong password".to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use vere_directory::password::{Salts, credentials};
    use vere_ports::directory::DomainName;

    use super::*;

    #[test]
    fn each_reason_of_a_refusal_is_told() {
        let folder = tempfile::tempdir().unwrap();
        for store in ["file:directory.toml", "sqlite:directory.sqlite"] {
            let text = format!(
                "version = 1\nhostname = \"a.b\"\ndata = {:?}\n[directory]\nstore = {store:?}\n",
                folder.path()
            );
            let file = folder.path().join("vere.toml");
            let settings = Settings::parse(&text, &file.to_string_lossy()).unwrap();
            let directory = vere_login::directory::create(&settings).unwrap();
            let domain = DomainName::parse("example.org").unwrap();
            directory.add_domain(domain, None).unwrap();
            let name = |text: &str| AccountName::parse(text).unwrap();
            let secret = |text: &str| Secret::new(text.to_owned());
            let salts = Salts {
                argon2: [1; 16],
                scram: [2; 16],
            };
            let made = credentials(&secret("right password"), &salts).unwrap();
            directory
                .add_account(name("ann@example.org"), Some(made))
                .unwrap();
            directory
                .add_account(name("bob@example.org"), None)
                .unwrap();
            let said = |who: &str, password: &str| {
                refusal(who, &secret(password), &settings)
                    .unwrap()
                    .unwrap_or_default()
            };
            assert_eq!(said("ann@example.org", "right password"), "");
            assert_eq!(said("ann@example.org", "wrong"), "wrong password");
            assert!(said("bob@example.org", "x").contains("has no password"));
            assert!(said("eve@example.org", "x").contains("there is no account"));
            assert!(said("ann", "x").contains("whole address"));
            let ann = name("ann@example.org");
            assert!(directory.set_enabled(&ann, false).unwrap());
            assert!(!directory.set_enabled(&ann, false).unwrap());
            assert!(said("ann@example.org", "right password").contains("is disabled"));
            assert_eq!(directory.scram_keys("ann@example.org").unwrap(), None);
            assert!(directory.set_enabled(&ann, true).unwrap());
            assert_eq!(said("ann@example.org", "right password"), "");
        }
    }

    #[test]
    fn first_line_is_the_password() {
        let read = |text: &str| {
            first_line(&mut text.as_bytes())
                .map(Secret::into_inner)
                .ok()
        };
        assert_eq!(read("secret\n").as_deref(), Some("secret"));
        assert_eq!(read("secret\r\nmore\n").as_deref(), Some("secret"));
        assert_eq!(read(" with spaces ").as_deref(), Some(" with spaces "));
        assert_eq!(read(""), None);
        assert_eq!(read("\nsecret\n"), None);
    }
}
