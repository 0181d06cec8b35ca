//! The judgement of a message.

use vere_settings::{Judging, Threshold, Thresholds, Verdict};
use vere_units::Score;

use crate::facts::Facts;
use crate::hit::{Hit, Ruling};
use crate::policies::Policies;
use crate::rules::{matching, proven_author};

/// Judges messages by the rules, weights and thresholds of the settings.
#[derive(Debug, Clone)]
pub struct Judge {
    terms: Judging,
    policies: Policies,
}

/// The judgement of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The sum of the weights.
    pub score: Score,
    /// The rules that match, those without weight included.
    pub hits: Vec<Hit>,
    /// Verdicts beside the score.
    pub rulings: Vec<Ruling>,
    /// The verdict about each recipient, in the order of the recipients.
    pub recipients: Vec<RecipientVerdict>,
    /// The verdict about the message: [`Verdict::Reject`] or [`Verdict::Defer`] is the reply to all recipients; else the message is accepted, and
    /// this is the severest verdict about a recipient.
    pub verdict: Verdict,
}

/// The verdict about a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecipientVerdict {
    /// The verdict by the recipient's own thresholds.
    pub wish: Verdict,
    /// The verdict that applies, since a message has one reply.
    pub verdict: Verdict,
    /// The lowest threshold of the recipient.
    pub required: Threshold,
}

impl Judge {
    /// Makes a judge of settings.
    #[must_use]
    pub fn new(terms: Judging) -> Self {
        Self {
            policies: Policies::of(&terms),
            terms,
        }
    }

    /// Judges a message by facts within their [bounds](Facts::bounded), as they are kept. Without recipients the thresholds of `[judging]` apply.
    #[must_use]
    pub fn judge(&self, facts: &Facts, recipients: &[&str]) -> Judgement {
        let mut judgement = self.judge_apart(facts, recipients);
        reconcile(std::slice::from_mut(&mut judgement));
        judgement
    }

    /// Judges a message whose recipients differ in the facts: a judgement for each group, with one reply for all.
    #[must_use]
    pub fn judge_groups(&self, groups: &[(Facts, Vec<&str>)]) -> Vec<Judgement> {
        let apart = groups.iter();
        let mut judged: Vec<_> = apart
            .map(|(facts, recipients)| self.judge_apart(facts, recipients))
            .collect();
        reconcile(&mut judged);
        judged
    }

    /// Returns the author of a message with a single author in a proven domain: by DMARC, aligned SPF or DKIM, or a trusted sealer.
    #[must_use]
    pub fn proven_author<'a>(&self, facts: &'a Facts) -> Option<&'a str> {
        proven_author(facts, &self.terms)
    }

    /// Judges a message as if these were all recipients, each by its wish.
    fn judge_apart(&self, facts: &Facts, recipients: &[&str]) -> Judgement {
        let facts = facts.clone().bounded();
        let found = matching(&facts, &self.terms);
        let score = found.hits.iter().map(|hit| hit.weight).sum();
        let least = found.rulings.iter().map(|ruling| ruling.verdict).max();
        let least = least.unwrap_or_default();
        let of = |thresholds: Thresholds| by_thresholds(&thresholds, score).max(least);
        let verdicts = recipients.iter().map(|recipient| {
            let thresholds = self.policies.thresholds(recipient);
            let wish = of(thresholds);
            RecipientVerdict {
                wish,
                verdict: wish,
                required: lowest(&thresholds),
            }
        });
        Judgement {
            score,
            recipients: verdicts.collect(),
            hits: found.hits,
            rulings: found.rulings,
            verdict: of(self.terms.thresholds),
        }
    }
}

/// The severest verdict whose threshold the score reaches.
fn by_thresholds(thresholds: &Thresholds, score: Score) -> Verdict {
    let all = thresholds.all();
    let reached = all
        .iter()
        .filter(|(_, threshold)| threshold.is_reached(score));
    let verdict = reached.map(|(verdict, _)| *verdict).max();
    verdict.unwrap_or_default()
}

fn lowest(thresholds: &Thresholds) -> Threshold {
    let all = thresholds.all();
    let scores = all.iter().filter_map(|(_, threshold)| threshold.score());
    scores.min().map_or(Threshold::Never, Threshold::At)
}

/// Brings the verdicts about recipients to one reply. The client hears a refusal only if all recipients refuse, and is told to come again if
/// some of these only defer. As soon as one recipient gets the message, the message is accepted: the others get it in quarantine, where
/// it is not lost, and nobody is sent a bounce.
fn reconcile(judgements: &mut [Judgement]) {
    let all = judgements.iter().flat_map(|judged| &judged.recipients);
    let mildest = all.map(|recipient| recipient.wish).min();
    let Some(mildest) = mildest else {
        return;
    };
    for judged in judgements.iter_mut() {
        for recipient in &mut judged.recipients {
            recipient.verdict = match mildest >= Verdict::Defer {
                true => mildest,
                false => recipient.wish.min(Verdict::Quarantine),
            };
        }
        let severest = judged.recipients.iter().map(|one| one.verdict).max();
        judged.verdict = severest.unwrap_or_default();
    }
}
