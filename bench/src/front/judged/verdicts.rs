//! The verdicts of one rspamd about the same messages behind both systems.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::visits::{Systems, load};
use crate::error::BenchError;
use crate::front::clients;
use crate::front::clients::Pace;
use crate::front::measure::{self, Results};
use crate::load::Letters;
use crate::output::note;
use crate::peer::rspamd::{Rspamd, RspamdVerdict};
use crate::process::guard;

/// Messages at once: fewer than ours shows a filter at once.
const SESSIONS: usize = 8;

/// Longest wait for the last verdict in the log.
const LOG_MAX: Duration = Duration::from_secs(5);

/// Differences printed in turn.
const SHOWN_MAX: usize = 10;

/// Verdicts by sender; no two letters have the same sender.
type Verdicts = HashMap<String, RspamdVerdict>;

/// Sends letters to both systems, and compares the actions of rspamd. A letter is spam or ham by its label.
pub(super) fn measure(
    figure: &'static str,
    systems: &Systems,
    rspamd: &Rspamd,
    (letters, spam): (&Arc<Letters>, Option<&[bool]>),
    results: &mut Results,
) -> Result<(), BenchError> {
    let [(ours, target), (peer, other)] = systems else {
        return Ok(());
    };
    let mut found = Vec::new();
    for (name, target) in [(ours, target), (peer, other)] {
        let load = load(target, Pace::AtOnce(SESSIONS), letters);
        let before = rspamd.verdicts().map_err(failed())?.len();
        // A refusal by rspamd is a failed session, and no trouble.
        clients::run(&load)?;
        if guard::is_stopped() {
            return Err(BenchError::Stopped);
        }
        let actions = actions(rspamd, before, letters.count())?;
        note(&format!("{name:<24} {}", summary(letters, &actions, spam)));
        found.push(actions);
    }
    let [first, second] = &found[..] else {
        return Ok(());
    };
    let differing: Vec<&str> = differing(letters, first, second).collect();
    for sender in differing.iter().take(SHOWN_MAX) {
        let [ours, theirs] = [first, second].map(|all| action(all, sender));
        let text = format!("{figure}: {sender}: {ours} behind ours, {theirs} behind Postfix");
        measure::trouble(&mut results.troubles, text);
    }
    for (whose, symbols) in [
        ("ours", lone(first, second)),
        ("Postfix", lone(second, first)),
    ] {
        if !symbols.is_empty() {
            note(&format!("symbols behind {whose} alone: {symbols}"));
        }
    }
    let count = f64::from(letters.count());
    let same = (count - differing.len() as f64) * 100.0 / count;
    note(&format!("{figure}: {same:.2} % of {count} messages"));
    results.figures.add(ours, figure, same, "%");
    Ok(())
}

fn failed() -> impl FnOnce(std::io::Error) -> BenchError {
    BenchError::io("read the log of rspamd")
}

/// The actions in the log behind the first `before`, once there are as many as letters or nothing comes any more.
fn actions(rspamd: &Rspamd, before: usize, count: u32) -> Result<Verdicts, BenchError> {
    let until = Instant::now() + LOG_MAX;
    loop {
        let all = rspamd.verdicts().map_err(failed())?;
        let actions: Verdicts = all.into_iter().skip(before).collect();
        if actions.len() >= usize::try_from(count).unwrap_or(usize::MAX) || Instant::now() > until {
            return Ok(actions);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The senders with different actions on the letters, or with no action at a system.
fn differing<'a>(
    letters: &'a Letters,
    first: &'a Verdicts,
    second: &'a Verdicts,
) -> impl Iterator<Item = &'a str> {
    let senders = letters.iter().map(|letter| letter.sender.as_str());
    senders.filter(move |sender| {
        let [own, other] = [first, second].map(|all| all.get(*sender));
        own.is_none() || own.map(|own| &own.action) != other.map(|other| &other.action)
    })
}

/// The action for a sender's letter.
fn action<'a>(verdicts: &'a Verdicts, sender: &str) -> &'a str {
    verdicts.get(sender).map_or("none", |found| &found.action)
}

/// The most frequent symbols behind one system alone, with the numbers of letters.
fn lone(own: &Verdicts, other: &Verdicts) -> String {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for (sender, verdict) in own {
        let others = other.get(sender).map(|other| other.symbols.as_slice());
        let others = others.unwrap_or_default();
        for symbol in verdict
            .symbols
            .iter()
            .filter(|symbol| !others.contains(symbol))
        {
            *counts.entry(symbol).or_default() += 1;
        }
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(symbol, count)| (Reverse(*count), *symbol));
    let counts = counts.iter().take(SHOWN_MAX);
    let counts = counts.map(|(symbol, count)| format!("{symbol} {count}"));
    counts.collect::<Vec<_>>().join(", ")
}

/// How many letters have which action, ham and spam apart.
fn summary(letters: &Letters, actions: &Verdicts, spam: Option<&[bool]>) -> String {
    let mut counts: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for (number, letter) in letters.iter().enumerate() {
        let label = match spam.and_then(|spam| spam.get(number)) {
            Some(true) => "spam ",
            Some(false) => "ham ",
            None => "",
        };
        let action = action(actions, &letter.sender);
        *counts.entry((label, action)).or_default() += 1;
    }
    let counts = counts.iter();
    let counts = counts.map(|((label, action), count)| format!("{label}{action}: {count}"));
    counts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Letter;

    #[test]
    fn a_verdict_that_is_missing_or_other_differs() {
        let letter = |sender: &str| Letter {
            sender: sender.to_owned(),
            text: Vec::new(),
            eight_bit: false,
        };
        let letters = Letters::new(["a", "b", "c", "d"].map(letter)).unwrap();
        let actions = |all: &[(&str, &str)]| -> Verdicts {
            let all = all.iter();
            let verdict = |action: &str| RspamdVerdict {
                action: action.to_owned(),
                symbols: vec![action.to_uppercase()],
            };
            all.map(|(sender, action)| ((*sender).to_owned(), verdict(action)))
                .collect()
        };
        let first = actions(&[("a", "reject"), ("b", "no action"), ("d", "no action")]);
        let second = actions(&[
            ("a", "reject"),
            ("b", "reject"),
            ("c", "reject"),
            ("d", "no action"),
        ]);
        let found: Vec<_> = differing(&letters, &first, &second).collect();
        assert_eq!(found, ["b", "c"]);
        assert_eq!(lone(&second, &first), "REJECT 2");
        let text = summary(&letters, &first, Some(&[true, false, false, false]));
        assert_eq!(text, "ham no action: 2, ham none: 1, spam reject: 1");
    }
}
