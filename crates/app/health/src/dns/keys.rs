//! DKIM: whether the records have the keys that sign.

use vere_dkim::{KeyStore, Published, StoredKey};
use vere_net::resolver::TxtAnswer;
use vere_process::clock;
use vere_process::failure::Failure;
use vere_settings::Settings;

use super::subject::Subject;
use crate::row::Row;

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
    let found = Published::compare(&key.record_text(), &texts);
    let text = format!("{name} {found}");
    match found {
        Published::Key => Row::ok(CHECK, text),
        Published::Testing => Row::warning(CHECK, text, remedy),
        _ => Row::critical(CHECK, text, remedy),
    }
}
