//! A judgement, for people and programs.

use std::cmp::Reverse;
use std::fmt::Write as _;

use serde_json::{Value, json};
use vere_judge::{Hit, Judgement, RecipientVerdict};
use vere_settings::Threshold;

use super::known::{Known, Past};
use vere_process::failure::Failure;

/// The judgement in lines: the former verdict, the verdict of now, and each rule with weight and fact.
pub(super) fn text(known: &Known, judgement: &Judgement) -> String {
    let mut out = format!("{}\n", known.name);
    if let Some(past) = &known.past {
        then(past, &mut out);
    }
    let (verdict, score) = (judgement.verdict.name(), judgement.score);
    let _ = writeln!(out, "  now   {verdict}, score {score}");
    if let Some(reply) = judgement.reply() {
        let _ = writeln!(
            out,
            "        {} {} {}",
            reply.code, reply.status, reply.text
        );
    }
    rules(judgement, &mut out);
    recipients(known, judgement, &mut out);
    if let Some(asked) = &known.asked {
        out.push_str(&asked.text());
    }
    out
}

fn then(past: &Past, out: &mut String) {
    let from = past.reverse_path.as_deref().unwrap_or_default();
    let peer = past.peer.as_deref().unwrap_or("?");
    let _ = writeln!(out, "  from  <{from}> by {peer}");
    let _ = writeln!(
        out,
        "  then  {}, score {}, {}",
        past.verdict, past.score, past.at
    );
    if let Some(reply) = &past.reply {
        let _ = writeln!(out, "        {reply}");
    }
    if !past.rules.is_empty() {
        let _ = writeln!(out, "        {}", past.rules);
    }
}

fn rules(judgement: &Judgement, out: &mut String) {
    if judgement.hits.is_empty() && judgement.rulings.is_empty() {
        out.push_str("\nNo rule matches.\n");
        return;
    }
    let of_rulings = judgement.rulings.iter().map(|ruling| ruling.rule.name());
    let of_hits = judgement.hits.iter().map(|hit| hit.name.as_str());
    let width = of_rulings
        .chain(of_hits)
        .map(str::len)
        .max()
        .unwrap_or(0)
        .max(4);
    let _ = writeln!(out, "\n{:>10}  {:width$}  FACT", "WEIGHT", "RULE");
    for ruling in &judgement.rulings {
        let (verdict, rule) = (ruling.verdict.name(), ruling.rule.name());
        let _ = writeln!(out, "{verdict:>10}  {rule:width$}  {}", ruling.fact);
    }
    for hit in sorted(&judgement.hits) {
        let (weight, rule) = (hit.weight.to_string(), hit.name.as_str());
        let _ = writeln!(out, "{weight:>10}  {rule:width$}  {}", hit.fact);
    }
}

/// The hits, sorted by absolute weight, descending.
fn sorted(hits: &[Hit]) -> Vec<&Hit> {
    let mut hits: Vec<_> = hits.iter().collect();
    hits.sort_by_key(|hit| Reverse(hit.weight.as_hundredths().unsigned_abs()));
    hits
}

fn recipients(known: &Known, judgement: &Judgement, out: &mut String) {
    if judgement.recipients.is_empty() {
        return;
    }
    out.push_str("\nRECIPIENTS\n");
    for (recipient, verdict) in known.recipients.iter().zip(&judgement.recipients) {
        let _ = writeln!(
            out,
            "  {recipient}: {}{}",
            verdict.verdict.name(),
            wish(verdict)
        );
    }
}

/// The verdict of the recipient alone, where different, and the lowest threshold.
fn wish(verdict: &RecipientVerdict) -> String {
    let required = match verdict.required {
        Threshold::At(score) => format!(" (first threshold {score})"),
        Threshold::Never => " (no threshold)".to_owned(),
    };
    match verdict.wish == verdict.verdict {
        true => required,
        false => format!(", alone {}{required}", verdict.wish.name()),
    }
}

/// The judgement for programs.
///
/// # Errors
/// Never: all values have a form in JSON.
pub(super) fn json(known: &Known, judgement: &Judgement) -> Result<String, Failure> {
    let hits = judgement.hits.iter().map(|hit| {
        json!({ "rule": hit.name.as_str(), "weight": hit.weight.to_string(), "fact": hit.fact })
    });
    let rulings = judgement.rulings.iter().map(|ruling| {
        let (rule, verdict) = (ruling.rule.name(), ruling.verdict.name());
        json!({ "rule": rule, "verdict": verdict, "fact": ruling.fact })
    });
    let recipients = known.recipients.iter().zip(&judgement.recipients);
    let recipients = recipients.map(|(address, of)| {
        let required = of.required.score().map(|score| score.to_string());
        json!({ "address": address, "verdict": of.verdict.name(), "alone": of.wish.name(), "required": required })
    });
    let now = json!({
        "verdict": judgement.verdict.name(),
        "score": judgement.score.to_string(),
        "reply": judgement.reply().map(|reply| format!("{} {} {}", reply.code, reply.status, reply.text)),
        "rules": hits.collect::<Vec<_>>(),
        "rulings": rulings.collect::<Vec<_>>(),
        "recipients": recipients.collect::<Vec<_>>(),
    });
    let then = known.past.as_ref().map(past);
    let whole = json!({ "message": known.name, "then": then, "now": now, "asked": known.asked });
    Ok(format!("{}\n", serde_json::to_string_pretty(&whole)?))
}

fn past(past: &Past) -> Value {
    json!({
        "at": past.at.to_string(),
        "verdict": past.verdict,
        "score": past.score,
        "rules": past.rules,
        "reply": past.reply,
        "reverse_path": past.reverse_path,
        "peer": past.peer,
    })
}
