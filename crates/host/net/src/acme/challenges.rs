//! Answers http-01 challenges (RFC 8555 section 8.3): a listener without any other purpose, reachable from everywhere.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::response::Response;
use hyper::{Method, StatusCode, Uri};
use tokio::net::TcpListener;
use vere_http::server::{self, Bounds, Terms};

use super::AcmeError;
use crate::aside::write_private;

const PATH: &str = "/.well-known/acme-challenge/";
/// Connections at once: an authority looks from a handful of places.
const CONNECTIONS_MAX: usize = 64;

/// Octets of a token; authorities use 43.
const TOKEN_OCTETS_MAX: usize = 128;
/// Octets of an answer: a token, a dot, and a hash.
const ANSWER_OCTETS_MAX: u64 = 1024;

/// The answers to the challenges of orders under way; clones share them.
#[derive(Clone, Default)]
pub struct Challenges {
    answers: Arc<Mutex<HashMap<String, String>>>,
    /// Where another process finds the answers, too: a file by the name of each token.
    directory: Option<Arc<Path>>,
}

impl fmt::Debug for Challenges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Challenges")
            .field("open", &self.lock().len())
            .finish()
    }
}

impl Challenges {
    /// Answers that another process gives ([`read_answer`]), by files in a directory. What earlier orders have left there is removed.
    ///
    /// # Errors
    /// The directory cannot be made or read.
    pub fn in_directory(directory: &Path) -> io::Result<Self> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(directory)?;
        for entry in fs::read_dir(directory)? {
            fs::remove_file(entry?.path())?;
        }
        Ok(Self {
            directory: Some(directory.into()),
            ..Self::default()
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn answer(&self, path: &str) -> Option<String> {
        self.lock().get(path.strip_prefix(PATH)?).cloned()
    }

    /// The file of a token, if the answers have files.
    fn file(&self, token: &str) -> Option<PathBuf> {
        let directory = self.directory.as_deref()?;
        is_token(token).then(|| directory.join(token))
    }

    /// Writes the file of a token. An answer that no process can read would cost a failed validation, and authorities
    /// allow few.
    fn publish(&self, token: &str, answer: &str) -> Result<(), AcmeError> {
        let Some(path) = self.file(token) else {
            return Ok(());
        };
        let written = write_private(&path, answer.as_bytes());
        let published = written.and_then(|aside| fs::rename(aside, &path));
        published.map_err(|source| AcmeError::Storage { path, source })
    }
}

/// Whether a text is a token (RFC 8555 section 8.3: the alphabet of base64url), and so a name of a file and not a path.
fn is_token(text: &str) -> bool {
    let is_fit = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_');
    (1..=TOKEN_OCTETS_MAX).contains(&text.len()) && text.bytes().all(is_fit)
}

/// The answer to a token, from the directory of [`Challenges::in_directory`].
#[must_use]
pub fn read_answer(directory: &Path, token: &str) -> Option<String> {
    if !is_token(token) {
        return None;
    }
    let file = fs::File::open(directory.join(token)).ok()?;
    let mut answer = String::new();
    file.take(ANSWER_OCTETS_MAX)
        .read_to_string(&mut answer)
        .ok()?;
    Some(answer)
}

/// The answers of an order, withdrawn when the order ends, also by an error.
#[derive(Debug)]
pub(super) struct Answers {
    challenges: Challenges,
    tokens: Vec<String>,
}

impl Answers {
    pub(super) fn new(challenges: Challenges) -> Self {
        Self {
            challenges,
            tokens: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, token: String, answer: String) -> Result<(), AcmeError> {
        self.challenges.publish(&token, &answer)?;
        self.challenges.lock().insert(token.clone(), answer);
        self.tokens.push(token);
        Ok(())
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        let mut answers = self.challenges.lock();
        for token in &self.tokens {
            answers.remove(token);
            if let Some(path) = self.challenges.file(token) {
                // The next start removes it otherwise; the answer to an old challenge helps nobody.
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// Serves connections of `listener` until the future is dropped.
pub async fn serve_challenges(listener: TcpListener, challenges: Challenges) {
    let terms = Terms::fixed("challenges", Bounds::of_few(CONNECTIONS_MAX));
    server::serve(listener, terms, routes(challenges)).await;
}

fn routes(challenges: Challenges) -> Router {
    Router::new().fallback(async move |method: Method, uri: Uri| {
        let answer = challenges.answer(uri.path());
        respond(answer.filter(|_| method == Method::GET))
    })
}

fn respond(answer: Option<String>) -> Response {
    let (status, body) = match answer {
        Some(answer) => (StatusCode::OK, answer),
        None => {
            let body = "only ACME challenges are answered here\n";
            (StatusCode::NOT_FOUND, body.to_owned())
        }
    };
    server::content(status, "application/octet-stream", body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_process_finds_the_answers_of_an_order_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("challenges");
        let mut answers = Answers::new(Challenges::in_directory(&directory).unwrap());
        answers
            .add("to-ken_1".to_owned(), "to-ken_1.print".to_owned())
            .unwrap();
        // The token comes from an authority.
        answers.add("../evil".to_owned(), "x".to_owned()).unwrap();
        assert!(!folder.path().join("evil").exists());
        let read = |token: &str| read_answer(&directory, token);
        assert_eq!(read("to-ken_1").as_deref(), Some("to-ken_1.print"));
        for token in ["", "other", "../challenges/to-ken_1", ".", "a/b", "a\0b"] {
            assert_eq!(read(token), None, "{token:?}");
        }
        // An answer that nobody can read is an error of the order, before the CA looks.
        fs::remove_dir_all(&directory).unwrap();
        let error = answers.add("later".to_owned(), "later.print".to_owned());
        assert!(matches!(error, Err(AcmeError::Storage { .. })), "{error:?}");
        fs::create_dir(&directory).unwrap();
        answers
            .add("to-ken_1".to_owned(), "to-ken_1.print".to_owned())
            .unwrap();
        drop(answers);
        assert_eq!(read("to-ken_1"), None);
        fs::write(directory.join("left"), "x").unwrap();
        Challenges::in_directory(&directory).unwrap();
        assert_eq!(read("left"), None);
    }
}
