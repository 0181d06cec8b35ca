//! `vere dkim activate`: keys sign although the running system has not seen their records yet.

use std::fmt::Write as _;
use std::process::ExitCode;

use vere_dkim::{KeyStore, StoredKey};
use vere_health::signing::Signing;
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_settings::Settings;
use vere_units::Timestamp;

use super::records::{self, Look};

/// Exit code when a record is not seen.
const NOT_SEEN: u8 = 3;

/// The wanted keys.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    pub(super) domain: Option<&'a str>,
    pub(super) selector: Option<&'a str>,
    /// Whether keys without a record sign, too.
    pub(super) force: bool,
}

impl Wanted<'_> {
    fn has(&self, key: &StoredKey) -> bool {
        self.domain.is_none_or(|domain| key.domain == domain)
            && self
                .selector
                .is_none_or(|selector| key.selector == selector)
    }
}

/// Activates waiting keys.
///
/// # Errors
/// When no wanted key waits, name servers cannot be used, or a key cannot be written.
pub(super) fn run(
    wanted: &Wanted<'_>,
    signing: &Signing,
    store: &KeyStore,
    settings: &Settings,
    now: Timestamp,
) -> Result<Outcome, Failure> {
    let waits = |key: &&StoredKey| wanted.has(key) && key.is_to_come(now);
    let waiting: Vec<&StoredKey> = signing.keys.iter().filter(waits).collect();
    if waiting.is_empty() {
        let of = wanted.domain.map(|domain| format!(" of {domain}"));
        let of = of.unwrap_or_default();
        return Err(Failure::new(format!(
            "no key{of} waits; see the keys with: vere dkim list"
        )));
    }
    let looks = records::look_up(settings, &waiting)?;
    let when = match signing.is_absent() {
        true => "signs once the system runs",
        false => "signs now",
    };
    let (mut text, mut count) = (String::new(), 0);
    for key in waiting {
        let name = key.record_name();
        let Some(Look { is_seen, text: why }) = looks.get(&name) else {
            continue;
        };
        if *is_seen || wanted.force {
            store.activate(key, &signing.keys, now, true)?;
            let _ = match is_seen {
                true => writeln!(text, "{name} {when}: its record is in the DNS"),
                false => writeln!(
                    text,
                    "{name} {when}, and {why}: receivers cannot verify its signatures yet"
                ),
            };
        } else {
            count += 1;
            let _ = writeln!(text, "{name} {why}, and the key waits");
        }
    }
    text += &super::left_out(signing);
    if count == 0 {
        return Ok(Outcome::Print(text));
    }
    text += "publish the records (vere dkim dns); a running system looks for them by itself. To sign without: --force\n";
    Ok(Outcome::Report(text, ExitCode::from(NOT_SEEN)))
}
