//! The answers to requests.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, LOCATION,
    REFERRER_POLICY, STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use tokio::time::timeout;
use vere_discovery::names::POLICY_LABEL;
use vere_discovery::page::{self, Page};
use vere_discovery::{Address, RequestError, autoconfig, autodiscover, policy, profile, security};
use vere_http::server::{Client, content};
use vere_telemetry::metrics::{WebRequest, WebResource, WebScheme, WebStatus};

use crate::asked::Asked;
use crate::refusal::{Refusal, refused, unknown};
use crate::site::{Site, now};

const JSON: &str = "application/json";
/// The path of Autodiscover v2, in lower case.
const AUTODISCOVER_JSON: &str = "/autodiscover/autodiscover.json";
/// Browsers keep to HTTPS for a week: long enough to help, short enough to give a name to another server.
const KEEP_HTTPS: HeaderValue = HeaderValue::from_static("max-age=604800");
/// For answers with nothing of a user.
const PUBLIC: HeaderValue = HeaderValue::from_static("max-age=300");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// The routes of HTTPS.
pub(crate) fn encrypted(site: Arc<Site>) -> Router {
    Router::new()
        .route("/", get(root))
        .route("/.well-known/mta-sts.txt", get(sts_policy))
        .route("/.well-known/security.txt", get(security_txt))
        .route("/.well-known/acme-challenge/{token}", get(challenge))
        .route("/mail/config-v1.1.xml", get(configuration))
        .route(
            "/.well-known/autoconfig/mail/config-v1.1.xml",
            get(configuration),
        )
        .route("/apple.mobileconfig", get(apple_profile))
        .fallback(any_case)
        .layer(middleware::from_fn_with_state(
            (Arc::clone(&site), WebScheme::Https),
            finish,
        ))
        .with_state(site)
}

/// The routes of HTTP.
pub(crate) fn in_clear(site: Arc<Site>) -> Router {
    Router::new()
        .route("/.well-known/acme-challenge/{token}", get(challenge))
        .fallback(to_https)
        .layer(middleware::from_fn_with_state(
            (Arc::clone(&site), WebScheme::Http),
            finish,
        ))
        .with_state(site)
}

/// Adds the fields of every answer, counts and logs.
async fn finish(
    State((site, scheme)): State<(Arc<Site>, WebScheme)>,
    request: Request,
    next: Next,
) -> Response {
    let resource = resource(request.uri().path());
    let client = request.extensions().get::<Client>().copied();
    let mut response = next.run(request).await;
    let fields: [(HeaderName, HeaderValue); 3] = [
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (
            CONTENT_SECURITY_POLICY,
            HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
        ),
    ];
    for (name, value) in fields {
        response.headers_mut().entry(name).or_insert(value);
    }
    if scheme == WebScheme::Https {
        let headers = response.headers_mut();
        headers.insert(STRICT_TRANSPORT_SECURITY, KEEP_HTTPS);
    }
    let status = WebStatus::of(response.status().as_u16());
    let request = WebRequest {
        scheme,
        resource,
        status,
    };
    site.metrics.requests.get_or_create(&request).inc();
    let client = client.map(|Client(address)| address.to_string());
    tracing::debug!(
        client = client.unwrap_or_default(),
        resource = resource.value(),
        status = response.status().as_u16(),
        "request answered"
    );
    response
}

/// What a path asks for, for the metrics.
fn resource(path: &str) -> WebResource {
    match path {
        "/" => WebResource::Page,
        "/.well-known/mta-sts.txt" => WebResource::MtaSts,
        "/.well-known/security.txt" => WebResource::SecurityTxt,
        "/apple.mobileconfig" => WebResource::AppleProfile,
        path if path.ends_with("/config-v1.1.xml") => WebResource::Autoconfig,
        path if path.starts_with("/.well-known/acme-challenge/") => WebResource::AcmeChallenge,
        path if path.to_ascii_lowercase().starts_with("/autodiscover/") => {
            WebResource::Autodiscover
        }
        _ => WebResource::Other,
    }
}

fn found(kind: &'static str, body: String, cache: HeaderValue) -> Response {
    let mut response = content(StatusCode::OK, kind, body);
    response.headers_mut().insert(CACHE_CONTROL, cache);
    response
}

async fn root(asked: Asked) -> Response {
    let domain = asked.domain.as_ref();
    let text = page::write(&Page {
        title: domain.unwrap_or(&asked.name.name).as_str(),
        has_files: domain.is_some() && !asked.view.services.is_empty(),
        has_policy: asked.view.policy.is_some() && is_policy_name(&asked),
        services: &asked.view.services,
    });
    let mut response = found(page::MEDIA_TYPE, text, PUBLIC);
    if let Ok(policy) = HeaderValue::from_str(&page::content_security_policy()) {
        response
            .headers_mut()
            .insert(CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// The policy is that of `mta-sts.DOMAIN`, and of no other name (RFC 8461 section 3.3).
fn is_policy_name(asked: &Asked) -> bool {
    let of = asked.name.of.as_ref();
    of.is_some_and(|(label, domain)| {
        *label == POLICY_LABEL && asked.domain.as_ref() == Some(domain)
    })
}

async fn sts_policy(asked: Asked) -> Response {
    match asked.view.policy.clone() {
        Some(text) if is_policy_name(&asked) => found(policy::MEDIA_TYPE, text, PUBLIC),
        _ => unknown().into_response(),
    }
}

async fn security_txt(asked: Asked) -> Response {
    let domain = asked.domain.as_ref().unwrap_or(&asked.name.name);
    let mut contacts = asked.view.contacts.clone();
    if contacts.is_empty() {
        contacts.push(format!("mailto:postmaster@{domain}"));
    }
    let text = security::write(asked.name.name.as_str(), &contacts, now());
    found(security::MEDIA_TYPE, text, PUBLIC)
}

async fn configuration(asked: Asked) -> Result<Response, Refusal> {
    let domain = match asked.value(&["emailaddress"]) {
        // Programs put a placeholder here when they only look whether the file exists.
        Some(text) => match Address::parse(&text) {
            Some(user) => {
                asked.local(&user)?;
                user.domain().clone()
            }
            None => asked.domain.clone().ok_or_else(unknown)?,
        },
        None => asked.domain.clone().ok_or_else(unknown)?,
    };
    if asked.view.services.is_empty() {
        return Err(unknown());
    }
    let text = autoconfig::write(&domain, &asked.view.services);
    Ok(found(autoconfig::MEDIA_TYPE, text, PUBLIC))
}

async fn apple_profile(asked: Asked) -> Result<Response, Refusal> {
    let user = asked.user(&asked.value(&["email"]).unwrap_or_default())?;
    let text = profile::write(&user, &asked.view.services).ok_or_else(unknown)?;
    let mut response = found(profile::MEDIA_TYPE, text, NO_STORE);
    let name = format!("attachment; filename=\"{}\"", profile::FILE_NAME);
    if let Ok(name) = HeaderValue::from_str(&name) {
        response.headers_mut().insert(CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

/// A CA connects under a name that may be no local domain, such as another name of the certificate.
async fn challenge(State(site): State<Arc<Site>>, Path(token): Path<String>) -> Response {
    match site.challenge(&token) {
        Some(answer) => content(StatusCode::OK, "application/octet-stream", answer),
        None => refused(StatusCode::NOT_FOUND, "no such challenge").into_response(),
    }
}

/// Autodiscover, whose paths clients write in any case.
async fn any_case(asked: Asked, request: Request) -> Result<Response, Refusal> {
    let path = request.uri().path().to_ascii_lowercase();
    if path == "/autodiscover/autodiscover.xml" {
        return match *request.method() {
            Method::POST => outlook(&asked, request.into_body()).await,
            _ => Err(refused(StatusCode::METHOD_NOT_ALLOWED, "expected POST")),
        };
    }
    let rest = path.strip_prefix(AUTODISCOVER_JSON).ok_or_else(unknown)?;
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Err(refused(StatusCode::METHOD_NOT_ALLOWED, "expected GET"));
    }
    // The address is in the query, or the last part of the path behind a version.
    let in_path = rest.rsplit('/').next().filter(|part| !part.is_empty());
    let in_path = in_path.map(decoded);
    let text = asked.value(&["email"]).or(in_path).unwrap_or_default();
    asked.user(&text)?;
    let protocol = asked.value(&["protocol"]).unwrap_or_default();
    let authority = asked.view.authority(asked.name.name.as_str());
    let answer = autodiscover::of_protocol(&protocol, &authority.ok_or_else(unknown)?);
    let status = match answer.is_known {
        true => StatusCode::OK,
        false => StatusCode::BAD_REQUEST,
    };
    Ok(content(status, JSON, answer.text))
}

/// A part of a path without percent encoding, of which an address needs `%40` alone.
fn decoded(part: &str) -> String {
    part.replace("%40", "@")
}

/// The answer to a request of Outlook.
async fn outlook(asked: &Asked, body: Body) -> Result<Response, Refusal> {
    let read = to_bytes(body, asked.view.body_octets_max);
    let Ok(read) = timeout(asked.view.body_timeout, read).await else {
        return Err(refused(
            StatusCode::REQUEST_TIMEOUT,
            "body not complete in time",
        ));
    };
    let body = read.map_err(|_| refused(StatusCode::PAYLOAD_TOO_LARGE, "body too long"))?;
    let refusal = |error: &RequestError| {
        found(
            autodiscover::MEDIA_TYPE,
            autodiscover::refusal(error),
            NO_STORE,
        )
    };
    // Outlook understands an error within an answer of status 200 alone.
    let user = match autodiscover::address(&body) {
        Ok(user) => user,
        Err(error) => return Ok(refusal(&error)),
    };
    asked.local(&user)?;
    if asked.view.services.is_empty() {
        return Err(unknown());
    }
    let text = autodiscover::answer(&user, &asked.view.services);
    Ok(found(autodiscover::MEDIA_TYPE, text, NO_STORE))
}

/// Leads to the same resource by HTTPS, for known names alone.
async fn to_https(asked: Asked, method: Method, uri: Uri) -> Result<Response, Refusal> {
    let authority = asked.view.authority(asked.name.name.as_str());
    let authority = authority.ok_or_else(unknown)?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let location = format!("https://{authority}{path}");
    let location = HeaderValue::from_str(&location).map_err(|_| unknown())?;
    let status = match method {
        Method::GET | Method::HEAD => StatusCode::MOVED_PERMANENTLY,
        // A POST request stays one.
        _ => StatusCode::PERMANENT_REDIRECT,
    };
    let mut response = refused(status, "see HTTPS").into_response();
    response.headers_mut().insert(LOCATION, location);
    Ok(response)
}
