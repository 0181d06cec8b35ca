//! The register of several machines: etcd, through the JSON gateway that every member has
//! (`/v3/kv/range`, `/v3/kv/txn`; etcd 3.4 and later).
//!
//! A version is etcd's modification revision. The endpoints are tried in turn, beginning with the
//! endpoint that answered last; each endpoint has a separate timeout, so that a call ends within
//! the number of endpoints times the timeout. A swap with an unknown outcome at an endpoint is
//! tried at the next endpoint all the same: if the swap succeeds there, the first attempt neither
//! took effect nor can take effect later; if the swap finds another version, that version may come
//! from the first attempt, and the outcome remains unknown.

mod http;
mod wire;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use serde_json::Value;
use tokio::time::timeout;
use vere_units::Secret;

use crate::key::{Key, check_value};
use crate::{RegisterError, Swap, Versioned};
use http::{Failure, Http};

/// The most endpoints of a cluster.
const ENDPOINTS_MAX: usize = 16;

/// The endpoints of etcd and the credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdOptions {
    /// `http://HOST:PORT` or `https://HOST:PORT` of 1 to 16 members of one cluster.
    pub endpoints: Vec<String>,
    /// What stands before `/group/NAME` in etcd's keys; not empty, without a slash at the end.
    pub prefix: String,
    /// The longest wait for an endpoint, authentication included.
    pub timeout: Duration,
    /// A PEM file with the authorities of the members' certificates; the system's when absent.
    pub ca: Option<PathBuf>,
    /// The certificate for members that demand a client certificate.
    pub certificate: Option<ClientCertificate>,
    /// The user to authenticate as, where etcd has users.
    pub login: Option<Login>,
}

/// A certificate chain and its private key, both as PEM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The chain, the own certificate first.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// A user of etcd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// Its name.
    pub user: String,
    /// Its password.
    pub password: Secret<String>,
}

impl EtcdOptions {
    /// Plain options for these endpoints: the prefix `vere`, 2 s, no certificates of one's own.
    #[must_use]
    pub fn new(endpoints: Vec<String>) -> Self {
        Self {
            endpoints,
            prefix: "vere".to_owned(),
            timeout: http::TIMEOUT,
            ca: None,
            certificate: None,
            login: None,
        }
    }
}

/// A register in etcd; clones share the connections.
///
/// Needs a tokio runtime with input, output and time.
#[derive(Debug, Clone)]
pub struct EtcdRegister(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    options: EtcdOptions,
    http: Http,
    /// The endpoint that answered last.
    last_good: AtomicUsize,
    token: Mutex<Option<String>>,
    /// The cluster that answered first: versions of another cluster have no meaning here.
    cluster: OnceLock<String>,
}

/// A successful answer, and whether an earlier attempt of the same request may have been carried
/// out.
struct Answered {
    octets: Bytes,
    before: bool,
}

/// The reason for an endpoint's failure.
enum Refusal {
    /// The refusal is permanent, at every endpoint.
    Final(String),
    /// Another may.
    Failed(Failure),
    /// The token has run out, or users were changed.
    Token,
}

impl EtcdRegister {
    /// Reads the certificates; blocks for that, and does not connect yet.
    ///
    /// # Errors
    ///
    /// [`RegisterError::Refused`], when the options cannot be used.
    pub fn new(options: EtcdOptions) -> Result<Self, RegisterError> {
        let count = options.endpoints.len();
        if !(1..=ENDPOINTS_MAX).contains(&count) {
            let what = format!("{count} endpoints, wanted are 1 to {ENDPOINTS_MAX}");
            return Err(RegisterError::refused(what));
        }
        if options.prefix.is_empty() || options.prefix.ends_with('/') {
            return Err(RegisterError::refused(
                "the prefix is empty or ends in a slash",
            ));
        }
        Ok(Self(Arc::new(Shared {
            http: Http::new(&options)?,
            options,
            last_good: AtomicUsize::new(0),
            token: Mutex::new(None),
            cluster: OnceLock::new(),
        })))
    }

    /// As [`Register::read`](crate::Register::read).
    ///
    /// # Errors
    ///
    /// [`RegisterError`]; no value was changed.
    pub async fn read(&self, key: &str) -> Result<Option<Versioned>, RegisterError> {
        let key = self.0.stored(&Key::new(key)?);
        let answered = self.0.ask(wire::RANGE, &wire::read(&key), false).await?;
        let page = wire::page(&answered.octets).map_err(|what| damaged(&key, &what))?;
        let page = self.0.ours(page)?;
        Ok(page.entries.into_iter().next().map(|(_, there)| there))
    }

    /// As [`Register::swap`](crate::Register::swap).
    ///
    /// # Errors
    ///
    /// [`RegisterError`]; it says whether the swap may have taken effect, or may yet.
    pub async fn swap(
        &self,
        key: &str,
        expected: Option<u64>,
        value: &[u8],
    ) -> Result<Swap, RegisterError> {
        let key = self.0.stored(&Key::new(key)?);
        check_value(value)?;
        if expected == Some(0) {
            return Err(RegisterError::refused("no value has the version 0"));
        }
        let request = wire::swap(&key, expected.unwrap_or(0), value);
        let answered = self.0.ask(wire::TXN, &request, true).await?;
        let swap = wire::swapped(&answered.octets)
            .map_err(|what| RegisterError::unknown(format!("the answer for {key}: {what}")))?;
        match self.0.ours(swap) {
            Err(error) if answered.before => Err(RegisterError::unknown(error.to_string())),
            Err(error) => Err(error),
            Ok(Swap::Conflict(_)) if answered.before => {
                let what = format!("{key} was changed, perhaps by this swap at another endpoint");
                Err(RegisterError::unknown(what))
            }
            Ok(swap) => Ok(swap),
        }
    }

    /// As [`Register::list`](crate::Register::list).
    ///
    /// # Errors
    ///
    /// [`RegisterError`]; no value was changed.
    pub async fn list(&self, prefix: &str) -> Result<Vec<(String, Versioned)>, RegisterError> {
        let above = format!("{}/", self.0.options.prefix);
        let prefix = format!("{above}{prefix}");
        let mut from = prefix.as_bytes().to_vec();
        let mut found = Vec::new();
        loop {
            let answered = self
                .0
                .ask(wire::RANGE, &wire::list(&from, &prefix), false)
                .await?;
            let page = wire::page(&answered.octets).map_err(|what| damaged(&prefix, &what))?;
            let page = self.0.ours(page)?;
            let Some((last, _)) = page.entries.last() else {
                return Ok(found);
            };
            from.clone_from(last);
            from.push(0);
            for (key, versioned) in page.entries {
                // A key of another form was put there by another program.
                let key = String::from_utf8(key).ok();
                let key = key.as_ref().and_then(|key| key.strip_prefix(&above));
                if let Some(key) = key.and_then(|key| Key::new(key).ok()) {
                    found.push((key.as_str().to_owned(), versioned));
                }
            }
            if !page.more {
                return Ok(found);
            }
        }
    }
}

impl Shared {
    fn stored(&self, key: &Key) -> String {
        format!("{}/{}", self.options.prefix, key.as_str())
    }

    /// Refuses the answers of another cluster.
    fn ours<T>(&self, from: wire::From<T>) -> Result<T, RegisterError> {
        let first = self.cluster.get_or_init(|| from.cluster.clone());
        if *first == from.cluster {
            return Ok(from.answer);
        }
        Err(RegisterError::refused(format!(
            "the endpoints belong to different clusters, {first} and {}",
            from.cluster
        )))
    }

    /// Tries the endpoints in turn.
    async fn ask(
        &self,
        path: &str,
        request: &Value,
        changes: bool,
    ) -> Result<Answered, RegisterError> {
        let body = Bytes::from(request.to_string());
        let count = self.options.endpoints.len();
        let first = self.last_good.load(Ordering::Relaxed);
        let (mut before, mut certificates) = (false, true);
        let mut reasons = Vec::new();
        for n in 0..count {
            let index = (first + n) % count;
            let Some(endpoint) = self.options.endpoints.get(index) else {
                continue;
            };
            match self.try_endpoint(endpoint, path, &body).await {
                Ok(octets) => {
                    self.last_good.store(index, Ordering::Relaxed);
                    return Ok(Answered { octets, before });
                }
                // An earlier endpoint may have carried out a request that this endpoint refuses.
                Err(Refusal::Final(reason)) if !before => {
                    return Err(RegisterError::refused(format!("{endpoint}: {reason}")));
                }
                Err(Refusal::Final(reason)) => reasons.push(format!("{endpoint}: {reason}")),
                Err(Refusal::Token) => {
                    certificates = false;
                    reasons.push(format!("{endpoint}: gives no lasting token"));
                }
                Err(Refusal::Failed(failure)) => {
                    before |= failure.sent && changes;
                    certificates &= failure.certificates;
                    reasons.push(format!("{endpoint}: {}", failure.reason));
                }
            }
        }
        let reason = reasons.join("; ");
        Err(match (before, certificates) {
            (true, _) => RegisterError::unknown(reason),
            (false, true) => RegisterError::refused(reason),
            (false, false) => RegisterError::unreachable(reason),
        })
    }

    async fn try_endpoint(
        &self,
        endpoint: &str,
        path: &str,
        body: &Bytes,
    ) -> Result<Bytes, Refusal> {
        let limit = self.options.timeout;
        let exchange = async {
            match self.authenticated(endpoint, path, body).await {
                // Another attempt with a new token; the refusal of the old token means that the
                // request was not carried out.
                Err(Refusal::Token) => self.authenticated(endpoint, path, body).await,
                other => other,
            }
        };
        let Ok(answer) = timeout(limit, exchange).await else {
            return Err(Refusal::Failed(Failure {
                reason: format!("no answer within {limit:?}"),
                sent: true,
                certificates: false,
            }));
        };
        answer
    }

    async fn authenticated(
        &self,
        endpoint: &str,
        path: &str,
        body: &Bytes,
    ) -> Result<Bytes, Refusal> {
        let token = match &self.options.login {
            None => None,
            Some(login) => Some(self.token(endpoint, login).await?),
        };
        let answer = self
            .post(endpoint, path, body.clone(), token.as_deref())
            .await;
        if matches!(answer, Err(Refusal::Token)) {
            *self.cached() = None;
            if self.options.login.is_none() {
                return Err(Refusal::Final("etcd wants a user".to_owned()));
            }
        }
        answer
    }

    async fn token(&self, endpoint: &str, login: &Login) -> Result<String, Refusal> {
        let cached = self.cached().clone();
        if let Some(token) = cached {
            return Ok(token);
        }
        let request = wire::authenticate(&login.user, login.password.expose());
        let body = Bytes::from(request.to_string());
        let answer = self.post(endpoint, wire::AUTHENTICATE, body, None).await;
        let token = answer
            .and_then(|octets| {
                wire::token(&octets).map_err(|reason| failed(format!("no token: {reason}"), false))
            })
            .map_err(|refusal| match refusal {
                // The request for a token changes no value.
                Refusal::Failed(failure) => Refusal::Failed(Failure {
                    sent: false,
                    ..failure
                }),
                other => other,
            })?;
        *self.cached() = Some(token.clone());
        Ok(token)
    }

    fn cached(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.token.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn post(
        &self,
        endpoint: &str,
        path: &str,
        body: Bytes,
        token: Option<&str>,
    ) -> Result<Bytes, Refusal> {
        let url = format!("{}{path}", endpoint.trim_end_matches('/'));
        let answer = self.http.post(&url, body, token).await;
        let (status, octets) = answer.map_err(Refusal::Failed)?;
        if status == StatusCode::OK {
            return Ok(octets);
        }
        Err(refusal(status, &octets))
    }
}

/// The meaning of an unsuccessful answer; the codes are the codes of gRPC
/// (<https://grpc.io/docs/guides/status-codes/>).
fn refusal(status: StatusCode, octets: &[u8]) -> Refusal {
    let (code, words) = wire::error(octets);
    let reason = format!("{words} (HTTP {}, code {code})", status.as_u16());
    match code {
        // INVALID_ARGUMENT, when users were changed since the token was given; UNAUTHENTICATED.
        3 if words.contains("auth store is old") => Refusal::Token,
        // The same code, where users exist and the request has no token.
        3 if words.contains("user name is empty") => Refusal::Token,
        16 => Refusal::Token,
        // INVALID_ARGUMENT (a wrong password too), NOT_FOUND, PERMISSION_DENIED,
        // FAILED_PRECONDITION, UNIMPLEMENTED.
        3 | 5 | 7 | 9 | 12 => Refusal::Final(reason),
        // RESOURCE_EXHAUSTED: the database is full, or too much is asked at once.
        8 if words.starts_with("etcdserver: ") => failed(reason, false),
        _ if status == StatusCode::NOT_FOUND => Refusal::Final(reason),
        // UNAVAILABLE, DEADLINE_EXCEEDED, ...: no leader, or no quorum in time.
        _ => failed(reason, true),
    }
}

fn failed(reason: String, sent: bool) -> Refusal {
    Refusal::Failed(Failure {
        reason,
        sent,
        certificates: false,
    })
}

fn damaged(key: &str, what: &str) -> RegisterError {
    RegisterError::Damaged {
        file: PathBuf::from(format!("etcd:{key}")),
        reason: what.to_owned(),
    }
}
