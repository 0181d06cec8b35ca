//! A password from a prompt, tried before anything is stored.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::timeout;
use vere_accounts::{DialError, Place, dial};
use vere_process::failure::Failure;
use vere_units::Secret;

/// The longest time for connection and login.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(60);
/// Passwords that a server may refuse before the command ends.
const TRIALS_MAX: usize = 3;

/// Asks for the password of an account until the server accepts one.
pub(super) fn tried(
    place: &Place,
    ca: Option<&PathBuf>,
    ask: &mut dyn FnMut() -> Result<String, Failure>,
) -> Result<Secret<String>, Failure> {
    let mut refusal = Failure::new("expected a password that the account accepts; found none");
    for _ in 0..TRIALS_MAX {
        let password = ask()?;
        if password.is_empty() {
            return Err(Failure::new("expected a password; found an empty line"));
        }
        let password = Secret::new(password);
        match login(place, ca, &password)? {
            Ok(()) => return Ok(password),
            Err(failure) => {
                eprintln!("{failure}");
                refusal = failure;
            }
        }
    }
    Err(refusal)
}

/// A login. The inner failure is a refusal, after which another password may help.
fn login(
    place: &Place,
    ca: Option<&PathBuf>,
    password: &Secret<String>,
) -> Result<Result<(), Failure>, Failure> {
    let remote = place.clone().with_password(password.clone(), ca.cloned());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let dialled = runtime.block_on(async { timeout(LOGIN_TIMEOUT, dial(&remote)).await });
    let shown = |text: String| Failure::new(format!("{}@{}: {text}", place.user, place.host));
    match dialled {
        Ok(Ok(_)) => Ok(Ok(())),
        Ok(Err(error @ DialError::Refused(_))) => Ok(Err(shown(error.to_string()))),
        Ok(Err(error)) => Err(shown(error.to_string())),
        Err(_) => Err(shown("expected a login within 60 s; found none".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::{TRIALS_MAX, tried};
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use vere_accounts::Place;

    /// A server for the password `good`.
    fn server() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // The client may end first.
                let _ended = converse(&stream);
            }
        });
        address
    }

    fn converse(mut stream: &TcpStream) -> std::io::Result<()> {
        stream.write_all(b"* OK [CAPABILITY IMAP4rev1] hello\r\n")?;
        for line in BufReader::new(stream.try_clone()?).lines() {
            let line = line?;
            let tag = line.split(' ').next().unwrap_or_default();
            let said = if line.contains("LOGIN") && !line.contains("good") {
                "NO [AUTHENTICATIONFAILED] no".to_owned()
            } else {
                "OK done".to_owned()
            };
            stream.write_all(format!("{tag} {said}\r\n").as_bytes())?;
        }
        Ok(())
    }

    #[test]
    fn a_mistyped_password_is_asked_for_again() {
        let url = format!("imap://alice@{}", server());
        let place = Place::parse(&url, true).unwrap().unwrap();
        let mut words = ["typo", "good", "never"].into_iter();
        let mut ask = || Ok(words.next().unwrap().to_owned());
        let password = tried(&place, None, &mut ask).unwrap();
        assert_eq!(password.expose(), "good");
        assert_eq!(words.next(), Some("never"));
        let mut asked = 0;
        let refused = tried(&place, None, &mut || {
            asked += 1;
            Ok("typo".to_owned())
        });
        assert!(refused.unwrap_err().to_string().contains("login refused"));
        assert_eq!(asked, TRIALS_MAX);
    }
}
