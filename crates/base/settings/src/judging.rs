//! The settings of the judgement of messages.

mod bounds;
mod rules;

use std::time::Duration;

use vere_units::Score;

pub(crate) use bounds::SCORE_POINTS_MAX;
pub use rules::Rule;

use crate::network::Networks;

/// Judgement of messages by rules with weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judging {
    /// The weight of each rule.
    pub weights: RuleWeights,
    /// The thresholds of recipients without a policy of their own.
    pub thresholds: Thresholds,
    /// Thresholds of single recipients and domains, with the values of [`Judging::thresholds`] for omitted keys.
    pub policies: Vec<RecipientPolicy>,
    /// Senders that are allowed once they are authenticated.
    pub allow_senders: Vec<String>,
    /// Senders that are blocked, authenticated or not.
    pub block_senders: Vec<String>,
    /// Networks whose clients are allowed.
    pub allow_networks: Networks,
    /// Networks whose clients are blocked.
    pub block_networks: Networks,
    /// Whether the policy of a domain that fails DMARC decides; if not, the failure has a weight alone.
    pub follows_dmarc: bool,
    /// Domains whose ARC seals are believed.
    pub trusted_arc_sealers: Vec<String>,
    /// The least verdict about a message with a virus.
    pub virus: Verdict,
    /// Bounds of the structure of messages.
    pub limits: StructureLimits,
    /// The number of recipients from which a message has many.
    pub many_recipients: u32,
    /// The age at which a message leaves the quarantine by itself.
    pub quarantine_keep: Duration,
    /// Whether recipients hear once a day of new messages in the quarantine.
    pub has_digest: bool,
    /// Rules by the names and types of attachments.
    pub attachments: Vec<AttachmentRule>,
    /// How filters count; a filter without a section counts as it is.
    pub filters: Vec<FilterTerms>,
}

/// The age at which a message leaves the quarantine where no settings say so.
pub const QUARANTINE_KEEP: Duration = Duration::from_secs(30 * 86_400);

/// The weights of all rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleWeights([Score; Rule::ALL.len()]);

impl RuleWeights {
    /// Makes a table of the weights that a function returns.
    #[must_use]
    pub fn of(weight: impl Fn(Rule) -> Score) -> Self {
        let mut weights = [Score::ZERO; Rule::ALL.len()];
        for (place, rule) in weights.iter_mut().zip(Rule::ALL) {
            *place = weight(*rule);
        }
        Self(weights)
    }

    /// Returns the weight of a rule.
    #[must_use]
    pub fn weight(&self, rule: Rule) -> Score {
        self.0.get(rule as usize).copied().unwrap_or_default()
    }
}

/// What becomes of a message, in the order of severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Verdict {
    /// The message is delivered as it is.
    #[default]
    Accept,
    /// The message is delivered and marked as unwanted.
    Tag,
    /// The message is accepted and kept aside.
    Quarantine,
    /// The client is told to try again later.
    Defer,
    /// The client is told that the message is refused.
    Reject,
}

impl Verdict {
    /// Every verdict, the mildest first.
    pub const ALL: &[Self] = &[
        Self::Accept,
        Self::Tag,
        Self::Quarantine,
        Self::Defer,
        Self::Reject,
    ];

    /// Returns the name in settings, logs and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Tag => "tag",
            Self::Quarantine => "quarantine",
            Self::Defer => "defer",
            Self::Reject => "reject",
        }
    }

    /// Finds the verdict of a name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|verdict| verdict.name() == name)
    }
}

/// The score from which a verdict applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Threshold {
    /// No score leads to the verdict.
    #[default]
    Never,
    /// This score and every higher one.
    At(Score),
}

impl Threshold {
    /// Whether a score reaches the threshold.
    #[must_use]
    pub fn is_reached(self, score: Score) -> bool {
        self.score().is_some_and(|at| score >= at)
    }

    /// Returns the score, if there is one.
    #[must_use]
    pub const fn score(self) -> Option<Score> {
        match self {
            Self::Never => None,
            Self::At(score) => Some(score),
        }
    }
}

/// The thresholds of all verdicts; each is at least as high as those of milder verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Thresholds {
    /// The threshold of [`Verdict::Tag`].
    pub tag: Threshold,
    /// The threshold of [`Verdict::Quarantine`].
    pub quarantine: Threshold,
    /// The threshold of [`Verdict::Defer`].
    pub defer: Threshold,
    /// The threshold of [`Verdict::Reject`].
    pub reject: Threshold,
}

impl Thresholds {
    /// Lists the verdicts with their thresholds, the mildest first.
    #[must_use]
    pub const fn all(&self) -> [(Verdict, Threshold); 4] {
        [
            (Verdict::Tag, self.tag),
            (Verdict::Quarantine, self.quarantine),
            (Verdict::Defer, self.defer),
            (Verdict::Reject, self.reject),
        ]
    }
}

/// The thresholds of single recipients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecipientPolicy {
    /// Addresses, domains, and domains with a leading dot for the domains below.
    pub recipients: Vec<String>,
    /// The thresholds.
    pub thresholds: Thresholds,
}

/// Bounds of the structure of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StructureLimits {
    /// The deepest nesting of parts.
    pub depth_max: u32,
    /// The number of parts.
    pub parts_max: u32,
    /// The number of attachments.
    pub attachments_max: u32,
    /// Octets of the header.
    pub header_octets_max: u64,
    /// The least verdict about a message beyond a bound.
    pub verdict: Verdict,
}

/// A rule by the names and types of attachments; one match is enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachmentRule {
    /// Patterns of names: `*` for any characters, `?` for one.
    pub names: Vec<String>,
    /// Media types, lower case; `type/*` for all of a type.
    pub types: Vec<String>,
    /// The least verdict about a message with such an attachment.
    pub verdict: Verdict,
}

/// How a filter counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterTerms {
    /// The name of the filter.
    pub name: String,
    /// The factor of each score of the filter.
    pub factor: Score,
    /// Whether the action that the filter asks for is the least verdict.
    pub follows_action: bool,
}
