//! The verification of chains of ARC (RFC 8617 section 5.2).

use crate::canonical::{self, Canonicalization, Header};
use crate::chain::{ArcFault, Set};
use crate::dkim;
use crate::dns::Dns;
use crate::fault::Fault;
use crate::message::Message;
use crate::questions::Questions;
use crate::signature::Found;

/// The result of a chain (RFC 8617 section 4.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arc {
    /// The message has no chain.
    None,
    /// The chain is valid.
    Pass {
        /// The number of sets.
        sets: usize,
        /// The domain of the newest seal.
        sealer: String,
        /// Whether the results that the newest set states have a pass of DMARC.
        dmarc_passed: bool,
    },
    /// The chain is broken.
    Fail(ArcFault),
}

impl Arc {
    /// Returns the word of RFC 8617 section 4.4.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Pass { .. } => "pass",
            Self::Fail(_) => "fail",
        }
    }
}

/// Verifies the chain of a message.
pub(crate) async fn verify(
    questions: &Questions<'_, impl Dns>,
    message: &Message,
    now: u64,
) -> Arc {
    let chain = &message.chain;
    if let Some(fault) = chain.is_broken {
        return Arc::Fail(fault);
    }
    let Some(newest) = chain.sets.last() else {
        return Arc::None;
    };
    let header = Header::of(&message.header);
    if let Err(fault) = newest_message(questions, (message, &header), &newest.message, now).await {
        return Arc::Fail(ArcFault::Message(fault));
    }
    // From the newest seal, which is changed most easily, to the oldest.
    for number in (1..=chain.sets.len()).rev() {
        if let Err(fault) = seal(questions, &header, &chain.sets, number).await {
            return Arc::Fail(ArcFault::Seal(number, fault));
        }
    }
    Arc::Pass {
        sets: chain.sets.len(),
        sealer: newest.seal.found.claim.domain.clone().unwrap_or_default(),
        dmarc_passed: header
            .field(newest.results)
            .is_some_and(|field| states_dmarc_pass(field.value)),
    }
}

/// Whether results of a sealer have a pass of DMARC (RFC 8617 section 4.1.1, RFC 8601 section 2.2). A text that is read wrongly states none: comments
/// and quoted strings are cut out, and each other result begins behind a semicolon.
fn states_dmarc_pass(value: &[u8]) -> bool {
    let mut plain = Vec::with_capacity(value.len());
    let (mut depth, mut is_quoted) = (0_usize, false);
    let mut octets = value.iter().copied();
    while let Some(octet) = octets.next() {
        match octet {
            b'\\' if is_quoted || depth > 0 => drop(octets.next()),
            b'"' if depth == 0 => is_quoted = !is_quoted,
            _ if is_quoted => {}
            b'(' => depth = depth.saturating_add(1),
            b')' => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            _ => plain.push(octet.to_ascii_lowercase()),
        }
    }
    plain.split(|octet| *octet == b';').skip(1).any(|result| {
        let words = result.split(u8::is_ascii_whitespace);
        let joined = words.filter(|word| !word.is_empty()).collect::<Vec<_>>();
        matches!(
            joined.as_slice(),
            [b"dmarc=pass", ..]
                | [b"dmarc", b"=", b"pass", ..]
                | [b"dmarc=", b"pass", ..]
                | [b"dmarc", b"=pass", ..]
        )
    })
}

async fn newest_message(
    questions: &Questions<'_, impl Dns>,
    (message, header): (&Message, &Header<'_>),
    found: &Found,
    now: u64,
) -> Result<(), Fault> {
    let signature = found.signature.as_ref().map_err(|fault| *fault)?;
    dkim::in_time(signature, now)?;
    let key = questions.key(&signature.key_name()).await?;
    dkim::covers(found, header, &message.bodies, &key)
}

/// Verifies the seal of a set, which covers all sets up to its own (section 5.1.1).
async fn seal(
    questions: &Questions<'_, impl Dns>,
    header: &Header<'_>,
    sets: &[Set],
    number: usize,
) -> Result<(), Fault> {
    let covered = sets.get(..number).ok_or(Fault::Syntax)?;
    let (own, before) = covered.split_last().ok_or(Fault::Syntax)?;
    let signature = own.seal.found.signature.as_ref().map_err(|fault| *fault)?;
    let key = questions.key(&signature.key_name()).await?;
    let earlier = before
        .iter()
        .flat_map(|set| [set.results, set.message.index, set.seal.found.index]);
    let mut octets = Vec::new();
    for index in earlier.chain([own.results, own.message.index]) {
        let field = header.field(index).ok_or(Fault::Syntax)?;
        canonical::field(field, Canonicalization::Relaxed, &mut octets);
    }
    let form = Canonicalization::Relaxed;
    dkim::value(own.seal.found.index, signature, header, form, &key, octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_a_sealer_state_a_pass_of_dmarc_or_not() {
        for (results, expected) in [
            (
                " i=1; mx.example; dmarc=pass header.from=a.example; spf=fail",
                true,
            ),
            (
                " i=1; mx.example; spf=pass;\r\n\tDMARC = Pass (p=none)",
                true,
            ),
            (" i=1; mx.example; spf=pass; dmarc=\r\n pass", true),
            (" i=1; mx.example; spf=pass; dmarc (x) =pass", true),
            (" i=1; mx.example; dmarc=fail; x-dmarc=pass", false),
            (" i=1; mx.example; spf=fail (; dmarc=pass)", false),
            (" i=1; mx.example; spf=fail reason=\"; dmarc=pass\"", false),
            (
                " i=1; mx.example; spf=fail reason=\"a\\\"; dmarc=pass\"",
                false,
            ),
            (" i=1; mx.example; spf=fail (\\) ; dmarc=pass)", false),
            (" i=1; mx.example; dmarc=passed", false),
            (" dmarc=pass", false),
            ("", false),
        ] {
            let found = states_dmarc_pass(results.as_bytes());
            assert_eq!(found, expected, "{results}");
        }
    }
}
