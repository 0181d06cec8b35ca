//! The requests and answers: JSON as etcd's gateway maps its protocol buffers, with octets in base64
//! and 64-bit numbers as texts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Swap, VALUE_MAX, Versioned};

/// The most values in an answer: with [`VALUE_MAX`] each, base64 and keys, the values fit into the
/// limit of an answer.
pub(super) const PAGE: usize = 8;

pub(super) const RANGE: &str = "/v3/kv/range";
pub(super) const TXN: &str = "/v3/kv/txn";
pub(super) const AUTHENTICATE: &str = "/v3/auth/authenticate";

/// Requests the newest value; not `serializable`, so that a quorum confirms the value.
pub(super) fn read(key: &str) -> Value {
    json!({ "key": BASE64.encode(key) })
}

/// Requests the keys from `from` on that begin with `prefix`, which must not be empty.
pub(super) fn list(from: &[u8], prefix: &str) -> Value {
    json!({
        "key": BASE64.encode(from),
        "range_end": BASE64.encode(end_of(prefix)),
        "limit": PAGE.to_string(),
    })
}

/// The first key behind all that begin with `prefix`: no octet of UTF-8 is 255.
fn end_of(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    if let Some(last) = end.last_mut() {
        *last = last.saturating_add(1);
    }
    end
}

/// Puts `value` if the key still has the expected modification revision; without a value that is 0.
pub(super) fn swap(key: &str, expected: u64, value: &[u8]) -> Value {
    let key = BASE64.encode(key);
    json!({
        "compare": [{
            "key": key,
            "target": "MOD",
            "result": "EQUAL",
            "mod_revision": expected.to_string(),
        }],
        "success": [{ "request_put": { "key": key, "value": BASE64.encode(value) } }],
        "failure": [{ "request_range": { "key": key } }],
    })
}

pub(super) fn authenticate(user: &str, password: &str) -> Value {
    json!({ "name": user, "password": password })
}

#[derive(Debug, Deserialize)]
struct Header {
    cluster_id: String,
    #[serde(default)]
    revision: String,
}

#[derive(Debug, Deserialize)]
struct KeyValue {
    key: String,
    mod_revision: String,
    #[serde(default)]
    value: String,
}

#[derive(Debug, Deserialize)]
struct Range {
    #[serde(default)]
    kvs: Vec<KeyValue>,
    #[serde(default)]
    more: bool,
}

#[derive(Debug, Deserialize)]
struct RangeAnswer {
    header: Header,
    #[serde(flatten)]
    range: Range,
}

#[derive(Debug, Deserialize)]
struct TxnAnswer {
    header: Header,
    #[serde(default)]
    succeeded: bool,
    #[serde(default)]
    responses: Vec<Response>,
}

#[derive(Debug, Deserialize)]
struct Response {
    response_range: Option<Range>,
}

#[derive(Debug, Deserialize)]
struct TokenAnswer {
    token: String,
}

#[derive(Debug, Deserialize)]
struct ErrorAnswer {
    #[serde(default)]
    error: String,
    #[serde(default)]
    code: u32,
}

/// An answer, with the cluster of its origin.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct From<T> {
    pub(super) cluster: String,
    pub(super) answer: T,
}

/// Keys with their values, and whether more keys follow.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) entries: Vec<(Vec<u8>, Versioned)>,
    pub(super) more: bool,
}

/// Decodes the answer to [`read`] and [`list`]; the error text describes a malformed answer.
pub(super) fn page(octets: &[u8]) -> Result<From<Page>, String> {
    let RangeAnswer { header, range } = parse(octets)?;
    let entries = range.kvs.into_iter().map(entry).collect::<Result<_, _>>()?;
    Ok(From {
        cluster: header.cluster_id,
        answer: Page {
            entries,
            more: range.more,
        },
    })
}

/// Reads the answer to [`swap`].
pub(super) fn swapped(octets: &[u8]) -> Result<From<Swap>, String> {
    let TxnAnswer {
        header,
        succeeded,
        responses,
    } = parse(octets)?;
    let answer = if succeeded {
        // The put is the only change of its transaction, whose revision is in the header.
        Swap::Done(revision(&header.revision)?)
    } else {
        let range = responses.into_iter().next();
        let range = range
            .and_then(|response| response.response_range)
            .ok_or("lacks the present value")?;
        let there = range.kvs.into_iter().next().map(entry).transpose()?;
        Swap::Conflict(there.map(|(_, versioned)| versioned))
    };
    Ok(From {
        cluster: header.cluster_id,
        answer,
    })
}

/// Reads the answer to [`authenticate`].
pub(super) fn token(octets: &[u8]) -> Result<String, String> {
    parse::<TokenAnswer>(octets).map(|answer| answer.token)
}

/// Reads an error: the code of gRPC and the words; whatever else answers has code 2, "unknown".
pub(super) fn error(octets: &[u8]) -> (u32, String) {
    match serde_json::from_slice::<ErrorAnswer>(octets) {
        Ok(answer) if answer.code != 0 => (answer.code, answer.error),
        _ => (2, "an answer that is not etcd's".to_owned()),
    }
}

fn parse<'a, T: Deserialize<'a>>(octets: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(octets).map_err(|error| error.to_string())
}

fn entry(entry: KeyValue) -> Result<(Vec<u8>, Versioned), String> {
    let octets = |text: &str| BASE64.decode(text).map_err(|error| error.to_string());
    let (key, value) = (octets(&entry.key)?, octets(&entry.value)?);
    if value.len() > VALUE_MAX {
        return Err(format!("a value has {} octets", value.len()));
    }
    let version = revision(&entry.mod_revision)?;
    Ok((key, Versioned { version, value }))
}

fn revision(text: &str) -> Result<u64, String> {
    let revision = text.parse().ok().filter(|revision| *revision > 0);
    revision.ok_or_else(|| format!("has the revision {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers of Debian's etcd 3.4.23.
    const SUCCEEDED: &[u8] = br#"{"header":{"cluster_id":"324952591200643719","member_id":"3319814642761637952","revision":"2","raft_term":"2"},"succeeded":true,"responses":[{"response_put":{"header":{"revision":"2"}}}]}"#;
    const CONFLICT: &[u8] = br#"{"header":{"cluster_id":"324952591200643719","member_id":"3319814642761637952","revision":"7","raft_term":"2"},"responses":[{"response_range":{"header":{"revision":"7"},"kvs":[{"key":"Z3JvdXAvYQ==","create_revision":"2","mod_revision":"2","version":"1","value":"AAE="}],"count":"1"}}]}"#;
    const ABSENT: &[u8] = br#"{"header":{"cluster_id":"324952591200643719","member_id":"3319814642761637952","revision":"1","raft_term":"2"}}"#;

    fn there() -> Versioned {
        Versioned {
            version: 2,
            value: vec![0, 1],
        }
    }

    #[test]
    fn reads_what_etcd_writes() {
        assert_eq!(swapped(SUCCEEDED).unwrap().answer, Swap::Done(2));
        let conflict = swapped(CONFLICT).unwrap();
        assert_eq!(conflict.answer, Swap::Conflict(Some(there())));
        assert_eq!(conflict.cluster, "324952591200643719");
        assert_eq!(page(ABSENT).unwrap().answer.entries, []);
    }

    #[test]
    fn a_half_answer_is_no_answer() {
        for len in 0..CONFLICT.len() {
            assert!(swapped(&CONFLICT[..len]).is_err(), "{len}");
        }
        // The header of a failed comparison without what is there: not "absent".
        assert!(swapped(ABSENT).is_err());
        let text = String::from_utf8(CONFLICT.to_vec()).unwrap();
        for (old, new) in [
            ("\"mod_revision\":\"2\"", "\"mod_revision\":\"0\""),
            ("AAE=", "AAE"),
        ] {
            assert!(swapped(text.replace(old, new).as_bytes()).is_err());
        }
    }

    #[test]
    fn an_error_that_is_not_etcds_has_an_unknown_outcome() {
        let refused = br#"{"error":"etcdserver: permission denied","message":"x","code":7}"#;
        assert_eq!(
            error(refused),
            (7, "etcdserver: permission denied".to_owned())
        );
        for other in [&b"<html>502</html>"[..], b"{}", b""] {
            assert_eq!(error(other).0, 2);
        }
    }

    #[test]
    fn a_prefix_ends_behind_its_last_key() {
        assert_eq!(end_of("vere/group/"), b"vere/group0");
        assert_eq!(end_of("a\u{10ffff}"), [b'a', 0xf4, 0x8f, 0xbf, 0xc0]);
    }
}
