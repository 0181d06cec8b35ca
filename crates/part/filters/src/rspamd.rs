//! rspamd: `/checkv2`, `/learnspam` and `/learnham` (rspamd's page "Rspamd protocol").

mod answer;

use bytes::Bytes;
use vere_http::direct::{Answer, Post, exchange};
use vere_milter::Session;
use vere_units::Secret;

use crate::address::Address;
use crate::bounds::Bounds;
use crate::failure::{Failure, printable};
use crate::outcome::Outcome;
use crate::stream::connect;

pub use answer::read_answer;

/// The beginning of an error's text that goes into the log.
const ERROR_OCTETS_SHOWN: usize = 200;

/// The terms of rspamd.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rspamd {
    /// The password of the worker, where the worker asks for a password.
    pub password: Option<Secret<String>>,
    /// Whether all rules run, also when the verdict is certain before (`Pass: all`).
    pub pass_all: bool,
}

/// A class of messages that rspamd learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Unwanted mail.
    Spam,
    /// Wanted mail.
    Ham,
}

impl Rspamd {
    pub(crate) async fn check(
        &self,
        address: &Address,
        bounds: &Bounds,
        message: &Bytes,
        session: &Session<'_>,
    ) -> Result<Outcome, Failure> {
        let client = session.client.to_canonical().to_string();
        let from = match session.reverse_path {
            "" => "<>",
            path => path,
        };
        let mut fields = vec![("IP", client.as_str()), ("From", from)];
        let known = [
            ("Helo", session.helo),
            ("Hostname", session.client_name),
            ("User", session.account),
            ("Queue-Id", session.id),
            ("MTA-Name", session.host),
            ("TLS-Version", session.tls_version),
            ("TLS-Cipher", session.tls_cipher),
            ("Pass", if self.pass_all { "all" } else { "" }),
        ];
        fields.extend(known.into_iter().filter(|(_, value)| !value.is_empty()));
        fields.extend(session.recipients.iter().map(|rcpt| ("Rcpt", *rcpt)));
        let answer = self
            .post(address, bounds, "/checkv2", fields, message)
            .await?;
        match answer.status {
            200 => read_answer(&answer.body, bounds, message),
            _ => Err(status(&answer)),
        }
    }

    pub(crate) async fn learn(
        &self,
        address: &Address,
        bounds: &Bounds,
        message: &Bytes,
        class: Class,
    ) -> Result<(), Failure> {
        let path = match class {
            Class::Spam => "/learnspam",
            Class::Ham => "/learnham",
        };
        let answer = self
            .post(address, bounds, path, Vec::new(), message)
            .await?;
        match answer.status {
            // 208: learned before.
            200 | 208 => Ok(()),
            _ => Err(status(&answer)),
        }
    }

    async fn post<'a>(
        &'a self,
        address: &Address,
        bounds: &Bounds,
        path: &str,
        mut fields: Vec<(&'a str, &'a str)>,
        message: &Bytes,
    ) -> Result<Answer, Failure> {
        if let Some(password) = &self.password {
            fields.push(("Password", password.expose()));
        }
        let post = Post {
            host: "localhost",
            path,
            fields: &fields,
            body: message.clone(),
            answer_max: bounds.answer_octets,
        };
        Ok(exchange(connect(address).await?, post).await?)
    }
}

fn status(answer: &Answer) -> Failure {
    let text = match printable(&answer.body, ERROR_OCTETS_SHOWN) {
        text if text.is_empty() => text,
        text => format!(": {text}"),
    };
    Failure::Status {
        status: answer.status,
        text,
    }
}
