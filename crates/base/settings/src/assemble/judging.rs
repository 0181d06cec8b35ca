//! Sections about the judgement of messages.

use vere_units::{ByteSize, Span};

use super::Assembly;
use crate::judging::{
    AttachmentRule, FilterTerms, Judging, RecipientPolicy, RuleWeights, StructureLimits, Threshold,
    Thresholds, Verdict,
};

impl Assembly {
    pub(super) fn judging(&self) -> Option<Judging> {
        self.section("judging").then(|| {
            let thresholds = self.thresholds("judging", Thresholds::default());
            Judging {
                weights: RuleWeights::of(|rule| {
                    self.need(&format!("judging.weights.{}", rule.name()))
                }),
                thresholds,
                policies: self.each("judging.policy", |at| RecipientPolicy {
                    recipients: self.need(&format!("{at}.recipients")),
                    thresholds: self.thresholds(at, thresholds),
                }),
                allow_senders: self.need("judging.allow_senders"),
                block_senders: self.need("judging.block_senders"),
                allow_networks: self.networks("judging.allow_networks"),
                block_networks: self.networks("judging.block_networks"),
                follows_dmarc: self.choice("judging.dmarc", follows),
                trusted_arc_sealers: self.need("judging.trusted_arc_sealers"),
                virus: self.choice("judging.virus", Verdict::of_name),
                limits: self.structure_limits(),
                many_recipients: self.need("judging.many_recipients"),
                quarantine_keep: self.need::<Span>("judging.quarantine_keep").duration(),
                has_digest: self.choice("judging.quarantine_digest", |word| match word {
                    "daily" => Some(true),
                    "off" => Some(false),
                    _ => None,
                }),
                attachments: self.each("judging.attachment", |at| AttachmentRule {
                    names: self.need(&format!("{at}.names")),
                    types: self.need(&format!("{at}.types")),
                    verdict: self.choice(&format!("{at}.verdict"), Verdict::of_name),
                }),
                filters: self.each("judging.filter", |at| FilterTerms {
                    name: self.need(&format!("{at}.name")),
                    factor: self.need(&format!("{at}.factor")),
                    follows_action: self.choice(&format!("{at}.action"), follows),
                }),
            }
        })
    }

    fn thresholds(&self, at: &str, otherwise: Thresholds) -> Thresholds {
        let threshold = |name: &str| self.maybe::<Threshold>(&format!("{at}.{name}"));
        Thresholds {
            tag: threshold("tag_at").unwrap_or(otherwise.tag),
            quarantine: threshold("quarantine_at").unwrap_or(otherwise.quarantine),
            defer: threshold("defer_at").unwrap_or(otherwise.defer),
            reject: threshold("reject_at").unwrap_or(otherwise.reject),
        }
    }

    fn structure_limits(&self) -> StructureLimits {
        let header: ByteSize = self.need("judging.limits.header_size_max");
        StructureLimits {
            depth_max: self.need("judging.limits.depth_max"),
            parts_max: self.need("judging.limits.parts_max"),
            attachments_max: self.need("judging.limits.attachments_max"),
            header_octets_max: header.as_u64(),
            verdict: self.choice("judging.limits.verdict", Verdict::of_name),
        }
    }
}

fn follows(text: &str) -> Option<bool> {
    match text {
        "follow" => Some(true),
        "score" => Some(false),
        _ => None,
    }
}
