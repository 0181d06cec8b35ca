//! Rules about the message: authors, recipients, structure, attachments, filters, viruses.

use vere_settings::{AttachmentRule, Judging, Rule, Verdict};
use vere_units::Score;

use crate::facts::{Attachment, Facts, UNCOUNTED};
use crate::hit::{Found, Hit, HitName, shown};
use crate::pattern::{file_name, matches_name, matches_type};

pub(super) fn author(facts: &Facts, found: &mut Found<'_>) {
    if let Some(author) = &facts.author {
        let text = format!("{} fields, {} addresses", author.fields, author.total);
        if author.total == 0 {
            found.hit(Rule::FromNone, text.clone());
        }
        if author.fields > 1 || author.total > 1 {
            found.hit(Rule::FromMultiple, text);
        }
    }
}

pub(super) fn recipients(facts: &Facts, terms: &Judging, found: &mut Found<'_>) {
    if facts.recipients >= terms.many_recipients {
        let text = format!("{} recipients", facts.recipients);
        found.hit(Rule::RecipientsMany, text);
    }
}

/// Bounds: what lies beyond them is seen by no rule, so that a sender could hide an attachment there.
pub(super) fn structure(facts: &Facts, terms: &Judging, found: &mut Found<'_>) {
    if facts.cut {
        found.hit(Rule::FactsCut, "more than the bounds of facts");
    }
    let Some(structure) = &facts.structure else {
        return;
    };
    let limits = &terms.limits;
    let listed = u32::try_from(structure.attachments.len()).unwrap_or(u32::MAX);
    let attachments_max = limits.attachments_max.min(listed);
    let header_octets = structure.header_octets;
    let beyond = [
        (
            "depth of parts",
            structure.depth.into(),
            limits.depth_max.into(),
        ),
        ("parts", structure.parts.into(), limits.parts_max.into()),
        (
            "attachments",
            structure.total.into(),
            attachments_max.into(),
        ),
        (
            "octets of the header",
            header_octets,
            limits.header_octets_max,
        ),
    ];
    if let Some((name, number, max)) = beyond.iter().find(|(_, number, max)| number > max) {
        let text = match *number == u64::from(UNCOUNTED) {
            true => format!("{name}: not to be counted, at most {max}"),
            false => format!("{name}: {number}, at most {max}"),
        };
        found.rule(Rule::StructureLimit, limits.verdict, text.clone());
        found.hit(Rule::StructureLimit, text);
    }
}

/// The severest rule that matches an attachment.
pub(super) fn attachments(facts: &Facts, terms: &Judging, found: &mut Found<'_>) {
    let attachments = facts.structure.iter().flat_map(|found| &found.attachments);
    let with_names = attachments.map(|attachment| (attachment, file_name(&attachment.name)));
    let verdict = |attachment: &Attachment, name: &str| {
        let rules = terms.attachments.iter();
        let matching = rules.filter(|rule| matches(rule, attachment, name));
        matching.map(|rule| rule.verdict).max()
    };
    let matching = with_names
        .filter_map(|(attachment, name)| Some((verdict(attachment, &name)?, attachment)))
        // Of equal verdicts the first attachment is shown.
        .reduce(|worst, other| if other.0 > worst.0 { other } else { worst });
    if let Some((verdict, attachment)) = matching {
        let Attachment { name, media_type } = attachment;
        let text = format!("{} ({})", shown(name), shown(media_type));
        found.rule(Rule::Attachment, verdict, text.clone());
        found.hit(Rule::Attachment, text);
    }
}

fn matches(rule: &AttachmentRule, attachment: &Attachment, name: &str) -> bool {
    let mut names = rule.names.iter();
    let mut types = rule.types.iter();
    names.any(|pattern| !name.is_empty() && matches_name(pattern, name))
        || types.any(|pattern| matches_type(pattern, &attachment.media_type))
}

pub(super) fn filters(facts: &Facts, terms: &Judging, found: &mut Found<'_>) {
    for filter in &facts.filters {
        let own = terms.filters.iter().find(|own| own.name == filter.name);
        let factor = own.map_or(Score::from_points(1), |own| own.factor);
        if let Some(action) = filter.action.filter(|action| *action > Verdict::Accept) {
            let text = format!("{} asks for {}", shown(&filter.name), action.name());
            if own.is_some_and(|own| own.follows_action) {
                found.rule(Rule::FilterAction, action, text.clone());
            }
            found.hit(Rule::FilterAction, text);
        }
        for symbol in &filter.symbols {
            found.hits.push(Hit {
                name: HitName::Symbol {
                    filter: filter.name.clone(),
                    symbol: symbol.name.clone(),
                },
                weight: symbol.score.times(factor),
                fact: format!("{} gives {}", shown(&filter.name), symbol.score),
            });
        }
    }
}

pub(super) fn viruses(facts: &Facts, terms: &Judging, found: &mut Found<'_>) {
    if let Some(virus) = facts.viruses.first() {
        let text = format!("{} found {}", shown(&virus.filter), shown(&virus.name));
        found.rule(Rule::Virus, terms.virus, text.clone());
        found.hit(Rule::Virus, text);
    }
}
