//! Rules that match a message, with the facts that made them match.

use vere_settings::{Rule, RuleWeights, Verdict};
use vere_units::Score;

/// Characters of a stranger's text that an explanation shows.
const SHOWN_CHARS: usize = 80;

/// The name of a matching rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HitName {
    /// A built-in rule.
    Rule(Rule),
    /// A symbol of a filter.
    Symbol {
        /// The name of the filter.
        filter: String,
        /// The name of the symbol.
        symbol: String,
    },
}

impl HitName {
    /// Returns the name in header fields, replies and metrics: a word of ASCII.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Rule(rule) => rule.name(),
            Self::Symbol { symbol, .. } => symbol,
        }
    }
}

/// A rule that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The rule.
    pub name: HitName,
    /// The contribution to the score.
    pub weight: Score,
    /// The fact, for people: one line without control characters.
    pub fact: String,
}

/// A verdict that holds whatever the score is: the verdict about no recipient is milder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// The rule.
    pub rule: Rule,
    /// The least verdict.
    pub verdict: Verdict,
    /// The fact, for people.
    pub fact: String,
}

/// The matching rules so far.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    weights: &'a RuleWeights,
    pub(crate) hits: Vec<Hit>,
    pub(crate) rulings: Vec<Ruling>,
}

impl<'a> Found<'a> {
    pub(crate) const fn new(weights: &'a RuleWeights) -> Self {
        Self {
            weights,
            hits: Vec::new(),
            rulings: Vec::new(),
        }
    }

    /// Adds a rule with its weight.
    pub(crate) fn hit(&mut self, rule: Rule, fact: impl Into<String>) {
        self.times(rule, 1, fact);
    }

    /// Adds a rule that counts several times.
    pub(crate) fn times(&mut self, rule: Rule, times: i64, fact: impl Into<String>) {
        let weight = self.weights.weight(rule).times(Score::from_points(times));
        self.hits.push(Hit {
            name: HitName::Rule(rule),
            weight,
            fact: fact.into(),
        });
    }

    /// Adds a verdict beside the score. [`Verdict::Accept`] changes nothing.
    pub(crate) fn rule(&mut self, rule: Rule, verdict: Verdict, fact: impl Into<String>) {
        if verdict > Verdict::Accept {
            let fact = fact.into();
            self.rulings.push(Ruling {
                rule,
                verdict,
                fact,
            });
        }
    }

    pub(crate) fn has(&self, rule: Rule) -> bool {
        let name = HitName::Rule(rule);
        self.hits.iter().any(|hit| hit.name == name)
    }
}

/// Shows a stranger's text: in one line, shortened, with escapes for everything that a terminal would not print.
pub(crate) fn shown(text: &str) -> String {
    let mut chars = text.chars();
    let start: String = chars.by_ref().take(SHOWN_CHARS).collect();
    let more = if chars.next().is_some() { "..." } else { "" };
    format!("{}{more}", start.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_strangers_are_shown_in_one_harmless_line() {
        assert_eq!(shown("a\r\nb\u{1b}[2J"), "a\\r\\nb\\u{1b}[2J");
        assert_eq!(shown("cod\u{202e}exe.é"), "cod\\u{202e}exe.é");
        assert_eq!(shown(&"x".repeat(81)), format!("{}...", "x".repeat(80)));
        assert_eq!(shown(&"x".repeat(80)), "x".repeat(80));
    }
}
