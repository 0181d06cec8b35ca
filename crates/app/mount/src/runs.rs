//! Runs of upkeep on an engine, and their results as JSON.

use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use vere_mailfs::volume::{CheckReport, CollectReport, Finding, Upkept, Weight};

use crate::host::{Event, with};
use crate::volume::{Live, Upkeep};

/// The longest time until a mount has reached the log.
const LOG_MAX: Duration = Duration::from_secs(60);
/// Time between looks at a run.
const LOOK: Duration = Duration::from_millis(100);
/// The longest silence of an engine; the comparison of a large volume holds the engine for seconds.
const SILENCE_MAX: Duration = Duration::from_secs(600);
/// The engine is silent.
const ENGINE: &str = "expected an answer of the engine within 10 minutes; found none";
/// Octets of findings in an answer; further ones are counted.
const FINDINGS_OCTETS_MAX: usize = 512 << 10;

/// Runs, and waits for the result.
pub(crate) fn run(events: &Sender<Event<Live>>, what: Upkeep) -> Result<Value, String> {
    run_with(events, what, &mut |_, _, _| {})
}

/// As [`run`]; `news` hears the stage, the parts done and the parts known.
pub(crate) fn run_with(
    events: &Sender<Event<Live>>,
    what: Upkeep,
    news: &mut dyn FnMut(&'static str, usize, usize),
) -> Result<Value, String> {
    await_log(events)?;
    let begin = move |live: &mut Live, now| live.begin(now, what);
    if !with(events, SILENCE_MAX, begin).ok_or(ENGINE)? {
        return Err("expected no check or collection under way; found one".to_owned());
    }
    wait(events, news)
}

/// Waits until a mount that began from the local disk has reached the log.
pub(crate) fn await_log(events: &Sender<Event<Live>>) -> Result<(), String> {
    let start = Instant::now();
    loop {
        let look = |live: &mut Live, _| {
            let volume = live.volume();
            (volume.is_unconfirmed(), volume.refused_log())
        };
        let (is_behind, refused) = with(events, SILENCE_MAX, look).ok_or(ENGINE)?;
        if let Some(reason) = refused {
            return Err(reason);
        }
        if !is_behind {
            return Ok(());
        }
        if start.elapsed() > LOG_MAX {
            return Err(
                "expected a lead account that answers within a minute; found none".to_owned(),
            );
        }
        thread::sleep(LOOK);
    }
}

/// Waits for the end of a run.
pub(crate) fn wait(
    events: &Sender<Event<Live>>,
    news: &mut dyn FnMut(&'static str, usize, usize),
) -> Result<Value, String> {
    loop {
        let look = |live: &mut Live, _| (live.take_upkept(), live.volume().upkeep_progress());
        let (ended, progress) = with(events, SILENCE_MAX, look).ok_or(ENGINE)?;
        if let Some((stage, done, all)) = progress {
            news(stage, done, all);
        }
        match ended {
            Some(Upkept::Checked(report)) => return Ok(checked(&report)),
            Some(Upkept::Collected(report)) => return Ok(collected(&report)),
            Some(Upkept::Written) => return Ok(Value::Null),
            Some(Upkept::Failed(reason)) => return Err(reason),
            None => thread::sleep(LOOK),
        }
    }
}

/// How far a run is; null without a run.
pub(crate) fn progress(events: &Sender<Event<Live>>) -> Value {
    let told = with(events, LOOK, |live: &mut Live, _| {
        live.volume().upkeep_progress()
    });
    match told.flatten() {
        Some((stage, done, all)) => json!({ "stage": stage, "done": done, "all": all }),
        None => Value::Null,
    }
}

const fn word(weight: Weight) -> &'static str {
    match weight {
        Weight::Note => "note",
        Weight::Waste => "waste",
        Weight::Damage => "damage",
        Weight::Loss => "loss",
    }
}

fn checked(report: &CheckReport) -> Value {
    let mut octets = 0_usize;
    let mut findings: Vec<Value> = Vec::new();
    for finding in &report.findings {
        let shown = shown(finding);
        octets = octets
            .saturating_add(shown.to_string().len())
            .saturating_add(1);
        if octets > FINDINGS_OCTETS_MAX {
            break;
        }
        findings.push(shown);
    }
    let left_out = report.findings.len().saturating_sub(findings.len());
    json!({
        "clean": report.is_clean(),
        "worst": report.worst().map(word),
        "findings": findings,
        "left_out": report.left_out.saturating_add(left_out),
        "mails": report.mails,
        "packs": report.packs,
        "inodes": report.inodes,
        "verified": report.verified,
        "repaired": report.repaired,
    })
}

fn shown(finding: &Finding) -> Value {
    json!({ "kind": finding.kind(), "weight": word(finding.weight()), "text": finding.to_string() })
}

fn collected(report: &CollectReport) -> Value {
    let failed: Vec<Value> = report
        .failed
        .iter()
        .map(|(account, reason)| json!({ "account": account, "reason": reason }))
        .collect();
    json!({
        "packs_found": report.packs_condemned,
        "packs_needed_again": report.packs_revived,
        "orphans_found": report.orphans,
        "duplicates_found": report.duplicates,
        "waiting": report.waiting,
        "removed": report.removed,
        "octets": report.octets,
        "history": report.history,
        "packs_moved": report.packs_moved,
        "octets_moved": report.octets_moved,
        "files_rewritten": report.files_rewritten,
        "octets_rewritten": report.octets_rewritten,
        "has_more": report.has_more,
        "forged": report.forged,
        "failed": failed,
    })
}
