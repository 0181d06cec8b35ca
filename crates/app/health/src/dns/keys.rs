//! DKIM: whether the records have the keys that sign.

use std::collections::BTreeMap;

use vere_dkim::{KeyStore, StoredKey};
use vere_net::resolver::TxtAnswer;
use vere_process::clock;
use vere_process::failure::Failure;
use vere_settings::Settings;

use super::row::Row;
use super::subject::Subject;

const CHECK: &str = "dkim";

/// The keys of a domain that sign now or later.
///
/// # Errors
/// When a key cannot be read.
pub(super) fn of(settings: &Settings, domain: &str) -> Result<Vec<StoredKey>, Failure> {
    let Some(dkim) = &settings.dkim else {
        return Ok(Vec::new());
    };
    let (mut keys, wrong) = KeyStore::new(&dkim.keys).keys()?;
    if let Some(error) = wrong.into_iter().next() {
        return Err(error.into());
    }
    let now = clock::now();
    keys.retain(|key| key.domain == domain && !key.is_retired(now));
    Ok(keys)
}

/// Compares the record of each key with the key.
pub(super) async fn dkim(subject: &Subject) -> Vec<Row> {
    let domain = &subject.domain;
    if !subject.signs {
        let remedy =
            format!("add [dkim] to the settings, restart, then: vere dkim keygen {domain}");
        return vec![Row::critical(CHECK, "mail is not signed", remedy)];
    }
    if subject.keys.is_empty() {
        return vec![Row::critical(
            CHECK,
            format!("{domain} has no key: its mail is not signed"),
            format!("vere dkim keygen {domain}"),
        )];
    }
    let mut rows = Vec::new();
    for key in &subject.keys {
        rows.push(record_of(subject, key).await);
    }
    rows
}

async fn record_of(subject: &Subject, key: &StoredKey) -> Row {
    let name = key.record_name();
    let remedy = format!("publish: {}", key.zone_line());
    let texts = match subject.resolver.txt(&name).await {
        TxtAnswer::Found(texts) => texts,
        TxtAnswer::None | TxtAnswer::NoSuchName => {
            return Row::critical(CHECK, format!("{name} has no record"), remedy);
        }
        TxtAnswer::TempFail(failure) => return Row::unanswered(CHECK, &name, &failure),
    };
    let [text] = texts.as_slice() else {
        let text = format!(
            "{name} has {} records: receivers use none or any",
            texts.len()
        );
        return Row::critical(CHECK, text, remedy);
    };
    let (published, own) = (tags(text), tags(&key.record_text()));
    let of = |tag: &str| published.get(tag).map(String::as_str);
    match of("p") {
        None => Row::critical(CHECK, format!("{name} has no public key"), remedy),
        Some("") => Row::critical(CHECK, format!("{name} is revoked (p= is empty)"), remedy),
        Some(public) if Some(public) != own.get("p").map(String::as_str) => Row::critical(
            CHECK,
            format!("{name} has another key than the one that signs"),
            remedy,
        ),
        Some(_) if Some(of("k").unwrap_or("rsa")) != own.get("k").map(String::as_str) => {
            Row::critical(CHECK, format!("{name} names another algorithm"), remedy)
        }
        Some(_) if of("t").is_some_and(|flags| flags.split(':').any(|flag| flag == "y")) => {
            let text = format!("{name} says that signatures are a test (t=y)");
            Row::warning(CHECK, text, remedy)
        }
        Some(_) => Row::ok(CHECK, format!("{name} has the key")),
    }
}

/// The tags of a record without white space (RFC 6376 section 3.2).
fn tags(text: &str) -> BTreeMap<String, String> {
    let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let pairs = plain.split(';').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(tag, value)| (tag.to_ascii_lowercase(), value.to_owned()))
        .collect()
}
