//! Filters with right and wrong answers: real programs, and peers made here.

mod bad;
mod connections;
mod dmarc;
mod real;
mod rspamd;
mod set;

use std::time::Duration;

use bytes::Bytes;

use crate::{Address, Asked, Bounds, Clamd, Filter, Kind, Outcome, Rspamd, Session, Terms};

const MESSAGE: &[u8] = b"From: a@b.example\r\nSubject: one\r\nX-A: 1\r\nX-A: 2\r\n\r\nbody\r\n";

fn session() -> Session<'static> {
    Session {
        client: [192, 0, 2, 7].into(),
        port: 4_321,
        client_name: "mx.example",
        helo: "helo.example",
        reverse_path: "a@b.example",
        recipients: &["c@d.example", "e@d.example"],
        account: "",
        id: "ID1",
        host: "mail.example",
        tls_version: "",
        tls_cipher: "",
    }
}

fn kinds() -> [Kind; 3] {
    [
        Kind::Rspamd(Rspamd::default()),
        Kind::Clamd(Clamd),
        Kind::Milter,
    ]
}

fn filter(kind: Kind, address: Address, timeout: Duration) -> Filter {
    Filter::new(Terms {
        kind,
        address,
        timeout,
        size_max: 1024 * 1024,
        connections_max: 2,
        bounds: Bounds::default(),
    })
}

async fn ask(filter: &Filter, message: &[u8]) -> Asked {
    filter
        .ask(&Bytes::copy_from_slice(message), &session())
        .await
}

async fn outcome(filter: &Filter, message: &[u8]) -> Outcome {
    outcome_of(filter, message, &session()).await
}

async fn outcome_of(filter: &Filter, message: &[u8], session: &Session<'_>) -> Outcome {
    match filter.ask(&Bytes::copy_from_slice(message), session).await {
        Asked::Answered(outcome) => outcome,
        other => panic!("{other:?}"),
    }
}
