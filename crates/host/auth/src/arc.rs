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
    }
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
