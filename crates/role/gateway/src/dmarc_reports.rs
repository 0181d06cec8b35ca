//! Counts received messages by the DMARC policy of their author's domain, and sends reports once a day (`[reports]`).
//!
//! ```text
//! judging ──note──▶ waiting ──policies──▶ counts of the day ──▶ sending
//! ```
//!
//! Counting delays no mail, and no failure of counting loses mail: a full disk, or a silent DNS, loses counts. Messages wait for a policy in memory
//! for [`LOOK`], and a kill loses their counts.

mod files;
mod sending;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use tokio::task::JoinSet;
use vere_auth::Published;
use vere_judge::{Facts, Judgement};
use vere_judging::Names;
use vere_reports::DmarcSeen;
use vere_smtp::server::Message;
use vere_telemetry::metrics::Uncounted;
use vere_units::Timestamp;

use self::files::Files;
use self::sending::Sending;
use super::clock;
use super::groups::Groups;
use super::observing::Checked;
use super::process::Process;

/// The time between two looks at waiting messages and due reports.
const LOOK: Duration = Duration::from_secs(5);
/// Lookups of policies at the same time.
const LOOKUPS_AT_ONCE: usize = 32;
/// The longest wait for a policy.
const LOOKUP_PATIENCE: Duration = Duration::from_secs(10);
/// The folder below the data folder.
const FOLDER: &str = "reports";

/// Notes a judged message, if the settings want reports. `results`: the fields with the results of authentication.
pub(super) fn note(
    process: &Process,
    message: &Message,
    (facts, judgement): (&Facts, &Judgement),
    results: &[u8],
) {
    if !is_wanted(process) {
        return;
    }
    let Some(checked) = Checked::of(facts, judgement, &message.session, results) else {
        return;
    };
    if !process.observing.push(clock::now(), checked) {
        process.metrics.uncounted(Uncounted::Busy, 1);
    }
}

fn is_wanted(process: &Process) -> bool {
    let settings = process.settings();
    settings.reports.as_ref().is_some_and(|one| one.dmarc)
}

/// Counts observed messages and sends due reports, until the gateway ends.
pub(super) async fn keep(groups: Rc<Groups>) {
    let (mut files, mut sending) = (None, Sending::default());
    loop {
        tokio::time::sleep(LOOK).await;
        let process = groups.process();
        if !is_wanted(process) {
            process.observing.take();
            continue;
        }
        if files.is_none() {
            files = open(process);
        }
        let Some(files) = &files else {
            continue;
        };
        count(process, files).await;
        if groups.are_recovered() {
            sending.look(&groups, files).await;
        }
    }
}

fn open(process: &Process) -> Option<Files> {
    let folder = process.settings().data.join(FOLDER);
    let opened = Files::open(&folder);
    opened
        .inspect_err(|error| {
            tracing::warn!(%error, path = %folder.display(), "counts for reports cannot be kept yet");
        })
        .ok()
}

/// Finds the policies of waiting messages, and writes the counts.
async fn count(process: &Process, files: &Files) {
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
            let names = process.observing.names();
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
                Ok((None, messages)) => process.metrics.uncounted(Uncounted::Dns, messages.len()),
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
        Ok(()) => process.metrics.counted(messages),
        Err(error) => {
            process.metrics.uncounted(Uncounted::Disk, messages);
            tracing::warn!(%error, messages, "counts for reports cannot be written");
        }
    }
}
