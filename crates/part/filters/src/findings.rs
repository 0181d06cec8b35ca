//! What filters found about a message, for the judge and for storage.

use std::time::Duration;

use bytes::Bytes;
use vere_judge::{Facts, Filter, SYMBOLS_MAX, Virus};
use vere_units::Score;

use crate::outcome::{Asked, Outcome, Symbol, Verdict};

/// The findings of all filters about a message.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    /// The message with the changes of filters; `None` if no filter changed it.
    pub message: Option<Bytes>,
    /// The changed reverse-path without angle brackets, empty for the null reverse-path; `None` if no filter changed it.
    pub reverse_path: Option<String>,
    /// Recipients that filters added, in order; an address of a filter may be of any domain and form.
    pub added: Vec<String>,
    /// Recipients that filters deleted.
    pub deleted: Vec<String>,
    /// Whether a filter discarded the message by deleting all recipients, who stay.
    pub is_discarded: bool,
    /// The answers for the judge, within the bounds of facts; filters without an answer are left out.
    pub filters: Vec<Filter>,
    /// The viruses for the judge.
    pub viruses: Vec<Virus>,
    /// Whether the filters found more than the facts have room for ([`Facts::cut`]).
    pub cut: bool,
    /// Set if a filter gave no answer and its settings want the client to try again.
    pub defer: Option<Deferral>,
    /// The answer of each filter that was asked, in order; bodies of changes are empty.
    pub answers: Vec<Answer>,
}

/// Why the client has to try again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deferral {
    /// The name of the filter.
    pub filter: String,
    /// The reason, for the log.
    pub reason: String,
}

/// The answer of a filter.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The name of the filter.
    pub filter: String,
    /// The answer, or the reason why there is none.
    pub asked: Asked,
    /// The time of the question.
    pub took: Duration,
}

impl Findings {
    /// Adds an answer to the facts.
    pub(crate) fn answered(&mut self, name: &str, outcome: &Outcome) {
        self.filters.push(Filter {
            name: name.to_owned(),
            action: Some(action(outcome)),
            symbols: symbols(&outcome.symbols),
        });
        let virus = outcome.virus.iter().map(|virus| Virus {
            filter: name.to_owned(),
            name: virus.clone(),
        });
        self.viruses.extend(virus);
    }

    /// Brings the facts within their bounds: names become words, scores are limited.
    pub(crate) fn bounded(mut self) -> Self {
        let facts = Facts {
            filters: self.filters,
            viruses: self.viruses,
            ..Facts::default()
        };
        let facts = facts.bounded();
        self.filters = facts.filters;
        self.viruses = facts.viruses;
        self.cut = facts.cut;
        self
    }
}

/// What a filter asks for, as the judge's verdict.
fn action(outcome: &Outcome) -> vere_judge::Verdict {
    match outcome.verdict {
        Verdict::Accept if outcome.is_marked => vere_judge::Verdict::Tag,
        Verdict::Accept => vere_judge::Verdict::Accept,
        Verdict::Defer(_) => vere_judge::Verdict::Defer,
        Verdict::Reject(_) => vere_judge::Verdict::Reject,
        Verdict::Quarantine(_) => vere_judge::Verdict::Quarantine,
    }
}

/// Symbols for the judge, the weightiest first, because facts have place for the first ones.
fn symbols(found: &[Symbol]) -> Vec<vere_judge::Symbol> {
    let symbols = found.iter().map(|symbol| vere_judge::Symbol {
        name: symbol.name.clone(),
        score: score(symbol.score),
    });
    let mut symbols: Vec<_> = symbols.collect();
    symbols.sort_by_key(|symbol| std::cmp::Reverse(symbol.score.as_hundredths().unsigned_abs()));
    // Symbols without a score are no loss.
    let is_loss = |symbol: &vere_judge::Symbol| !symbol.score.is_zero();
    while symbols.len() > SYMBOLS_MAX && !symbols.last().is_some_and(is_loss) {
        symbols.pop();
    }
    symbols
}

/// A score in hundredths. The text of a fraction is rounded as people expect; a value that is no number counts nothing.
pub(crate) fn score(value: f64) -> Score {
    let most = 1e6;
    format!("{:.2}", value.clamp(-most, most))
        .parse()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_hundredths_within_bounds() {
        for (value, shown) in [
            (6.1, "6.1"),
            (-0.255, "-0.26"),
            (-0.001, "0.0"),
            (1e300, "1000000.0"),
            (f64::NEG_INFINITY, "-1000000.0"),
            (f64::NAN, "0.0"),
        ] {
            assert_eq!(score(value).to_string(), shown, "{value}");
        }
    }

    #[test]
    fn symbols_become_words_and_the_weightiest_are_kept() {
        let symbol = |name: String, score| Symbol {
            name,
            score,
            options: vec!["from=<a@b.example>".to_owned()],
        };
        let mut outcome = Outcome::new(Verdict::Accept);
        outcome.is_marked = true;
        let light = (0..200).map(|n| symbol(format!("A{n:03}"), 0.01));
        outcome.symbols = light.collect();
        outcome.symbols.push(symbol("Z\r\nX: {1}".to_owned(), -1e9));
        outcome.virus = Some("Test\r\nVirus".to_owned());
        let mut findings = Findings::default();
        findings.answered("rspamd", &outcome);
        let findings = findings.bounded();
        let [filter] = &findings.filters[..] else {
            panic!("{findings:?}");
        };
        assert_eq!(filter.action, Some(vere_judge::Verdict::Tag));
        assert_eq!((filter.symbols.len(), findings.cut), (SYMBOLS_MAX, true));
        assert_eq!(filter.symbols[0].name, "Z__X___1_");
        assert_eq!(filter.symbols[0].score.to_string(), "-10000.0");
        assert_eq!(findings.viruses[0].filter, "rspamd");
        // Facts that the judge encodes are read back.
        let facts = Facts {
            filters: findings.filters,
            viruses: findings.viruses,
            cut: findings.cut,
            ..Facts::default()
        };
        assert_eq!(Facts::decode(&facts.encode()), Ok(facts));
    }
}
