//! DKIM: whether the records have the keys that sign.

use std::os::unix::net::UnixStream;

use vere_control::supervision::supervisor_socket;
use vere_dkim::{KeyError, Published, StoredKey};
use vere_net::resolver::TxtAnswer;
use vere_process::clock;
use vere_process::failure::Failure;
use vere_settings::Settings;

use super::subject::Subject;
use crate::row::Row;
use crate::signing;

const CHECK: &str = "dkim";

/// The keys of a domain that sign now or later. Unreadable keys are left out, as by the signer.
///
/// # Errors
/// When the directory of the keys cannot be read.
pub(super) fn of(settings: &Settings, domain: &str) -> Result<Vec<StoredKey>, Failure> {
    let signing = signing::of(settings)?;
    let keys = signing.map(|signing| signing.keys).unwrap_or_default();
    Ok(current(&keys, domain))
}

fn current(keys: &[StoredKey], domain: &str) -> Vec<StoredKey> {
    let now = clock::now();
    let of = keys.iter().filter(|key| key.domain == domain);
    of.filter(|key| !key.is_retired(now)).cloned().collect()
}

/// The signing keys of a domain, the domain's own keys and the parent's, and the obstacles.
///
/// # Errors
/// As of [`of`].
pub(super) fn judged(
    settings: &Settings,
    domain: &str,
) -> Result<(Vec<StoredKey>, Vec<Row>), Failure> {
    let Some(mut signing) = signing::of(settings)? else {
        return Ok((Vec::new(), Vec::new()));
    };
    let now = clock::now();
    let mut keys = current(&signing.keys, domain);
    let signs = signing.signing_domain(domain, now).map(str::to_owned);
    if let Some(parent) = signs.as_deref().filter(|signs| *signs != domain) {
        keys.extend(current(&signing.keys, parent));
    }
    let mut rows: Vec<Row> = signing.wrong.iter().map(left_out).collect();
    if signing.is_absent() && UnixStream::connect(supervisor_socket(settings)).is_ok() {
        rows.push(Row::critical(
            CHECK,
            "mail is not signed: the running system has no signer",
            "restart the system, so that [dkim] takes effect; the log says why a signer ends",
        ));
    } else if signing.runs()
        && let Some(domain) = &signs
    {
        let unused = signing.unused(domain, now).into_iter();
        rows.extend(unused.map(|(selector, _)| unknown(domain, &selector)));
    }
    Ok((keys, rows))
}

fn left_out(error: &KeyError) -> Row {
    Row::critical(
        CHECK,
        format!("a key cannot be read, and signs nothing: {error}"),
        "give the file to the user of the system, or bring it back from a backup",
    )
}

fn unknown(domain: &str, selector: &str) -> Row {
    Row::critical(
        CHECK,
        format!("the running signer does not have the key {selector} of {domain}"),
        "see its log for the reason: most often the user of the system may not read the file",
    )
}

/// Compares the record of each key with the key.
pub(super) async fn dkim(subject: &Subject) -> Vec<Row> {
    let domain = &subject.domain;
    if !subject.signs {
        let remedy =
            format!("add [dkim] to the settings, restart, then: vere dkim keygen {domain}");
        return vec![Row::critical(CHECK, "mail is not signed", remedy)];
    }
    let mut rows = subject.signing.clone();
    if subject.keys.is_empty() {
        rows.push(Row::critical(
            CHECK,
            format!("{domain} has no key: its mail is not signed"),
            format!("vere dkim keygen {domain}"),
        ));
    }
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
