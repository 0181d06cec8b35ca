//! Answers without a resource.

use axum::http::StatusCode;
use axum::http::header::{HeaderValue, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use vere_http::server::content;

const TEXT: &str = "text/plain; charset=utf-8";

/// An answer without the resource: a status, and a line for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    status: StatusCode,
    why: &'static str,
}

/// An answer without the resource.
pub(crate) const fn refused(status: StatusCode, why: &'static str) -> Refusal {
    Refusal { status, why }
}

/// The answer for names and domains foreign to the system.
pub(crate) const fn unknown() -> Refusal {
    refused(StatusCode::NOT_FOUND, "unknown name")
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = content(self.status, TEXT, format!("{}\n", self.why));
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            let later = HeaderValue::from_static("5");
            response.headers_mut().insert(RETRY_AFTER, later);
        }
        response
    }
}
