//! The gateway's client of the signer role: the keys of domains, and signatures.

mod line;

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use vere_dkim::store::signing_domains;
use vere_dkim::{Draft, KeyAlgorithm, NotSignable, drafts};
use vere_signwire::{ActiveKey, Algorithm, Answer, Reason, Request, SIGN_OCTETS_MAX, WaitingKey};
use vere_telemetry::metrics::SignResult;

use self::line::{Line, NoAnswer};
use crate::metrics::GatewayMetrics;
use vere_process::clock;

/// Connections to the signer, which runs a thread for each.
const LINES: usize = 2;
/// Maximum of domains with remembered keys; at the maximum, all are forgotten and requested again.
const KNOWN_MAX: usize = 10_000;
/// Largest message, in octets, that is hashed on the gateway's thread: a larger message would delay other tasks.
pub(crate) const HASH_HERE_MAX: usize = 256 * 1024;
/// How often a request is sent if the signer ends before its answer.
const ASK_MAX: usize = 3;

/// The signer did not answer: the supervisor is restarting the signer, or the signer is faulty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unavailable;

/// The client of the signer role.
#[derive(Debug)]
pub(crate) struct Signer {
    lines: Vec<Line>,
    next: RefCell<usize>,
    known: RefCell<HashMap<String, CachedKeys>>,
    metrics: Rc<GatewayMetrics>,
}

#[derive(Debug, Clone)]
struct CachedKeys {
    until: Instant,
    keys: Rc<[ActiveKey]>,
}

impl Signer {
    /// Returns a client for the signer at this socket. Must be called on the gateway's thread.
    pub(crate) fn new(socket: &Path, metrics: Rc<GatewayMetrics>) -> Self {
        Self {
            lines: (0..LINES).map(|_| Line::new(socket)).collect(),
            next: RefCell::new(0),
            known: RefCell::default(),
            metrics,
        }
    }

    /// Returns the message with signatures of the author's domain in front. A message that cannot be signed, or whose
    /// author's domain has no keys, is returned unchanged.
    ///
    /// # Errors
    /// When the signer does not answer.
    pub(crate) async fn sign(
        &self,
        author: Option<String>,
        message: Bytes,
    ) -> Result<Bytes, Unavailable> {
        let begun = Instant::now();
        let signed = self.try_sign(author, message).await;
        let result = match &signed {
            Ok((_, result)) => *result,
            Err(Unavailable) => SignResult::Unavailable,
        };
        self.metrics.signed(result, begun.elapsed());
        signed.map(|(message, _)| message)
    }

    async fn try_sign(
        &self,
        author: Option<String>,
        message: Bytes,
    ) -> Result<(Bytes, SignResult), Unavailable> {
        let Some(author) = author.as_deref().and_then(domain_of) else {
            return Ok((message, SignResult::NotSignable));
        };
        // A key may end between the signer's answer and the use of the key; the second round requests the keys again.
        for _ in 0..2 {
            let Some((domain, keys)) = self.keys_for(&author, |_| true).await? else {
                return Ok((message, SignResult::NoKey));
            };
            let drafts = match draft(&message, &domain, &keys).await {
                Ok(drafts) => drafts,
                Err(why) => {
                    tracing::warn!(domain, %why, "message not signed");
                    return Ok((message, SignResult::NotSignable));
                }
            };
            if let Some(fields) = self.fields(&domain, drafts).await? {
                let mut signed = Vec::with_capacity(fields.len() + message.len());
                signed.extend_from_slice(&fields);
                signed.extend_from_slice(&message);
                return Ok((Bytes::from(signed), SignResult::Signed));
            }
            self.known.borrow_mut().remove(&domain);
        }
        Err(Unavailable)
    }

    /// Returns the header fields for these drafts; `None` if a key no longer exists.
    async fn fields(
        &self,
        domain: &str,
        drafts: Vec<Draft>,
    ) -> Result<Option<Vec<u8>>, Unavailable> {
        let mut fields = Vec::new();
        let request = |draft: &Draft| self.ask(&sign_request(domain, draft));
        // All requests are sent before the first answer is awaited.
        let asked: Vec<_> = drafts.iter().map(request).collect();
        for (draft, answer) in drafts.into_iter().zip(asked) {
            let answer = match answer.await {
                Err(NoAnswer::Lost) => self.ask_again(&sign_request(domain, &draft)).await?,
                answer => answer.map_err(|_| Unavailable)?,
            };
            match answer {
                Answer::Signed(value) => fields.extend_from_slice(&draft.field(value)),
                Answer::Refused(Reason::NoKey) => return Ok(None),
                _ => return Err(Unavailable),
            }
        }
        Ok(Some(fields))
    }

    /// Returns the signing domain of an alias's domain, and the selector of the RSA key: the domain itself, or the nearest
    /// parent domain with an RSA key.
    ///
    /// # Errors
    /// When the signer does not answer.
    pub(crate) async fn rsa_key_for(
        &self,
        domain: &str,
    ) -> Result<Option<(String, String)>, Unavailable> {
        let is_rsa = |key: &ActiveKey| key.algorithm == Algorithm::RsaSha256;
        let Some(domain) = ascii_domain(domain) else {
            return Ok(None);
        };
        let found = self.keys_for(&domain, is_rsa).await?;
        Ok(found.and_then(|(domain, keys)| {
            let key = keys.iter().find(|key| is_rsa(key))?;
            Some((domain, key.selector.clone()))
        }))
    }

    /// Returns the signature of octets by an RSA key; `None` if the key no longer exists.
    ///
    /// # Errors
    /// When the signer does not answer.
    pub(crate) async fn rsa_signature(
        &self,
        (domain, selector): (&str, &str),
        octets: &[u8],
    ) -> Result<Option<Vec<u8>>, Unavailable> {
        let request = Request::Sign {
            algorithm: Algorithm::RsaSha256,
            domain,
            selector,
            octets,
        };
        match self.ask_again(&request).await? {
            Answer::Signed(value) => Ok(Some(value)),
            Answer::Refused(Reason::NoKey) => {
                self.known.borrow_mut().remove(domain);
                Ok(None)
            }
            _ => Err(Unavailable),
        }
    }

    /// Returns the number of keys waiting for records, and the next step: a key for a record lookup, or
    /// a pause.
    ///
    /// # Errors
    /// When the signer does not answer.
    pub(crate) async fn waiting_key(
        &self,
    ) -> Result<(u32, Result<WaitingKey, Duration>), Unavailable> {
        let Answer::Waiting {
            count,
            pause_ms,
            key,
        } = self.ask_again(&Request::Waiting).await?
        else {
            return Err(Unavailable);
        };
        let pause = Duration::from_millis(u64::from(pause_ms));
        Ok((count, key.ok_or(pause)))
    }

    /// Tells the signer that the DNS has the record of a key. Returns whether the key may sign now.
    ///
    /// # Errors
    /// When the signer does not answer.
    pub(crate) async fn seen(&self, domain: &str, selector: &str) -> Result<bool, Unavailable> {
        let answer = self.ask_again(&Request::Seen { domain, selector }).await?;
        Ok(answer == Answer::Activated)
    }

    /// Returns the signing domain of an author's domain, with its keys: the domain itself, or the nearest parent domain
    /// that has a key of the wanted kind.
    async fn keys_for(
        &self,
        author: &str,
        is_wanted: impl Fn(&ActiveKey) -> bool,
    ) -> Result<Option<(String, Rc<[ActiveKey]>)>, Unavailable> {
        for domain in signing_domains(author) {
            let keys = self.keys(domain).await?;
            if keys.iter().any(&is_wanted) {
                return Ok(Some((domain.to_owned(), keys)));
            }
        }
        Ok(None)
    }

    async fn keys(&self, domain: &str) -> Result<Rc<[ActiveKey]>, Unavailable> {
        let known = self.known.borrow().get(domain).cloned();
        if let Some(known) = known.filter(|known| known.until > Instant::now()) {
            return Ok(known.keys);
        }
        let Answer::Keys { holds_ms, keys } = self.ask_again(&Request::Keys { domain }).await?
        else {
            return Err(Unavailable);
        };
        let keys: Rc<[ActiveKey]> = keys.into();
        let until = Instant::now() + Duration::from_millis(u64::from(holds_ms));
        let mut known = self.known.borrow_mut();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        let entry = CachedKeys {
            until,
            keys: Rc::clone(&keys),
        };
        known.insert(domain.to_owned(), entry);
        Ok(keys)
    }

    /// Sends a request at once; the returned future waits for the answer only.
    fn ask(&self, request: &Request<'_>) -> impl Future<Output = Result<Answer, NoAnswer>> + use<> {
        let mut next = self.next.borrow_mut();
        *next = (*next + 1) % self.lines.len();
        self.lines[*next].ask(request)
    }

    /// Sends a request, and sends the request again if the signer ended before its answer.
    async fn ask_again(&self, request: &Request<'_>) -> Result<Answer, Unavailable> {
        for _ in 0..ASK_MAX {
            match self.ask(request).await {
                Err(NoAnswer::Lost) => {}
                answer => return answer.map_err(|_| Unavailable),
            }
        }
        Err(Unavailable)
    }
}

fn sign_request<'a>(domain: &'a str, draft: &'a Draft) -> Request<'a> {
    Request::Sign {
        algorithm: wire(draft.algorithm()),
        domain,
        selector: draft.selector(),
        octets: draft.octets(),
    }
}

async fn draft(
    message: &Bytes,
    domain: &str,
    keys: &Rc<[ActiveKey]>,
) -> Result<Vec<Draft>, NotSignable> {
    let keys: Vec<_> = keys
        .iter()
        .map(|key| (stored(key.algorithm), key.selector.clone()))
        .collect();
    let (message, domain, now) = (message.clone(), domain.to_owned(), clock::now());
    let small = message.len() <= HASH_HERE_MAX;
    let make = move || {
        let keys = keys
            .iter()
            .map(|(algorithm, selector)| (*algorithm, selector.as_str()));
        drafts(&message, &domain, keys, now, SIGN_OCTETS_MAX)
    };
    if small {
        return make();
    }
    // The closure does not panic, and is cancelled only at the end of the process.
    let made = tokio::task::spawn_blocking(make).await;
    made.unwrap_or(Err(NotSignable::NoFrom))
}

const fn wire(algorithm: KeyAlgorithm) -> Algorithm {
    match algorithm {
        KeyAlgorithm::RsaSha256 => Algorithm::RsaSha256,
        KeyAlgorithm::Ed25519Sha256 => Algorithm::Ed25519Sha256,
    }
}

const fn stored(algorithm: Algorithm) -> KeyAlgorithm {
    match algorithm {
        Algorithm::RsaSha256 => KeyAlgorithm::RsaSha256,
        Algorithm::Ed25519Sha256 => KeyAlgorithm::Ed25519Sha256,
    }
}

/// Returns the domain of an author, in lower case. `None` for a domain that is not ASCII: keys belong to domains in
/// ASCII form.
fn domain_of(author: &str) -> Option<String> {
    ascii_domain(author.rsplit_once('@')?.1)
}

/// Returns a domain in lower case; `None` for a domain that is not ASCII.
fn ascii_domain(domain: &str) -> Option<String> {
    let domain = domain.trim_end_matches('.');
    (domain.is_ascii() && !domain.is_empty() && domain.len() <= 253)
        .then(|| domain.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::Header;

    #[test]
    fn the_author_is_the_only_address_of_from() {
        let domain = |text: &str| domain_of(&Header::of(text.as_bytes()).author()?);
        let of = |domain: &str| Some(domain.to_owned());
        assert_eq!(
            domain("From: A <a@Mail.Example.org>\r\n\r\n"),
            of("mail.example.org")
        );
        assert_eq!(
            domain("from:\r\n \"x, y\"\r\n <a@b.example>\r\n\r\n"),
            of("b.example")
        );
        assert_eq!(domain("From: a@b.example, c@d.example\r\n\r\n"), None);
        assert_eq!(domain("From: root\r\n\r\n"), None);
        assert_eq!(domain("Subject: x\r\n\r\nFrom: a@b\r\n"), None);
        assert_eq!(domain("From: a@b\r\nFrom: c@d\r\n\r\n"), None);
        assert_eq!(domain("From: a@b\r\nFROM : a@b\r\n\r\n"), None);
        assert_eq!(domain(" x\r\nFrom: a@b\r\n\r\n"), None);
    }
}
