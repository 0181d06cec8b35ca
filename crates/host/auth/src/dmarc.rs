//! The evaluation of DMARC (RFC 9989 section 5.3).

use std::fmt;

use vere_spf::{SpfResult, Unavailable};

use crate::dkim::Signed;
use crate::dns::{Dns, Session};
use crate::fault::DkimResult;
use crate::message::{Author, Message};
use crate::name::{self, is_name, is_within};
use crate::policy::{Place, Policy, Record, Suffix};
use crate::preference::Class;
use crate::questions::Questions;

/// Most labels of a name behind the first one of a walk, so that a walk has 8 names (RFC 9989 section 4.10).
const LABELS_MAX: usize = 7;

/// The result of DMARC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DmarcResult {
    /// The domain of the author has no policy, or there are authors of several domains.
    None,
    /// An authenticated domain is aligned with that of the author.
    Pass,
    /// No authenticated domain is.
    Fail,
    /// The DNS did not answer.
    TempError,
    /// The message has no author whose domain could have a policy.
    PermError,
}

impl DmarcResult {
    /// Returns the word of the registry of RFC 8601 section 6.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::TempError => "temperror",
            Self::PermError => "permerror",
        }
    }
}

impl fmt::Display for DmarcResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The evaluation of DMARC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dmarc {
    /// The result.
    pub result: DmarcResult,
    /// The domain of the author.
    pub domain: Option<String>,
    /// The policy of the domain of the author, where there is one.
    pub policy: Option<Policy>,
    /// What is left of the policy while the domain tests DMARC (tag `t`).
    pub applied: Option<Policy>,
    /// The domain whose record has the policy.
    pub record: Option<String>,
    /// The reason for "permerror".
    pub fault: Option<&'static str>,
    /// Whether SPF passed for a domain that is aligned with the author's, also where the author's domain has no policy.
    pub spf_aligned: bool,
    /// Whether a signature of DKIM is valid whose domain is aligned with the author's, also where the author's domain has no policy.
    pub dkim_aligned: bool,
}

impl Dmarc {
    const fn of(result: DmarcResult, domain: Option<String>) -> Self {
        Self {
            result,
            domain,
            policy: None,
            applied: None,
            record: None,
            fault: None,
            spf_aligned: false,
            dkim_aligned: false,
        }
    }
}

/// A domain that may be that of the author, and whether it is authenticated or could not be looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Identifier {
    is_spf: bool,
    domain: String,
    is_strict: bool,
    is_pass: bool,
}

/// Returns the names of the records that the evaluation begins with.
pub(crate) fn first_names(message: &Message) -> Vec<String> {
    match &message.author {
        Author::Domain(domain) => steps(domain).filter_map(record_name).collect(),
        Author::Unclear(_) | Author::Several => Vec::new(),
    }
}

/// Evaluates the policy of the author's domain.
pub(crate) async fn evaluate(
    questions: &Questions<'_, impl Dns>,
    message: &Message,
    signed: &[Signed],
    session: Session<'_>,
) -> Dmarc {
    let author = match &message.author {
        Author::Domain(domain) => domain,
        // RFC 9989 section 5.3.1: authors of several domains are outside of DMARC.
        Author::Several => return Dmarc::of(DmarcResult::None, None),
        Author::Unclear(fault) => {
            let mut dmarc = Dmarc::of(DmarcResult::PermError, None);
            dmarc.fault = Some(fault);
            return dmarc;
        }
    };
    let evaluated = of_author(questions, author, signed, session).await;
    let unavailable = Dmarc::of(DmarcResult::TempError, Some(author.clone()));
    evaluated.unwrap_or(unavailable)
}

async fn of_author(
    questions: &Questions<'_, impl Dns>,
    author: &str,
    signed: &[Signed],
    session: Session<'_>,
) -> Result<Dmarc, Unavailable> {
    let mut dmarc = Dmarc::of(DmarcResult::None, Some(author.to_owned()));
    let found = walk(questions, author).await?;
    let organization = organization(&found, author);
    let governing = governing(&found, author, organization);
    let record = governing.map(|(_, record)| record);
    let identifiers = identifiers(author, record, signed, session);
    let result = aligned(questions, (author, organization), &identifiers, &mut dmarc).await;
    let Some((domain, record)) = governing else {
        return Ok(dmarc);
    };
    if record.policy(Place::Own).is_none() {
        return Ok(dmarc);
    }
    dmarc.result = result;
    let place = match place(questions, author, domain, record).await {
        // Nothing is to be done about a message that passes, whatever the policy.
        Err(Unavailable) if dmarc.result == DmarcResult::Pass => Place::Below,
        place => place?,
    };
    let policies = record.policy(place);
    dmarc.policy = policies.map(|(policy, _)| policy);
    dmarc.applied = policies.map(|(_, applied)| applied);
    dmarc.record = Some(domain.to_owned());
    Ok(dmarc)
}

/// The relation of the author's domain to the domain with the record.
async fn place(
    questions: &Questions<'_, impl Dns>,
    author: &str,
    domain: &str,
    record: &Record,
) -> Result<Place, Unavailable> {
    Ok(match domain == author {
        true => Place::Own,
        false if !record.has_absent() || questions.exists(author).await? => Place::Below,
        false => Place::Absent,
    })
}

/// A published policy, for reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The domain with the record.
    pub domain: String,
    /// The tag `p`.
    pub policy: Policy,
    /// The tag `sp`.
    pub subdomains: Option<Policy>,
    /// The tag `np`.
    pub absent: Option<Policy>,
    /// Whether the alignment of DKIM is strict.
    pub is_dkim_strict: bool,
    /// Whether the alignment of SPF is strict.
    pub is_spf_strict: bool,
    /// Whether the policy is tested only.
    pub is_testing: bool,
    /// The policy for the domain in question.
    pub wanted: Policy,
    /// The rest of the policy while the domain tests DMARC.
    pub applied: Policy,
}

impl Published {
    /// Finds the policy for an author's domain; `None` without a record.
    ///
    /// # Errors
    /// While the DNS does not answer.
    pub async fn of(dns: &impl Dns, author: &str) -> Result<Option<Self>, Unavailable> {
        let questions = Questions::new(dns);
        let found = walk(&questions, author).await?;
        let governing = governing(&found, author, organization(&found, author));
        let Some((domain, record)) = governing else {
            return Ok(None);
        };
        let Some((policy, _)) = record.policy(Place::Own) else {
            return Ok(None);
        };
        let place = place(&questions, author, domain, record).await?;
        let policies = record.policy(place);
        Ok(policies.map(|(wanted, applied)| Self {
            domain: domain.to_owned(),
            policy,
            subdomains: record.subdomains,
            absent: record.absent,
            is_dkim_strict: record.is_dkim_strict,
            is_spf_strict: record.is_spf_strict,
            is_testing: record.is_testing,
            wanted,
            applied,
        }))
    }
}

/// Finds the organizational domain of a domain (RFC 9989 section 4.10.2).
///
/// # Errors
/// While the DNS does not answer.
pub async fn organization_of(dns: &impl Dns, domain: &str) -> Result<String, Unavailable> {
    let questions = Questions::new(dns);
    let found = walk(&questions, domain).await?;
    Ok(organization(&found, domain).to_owned())
}

/// The domains that SPF and DKIM have authenticated, or could not; the nearest to the author's first, so that others use up no questions.
fn identifiers(
    author: &str,
    record: Option<&Record>,
    signed: &[Signed],
    session: Session<'_>,
) -> Vec<Identifier> {
    let spf = match session.spf {
        Some(SpfResult::Pass) => Some(true),
        Some(SpfResult::TempError) => Some(false),
        _ => None,
    };
    let sender = session
        .spf_domain()
        .and_then(|domain| name::domain(domain.as_bytes()));
    let by_spf = spf.zip(sender).map(|(is_pass, domain)| Identifier {
        is_spf: true,
        domain,
        is_strict: record.is_some_and(|record| record.is_spf_strict),
        is_pass,
    });
    let by_dkim = signed.iter().filter_map(|signed| {
        let is_pass = match signed.result() {
            DkimResult::Pass => true,
            DkimResult::TempError => false,
            _ => return None,
        };
        Some(Identifier {
            is_spf: false,
            domain: signed.domain.clone()?,
            is_strict: record.is_some_and(|record| record.is_dkim_strict),
            is_pass,
        })
    });
    let mut identifiers: Vec<_> = by_spf.into_iter().chain(by_dkim).collect();
    identifiers.sort_by_key(|identifier| Class::of(&identifier.domain, author));
    identifiers
}

/// Whether an authenticated domain is aligned (section 4.4). A domain that could not be looked up, or that was not authenticated for want
/// of an answer, may be one (section 5.3.6).
async fn aligned(
    questions: &Questions<'_, impl Dns>,
    (author, organization): (&str, &str),
    identifiers: &[Identifier],
    dmarc: &mut Dmarc,
) -> DmarcResult {
    let mut result = DmarcResult::Fail;
    for identifier in identifiers {
        let domain = &identifier.domain;
        let is_aligned = match domain == author {
            true => Ok(true),
            // The organization of another domain is another one.
            false if identifier.is_strict || !is_within(domain, organization) => Ok(false),
            false => walk(questions, domain)
                .await
                .map(|found| self::organization(&found, domain) == organization),
        };
        match is_aligned {
            Ok(true) if identifier.is_pass => {
                dmarc.spf_aligned |= identifier.is_spf;
                dmarc.dkim_aligned |= !identifier.is_spf;
            }
            Ok(true) | Err(Unavailable) => result = DmarcResult::TempError,
            Ok(false) => {}
        }
    }
    match dmarc.spf_aligned || dmarc.dkim_aligned {
        true => DmarcResult::Pass,
        false => result,
    }
}

/// Walks up the DNS from a domain (section 4.10), and returns the domains with records, the longest name first.
async fn walk<'a>(
    questions: &Questions<'_, impl Dns>,
    domain: &'a str,
) -> Result<Vec<(&'a str, Record)>, Unavailable> {
    questions
        .prefetch(steps(domain).filter_map(record_name))
        .await;
    let mut found = Vec::new();
    for step in steps(domain) {
        let Some(name) = record_name(step) else {
            continue;
        };
        let Some(record) = Record::among(&questions.texts(&name).await?) else {
            continue;
        };
        let is_last = record.suffix != Suffix::Unknown;
        found.push((step, record));
        if is_last {
            break;
        }
    }
    Ok(found)
}

fn record_name(domain: &str) -> Option<String> {
    let name = format!("_dmarc.{domain}");
    is_name(&name).then_some(name)
}

/// The domains of a walk: the domain itself, and those above with up to 7 labels.
fn steps(domain: &str) -> impl Iterator<Item = &str> {
    let labels = domain.split('.').count();
    let above = labels.saturating_sub(1).min(LABELS_MAX);
    let shorter = (1..=above).rev().map(move |labels| suffix(domain, labels));
    std::iter::once(domain).chain(shorter)
}

/// The last labels of a name.
fn suffix(name: &str, labels: usize) -> &str {
    let dots = name.rmatch_indices('.');
    let dot = dots.take(labels).nth(labels.saturating_sub(1));
    dot.map_or(name, |(at, _)| {
        name.get(at.saturating_add(1)..).unwrap_or(name)
    })
}

/// Selects the organizational domain from the records of a walk (section 4.10.2).
fn organization<'a>(found: &[(&'a str, Record)], start: &'a str) -> &'a str {
    for (name, record) in found {
        match record.suffix {
            Suffix::Organization => return name,
            Suffix::Public if *name != start => {
                return suffix(start, name.split('.').count().saturating_add(1));
            }
            Suffix::Public | Suffix::Unknown => {}
        }
    }
    found.last().map_or(start, |(name, _)| name)
}

/// Selects the record that governs the author's domain (section 4.10.1): its own one, that of its organization, or that of its public
/// suffix.
fn governing<'a, 'b>(
    found: &'b [(&'a str, Record)],
    author: &str,
    organization: &str,
) -> Option<(&'a str, &'b Record)> {
    let of = |wanted: &str| found.iter().find(|(name, _)| *name == wanted);
    let suffix = || {
        found
            .iter()
            .find(|(_, record)| record.suffix == Suffix::Public)
    };
    let (name, record) = of(author).or_else(|| of(organization)).or_else(suffix)?;
    Some((name, record))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The walks of RFC 9989 section 4.10.
    #[test]
    fn a_walk_has_eight_names_at_most() {
        let steps = |name: &'static str| steps(name).collect::<Vec<_>>();
        assert_eq!(
            steps("a.mail.example.com"),
            [
                "a.mail.example.com",
                "mail.example.com",
                "example.com",
                "com"
            ]
        );
        assert_eq!(
            steps("a.b.c.d.e.f.g.h.i.j.mail.example.com"),
            [
                "a.b.c.d.e.f.g.h.i.j.mail.example.com",
                "g.h.i.j.mail.example.com",
                "h.i.j.mail.example.com",
                "i.j.mail.example.com",
                "j.mail.example.com",
                "mail.example.com",
                "example.com",
                "com",
            ]
        );
        assert_eq!(steps("a.b.c.d.e.f.g.h").len(), 8);
        assert_eq!(steps("com"), ["com"]);
    }

    #[test]
    fn suffixes_have_labels() {
        assert_eq!(suffix("a.b.c", 1), "c");
        assert_eq!(suffix("a.b.c", 2), "b.c");
        assert_eq!(suffix("a.b.c", 3), "a.b.c");
        assert_eq!(suffix("a.b.c", 9), "a.b.c");
    }
}
