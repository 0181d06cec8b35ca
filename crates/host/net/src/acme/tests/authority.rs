//! An authority in this process that answers as RFC 8555 says and checks no signatures.

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, CertifiedIssuer, IsCa,
    KeyPair, PublicKeyData as _,
};
use serde_json::{Value, json};

use super::super::http::ClientFactory;
use super::super::{Acme, AcmeError, AcmeOptions, Challenges};

const BASE: &str = "https://authority.test";

fn is_bad(name: &str) -> bool {
    name.starts_with("bad.")
}

/// What the authority does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behaviour {
    Good,
    /// It does not find the answer of the first name.
    Refuses,
    /// It does not find the answer of names that begin with `bad.`.
    RefusesBad,
    OffersDnsOnly,
    RateLimited,
    SignsAnotherKey,
    SignsForThePast,
}

#[derive(Clone)]
pub(super) struct Authority {
    state: Arc<Mutex<State>>,
}

struct State {
    behaviour: Behaviour,
    issuer: CertifiedIssuer<'static, KeyPair>,
    accounts: HashSet<String>,
    orders: usize,
    names: Vec<String>,
    certificate: Option<String>,
    /// Where the answers are found; the way over HTTP is tested with pebble.
    challenges: Option<Challenges>,
}

impl Authority {
    pub(super) fn new(behaviour: Behaviour) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("random");
        let state = State {
            behaviour,
            issuer: CertifiedIssuer::self_signed(params, key).expect("well formed"),
            accounts: HashSet::new(),
            orders: 0,
            names: Vec::new(),
            certificate: None,
            challenges: None,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    pub(super) fn try_acme(&self, options: AcmeOptions) -> Result<Acme, AcmeError> {
        let client = self.clone();
        let acme = Acme::with_http(
            options,
            Some(ClientFactory::new(move || Box::new(client.clone()))),
        )?;
        self.state.lock().expect("no panic").challenges = Some(acme.places().http());
        Ok(acme)
    }

    pub(super) fn acme(&self, options: AcmeOptions) -> Acme {
        self.try_acme(options).expect("good options")
    }

    pub(super) fn behave(&self, behaviour: Behaviour) {
        self.state.lock().expect("no panic").behaviour = behaviour;
    }

    pub(super) fn accounts(&self) -> usize {
        self.state.lock().expect("no panic").accounts.len()
    }

    pub(super) fn orders(&self) -> usize {
        self.state.lock().expect("no panic").orders
    }

    pub(super) fn forget_accounts(&self) {
        self.state.lock().expect("no panic").accounts.clear();
    }
}

impl HttpClient for Authority {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let state = Arc::clone(&self.state);
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.expect("in memory").to_bytes();
            let path = parts.uri.path().to_owned();
            let (code, location, body) = state.lock().expect("no panic").answer(&path, &body);
            let mut response = Response::builder().status(code).header("Replay-Nonce", "n");
            if let Some(location) = location {
                response = response.header("Location", format!("{BASE}{location}"));
            }
            Ok(BytesResponse::from(
                response.body(Full::new(Bytes::from(body)))?,
            ))
        })
    }
}

type Answer = (u16, Option<&'static str>, String);

fn problem(kind: &str, detail: &str) -> Answer {
    let kind = format!("urn:ietf:params:acme:error:{kind}");
    (
        400,
        None,
        json!({"type": kind, "detail": detail, "status": 400}).to_string(),
    )
}

/// A part of a signed request (RFC 7515 section 7.2.2), not verified.
fn part(body: &[u8], name: &str) -> Value {
    let signed: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = signed[name].as_str().unwrap_or_default();
    let text = BASE64_URL_SAFE_NO_PAD.decode(text).expect("base64");
    serde_json::from_slice(&text).unwrap_or_default()
}

impl State {
    fn answer(&mut self, path: &str, body: &[u8]) -> Answer {
        match path {
            "/directory" => (200, None, directory()),
            "/new-nonce" => (200, None, String::new()),
            "/new-account" => {
                self.accounts.insert(format!("{BASE}/account"));
                (
                    201,
                    Some("/account"),
                    json!({"status": "valid"}).to_string(),
                )
            }
            "/new-order" => self.new_order(body),
            "/order" => (200, None, self.order()),
            "/finalize" => self.finalize(body),
            "/certificate" => (200, None, self.certificate.clone().expect("finalized")),
            _ => self.authorization(path),
        }
    }

    fn new_order(&mut self, body: &[u8]) -> Answer {
        self.orders += 1;
        if self.behaviour == Behaviour::RateLimited {
            return problem("rateLimited", "too many orders");
        }
        let account = part(body, "protected")["kid"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if !self.accounts.contains(&account) {
            return problem("accountDoesNotExist", "who is that?");
        }
        let names = part(body, "payload");
        let names = names["identifiers"].as_array().expect("names").iter();
        self.names = names
            .map(|name| name["value"].as_str().expect("text").to_owned())
            .collect();
        self.certificate = None;
        (201, Some("/order"), self.order())
    }

    fn order(&self) -> String {
        let authorizations: Vec<String> = self
            .names
            .iter()
            .map(|name| format!("{BASE}/authorization/{name}"))
            .collect();
        let status = match (self.behaviour, &self.certificate) {
            (Behaviour::Refuses, _) => "invalid",
            (Behaviour::RefusesBad, _) if self.names.iter().any(|name| is_bad(name)) => "invalid",
            (_, Some(_)) => "valid",
            (_, None) => "ready",
        };
        json!({
            "status": status,
            "authorizations": authorizations,
            "finalize": format!("{BASE}/finalize"),
            "certificate": self.certificate.as_ref().map(|_| format!("{BASE}/certificate")),
        })
        .to_string()
    }

    /// An authorization, or its challenge, which looks for the answer at once.
    fn authorization(&self, path: &str) -> Answer {
        let (kind, name) = path[1..].split_once('/').expect("a name");
        let token = format!("token-{name}");
        // Not yet in the answer to "look now", only in what is asked for afterwards.
        let refused = match self.behaviour {
            Behaviour::Refuses => name == self.names[0],
            Behaviour::RefusesBad => is_bad(name),
            _ => false,
        };
        let refused = refused && kind == "authorization";
        let error = refused.then(
            || json!({"type": "urn:ietf:params:acme:error:unauthorized", "detail": "got 404"}),
        );
        let http = json!({
            "type": if self.behaviour == Behaviour::OffersDnsOnly { "dns-01" } else { "http-01" },
            "url": format!("{BASE}/challenge/{name}"),
            "token": token,
            "status": "pending",
            "error": error,
        });
        if kind == "challenge" {
            let challenges = self.challenges.as_ref().expect("connected");
            let answer = challenges.answer(&format!("/.well-known/acme-challenge/{token}"));
            assert!(answer.is_some_and(|answer| answer.starts_with(&format!("{token}."))));
            return (200, None, http.to_string());
        }
        let identifier = json!({"type": "dns", "value": name});
        let body = json!({"identifier": identifier, "status": "pending", "challenges": [http]});
        (200, None, body.to_string())
    }

    fn finalize(&mut self, body: &[u8]) -> Answer {
        let csr = part(body, "payload")["csr"]
            .as_str()
            .expect("a request")
            .to_owned();
        let csr = BASE64_URL_SAFE_NO_PAD.decode(csr).expect("base64");
        let mut csr = CertificateSigningRequestParams::from_der(&csr.into()).expect("a request");
        let (now, day) = (SystemTime::now(), Duration::from_secs(86400));
        let past = self.behaviour == Behaviour::SignsForThePast;
        csr.params.not_before = (if past { now - 89 * day } else { now }).into();
        csr.params.not_after = (if past { now + day } else { now + 90 * day }).into();
        let certificate = if self.behaviour == Behaviour::SignsAnotherKey {
            let other = KeyPair::generate().expect("random");
            csr.params.signed_by(&other, &self.issuer)
        } else {
            assert!(!csr.public_key.der_bytes().is_empty());
            csr.signed_by(&self.issuer)
        };
        let certificate = certificate.expect("well formed").pem();
        self.certificate = Some(certificate + &self.issuer.pem());
        (200, None, self.order())
    }
}

fn directory() -> String {
    json!({
        "newNonce": format!("{BASE}/new-nonce"),
        "newAccount": format!("{BASE}/new-account"),
        "newOrder": format!("{BASE}/new-order"),
        "revokeCert": format!("{BASE}/revoke"),
        "keyChange": format!("{BASE}/key-change"),
    })
    .to_string()
}
