//! Counts received messages by the DMARC policy of their author's domain (`reports.dmarc`).
//!
//! ```text
//! judging ──note──▶ waiting ──policies──▶ counts of the day
//! ```
//!
//! Messages wait for a policy in memory for 5 s at most, and a kill loses their counts.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::task::JoinSet;
use vere_auth::Published;
use vere_judge::{Facts, Judgement};
use vere_judging::Names;
use vere_observed::{Checked, Files};
use vere_reports::{DmarcSeen, Kind};
use vere_smtp::server::Message;
use vere_telemetry::metrics::Uncounted;
use vere_units::Timestamp;

use super::wanted::is_wanted;
use crate::process::Process;
use vere_process::clock;

/// Lookups of policies at the same time.
const LOOKUPS_AT_ONCE: usize = 32;
/// The longest wait for a policy.
const LOOKUP_PATIENCE: Duration = Duration::from_secs(10);

/// Notes a judged message, if the settings want reports. `results`: the fields with the results of authentication.
pub(crate) fn note(
    process: &Process,
    message: &Message,
    (facts, judgement): (&Facts, &Judgement),
    results: &[u8],
) {
    if !is_wanted(process, Kind::Dmarc) {
        return;
    }
    let Some(checked) = Checked::of(facts, judgement, &message.session, results) else {
        return;
    };
    if !process.observing.push(clock::now(), checked) {
        process.metrics.uncounted(Kind::Dmarc, Uncounted::Busy, 1);
    }
}

/// Finds the policies of waiting messages, and writes the counts.
pub(super) async fn count(process: &Process, files: Option<&Files>) {
    if !is_wanted(process, Kind::Dmarc) {
        let _ = process.observing.take();
        return;
    }
    let Some(files) = files else {
        return;
    };
    let waiting = process.observing.take();
    if waiting.is_empty() {
        return;
    }
    let mut by_author: BTreeMap<String, Vec<(Timestamp, Checked)>> = BTreeMap::new();
    for (at, checked) in waiting {
        let all = by_author.entry(checked.author().to_owned()).or_default();
        all.push((at, checked));
    }
    let mut seen = Vec::new();
    let mut by_author = by_author.into_iter();
    loop {
        let mut lookups = JoinSet::new();
        for (author, messages) in by_author.by_ref().take(LOOKUPS_AT_ONCE) {
            let names = process.names();
            lookups.spawn_local(async move { (policy(&names, &author).await, messages) });
        }
        if lookups.is_empty() {
            break;
        }
        while let Some(found) = lookups.join_next().await {
            match found {
                Ok((Some(Some(policy)), messages)) => {
                    let of = |(at, checked): (_, Checked)| (at, checked.seen(&policy));
                    seen.extend(messages.into_iter().map(of));
                }
                // The record has gone since the message was checked.
                Ok((Some(None), _)) | Err(_) => {}
                Ok((None, messages)) => {
                    process
                        .metrics
                        .uncounted(Kind::Dmarc, Uncounted::Dns, messages.len())
                }
            }
        }
    }
    write(process, files, seen).await;
}

/// The policy for an author's domain; `None` while the DNS does not answer.
async fn policy(names: &Names, author: &str) -> Option<Option<Published>> {
    let found = tokio::time::timeout(LOOKUP_PATIENCE, Published::of(names, author)).await;
    found.ok()?.ok()
}

async fn write(process: &Process, files: &Files, seen: Vec<(Timestamp, DmarcSeen)>) {
    let messages = seen.len();
    let written = files.run(move |observed| {
        for (at, seen) in &seen {
            observed.dmarc(*at, seen);
        }
        observed.flush()
    });
    match written.await {
        Ok(()) => process.metrics.counted(Kind::Dmarc, messages),
        Err(error) => {
            process
                .metrics
                .uncounted(Kind::Dmarc, Uncounted::Disk, messages);
            tracing::warn!(%error, messages, "counts for reports cannot be written");
        }
    }
}
