//! Counts received messages by the DMARC policy of their author's domain (`reports.dmarc`).
//!
//! ```text
//! judging ──note──▶ waiting ──policies──▶ counts of the day
//! ```
//!
//! Messages wait for a policy in memory for [`PATIENCE`] and 5 s at most, and a kill loses their counts.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use vere_auth::Published;
use vere_judge::{Facts, Judgement};
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
/// The longest wait for the policies of all waiting messages. The DNS of strangers holds up the counts of others for no longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Messages with the same author's domain.
type OfAuthor = Vec<(Timestamp, Checked)>;
/// What the DNS says of a policy; `None` while the DNS does not answer.
type Answer = Option<Option<Published>>;

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
    let mut by_author: BTreeMap<String, OfAuthor> = BTreeMap::new();
    for (at, checked) in waiting {
        let all = by_author.entry(checked.author().to_owned()).or_default();
        all.push((at, checked));
    }
    let ask = |author: String| {
        let names = process.names();
        async move { Published::of(&names, &author).await.ok() }
    };
    let (mut seen, mut lost) = (Vec::new(), 0_usize);
    for (answer, messages) in answers(by_author, ask).await {
        match answer {
            Some(Some(policy)) => {
                let of = |(at, checked): (_, Checked)| (at, checked.seen(&policy));
                seen.extend(messages.into_iter().map(of));
            }
            // The record has gone since the message was checked.
            Some(None) => {}
            None => lost = lost.saturating_add(messages.len()),
        }
    }
    if lost > 0 {
        process.metrics.uncounted(Kind::Dmarc, Uncounted::Dns, lost);
    }
    write(process, files, seen).await;
}

/// Looks up the policies of all authors, some at the same time, within [`PATIENCE`].
async fn answers<T, F>(
    by_author: BTreeMap<String, T>,
    ask: impl Fn(String) -> F,
) -> Vec<(Answer, T)>
where
    T: 'static,
    F: Future<Output = Answer> + 'static,
{
    let end = Instant::now() + PATIENCE;
    let mut answers = Vec::with_capacity(by_author.len());
    let mut by_author = by_author.into_iter();
    let mut lookups = JoinSet::new();
    loop {
        while lookups.len() < LOOKUPS_AT_ONCE && Instant::now() < end {
            let Some((author, messages)) = by_author.next() else {
                break;
            };
            let limit = end.min(Instant::now() + LOOKUP_PATIENCE);
            let lookup = tokio::time::timeout_at(limit, ask(author));
            lookups.spawn_local(async move { (lookup.await.ok().flatten(), messages) });
        }
        match lookups.join_next().await {
            Some(Ok(answer)) => answers.push(answer),
            // A panic in a lookup is one in the process.
            Some(Err(_)) => {}
            None => break,
        }
    }
    answers.extend(by_author.map(|(_, messages)| (None, messages)));
    answers
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_silent_dns_holds_up_the_counts_for_a_minute() {
        let begin = Instant::now();
        let authors = |first: char, last: u32| {
            let names = (0..last).map(move |number| (format!("{first}{number:04}.test"), first));
            names.collect::<BTreeMap<_, _>>()
        };
        let mut all = authors('a', 100);
        all.extend(authors('s', 1_000));
        all.extend(authors('z', 100));
        let ask = |author: String| async move {
            if author.starts_with('s') {
                std::future::pending::<()>().await;
            }
            Some(None)
        };
        let local = tokio::task::LocalSet::new();
        let answers = local.run_until(answers(all, ask)).await;
        assert_eq!(begin.elapsed().as_secs(), PATIENCE.as_secs());
        assert_eq!(answers.len(), 1_200, "each message has an end");
        let answered = answers.iter().filter(|(answer, _)| answer.is_some());
        assert_eq!(answered.count(), 100);
    }
}
