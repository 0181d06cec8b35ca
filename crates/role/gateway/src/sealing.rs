//! Seals received mail on the way from an alias to another system (ARC, RFC 8617), with the help of the signer role.
//!
//! Forwarding breaks SPF, and changes by the next system break DKIM. A seal tells later systems the results of this system. Without a key or
//! the signer a message leaves without a seal: most receivers never look for a seal.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout_at};
use vere_delivery::Part;
use vere_dkim::{Chain, MessageDraft, NotSealable, Sealer};
use vere_judge::AuthResult;
use vere_process::clock;
use vere_signwire::SIGN_OCTETS_MAX;
use vere_telemetry::metrics::SealResult;

use super::judging::Gathered;
use super::process::Process;
use super::routing::Forwarded;
use super::signer::{HASH_HERE_MAX, Signer, Unavailable};

// What is sealed here is verified elsewhere by the same bound.
const _: () = assert!(vere_dkim::ARC_SETS_MAX == vere_auth::ARC_SETS_MAX);

/// How long all seals of a message may take. The client waits meanwhile.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most domains whose aliases seal a message: each hashes the body, and has a copy of the message in memory.
const DOMAINS_MAX: usize = 4;
/// How often a set is begun; a key may end between the signer's answer and the use of the key.
const ATTEMPTS_MAX: usize = 2;

/// The statements of a seal of a received message.
#[derive(Debug, Clone)]
pub(super) struct Sealable {
    /// The chain of the message; `None` for a broken chain.
    chain: Option<Chain>,
    /// The field Authentication-Results.
    results: Bytes,
}

impl Sealable {
    /// Returns the statements by the findings of a worker; `None` for a message without authentication.
    pub(super) fn of(gathered: Option<&Gathered>) -> Option<Self> {
        let gathered = gathered?;
        let arc = gathered.facts.arc.as_ref()?;
        Some(Self {
            chain: match arc.result {
                AuthResult::None => Some(Chain::None),
                AuthResult::Pass => Some(Chain::Valid),
                _ => None,
            },
            results: Bytes::copy_from_slice(&gathered.results),
        })
    }
}

/// Returns the records of a message, each forwarded record with a set of ARC above the header where the alias's domain has a key. Never fails, and
/// takes [`PATIENCE`] at most.
pub(super) async fn seal(
    process: &Process,
    sealable: Option<&Sealable>,
    mut parts: Vec<Forwarded>,
) -> Vec<Part> {
    let wants_arc = process
        .settings()
        .dkim
        .as_ref()
        .is_some_and(|dkim| dkim.arc);
    let signer = process.signer.as_ref().filter(|_| wants_arc);
    if let (Some(signer), Some(sealable)) = (signer, sealable) {
        let sealed = bodies(process, signer, sealable, &parts).await;
        // Neighbours share a body in the spool.
        parts.sort_by(|(_, one), (_, other)| one.cmp(other));
        for (part, forwarder) in &mut parts {
            let body = forwarder.as_ref().and_then(|domain| sealed.get(domain));
            if let Some(body) = body {
                part.envelope.head.size = u32::try_from(body.len()).unwrap_or(u32::MAX);
                part.body = body.clone();
            }
        }
    }
    parts.into_iter().map(|(part, _)| part).collect()
}

/// The sealed message for each domain with a forwarding alias and a key.
async fn bodies(
    process: &Process,
    signer: &Signer,
    sealable: &Sealable,
    parts: &[Forwarded],
) -> BTreeMap<String, Bytes> {
    let by = Instant::now() + PATIENCE;
    let mut tried: BTreeSet<&str> = BTreeSet::new();
    let mut sealed = BTreeMap::new();
    for (part, forwarder) in parts {
        let Some(domain) = forwarder.as_deref() else {
            continue;
        };
        let before = tried.len();
        if !tried.insert(domain) {
            continue;
        }
        let result = match sealable.chain {
            None => SealResult::Broken,
            Some(_) if before >= DOMAINS_MAX => SealResult::NotSealable,
            Some(chain) => {
                let body = sealed_by(signer, domain, (&part.body, chain, &sealable.results));
                match timeout_at(by, body)
                    .await
                    .unwrap_or(Err(NotSealed::Unavailable))
                {
                    Ok(body) => {
                        sealed.insert(domain.to_owned(), body);
                        SealResult::Sealed
                    }
                    Err(why) => why.note(domain, part),
                }
            }
        };
        process.metrics.sealed(result);
    }
    sealed
}

/// Why a message leaves without a seal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NotSealed {
    NoKey,
    Message(NotSealable),
    Unavailable,
}

impl From<Unavailable> for NotSealed {
    fn from(_: Unavailable) -> Self {
        Self::Unavailable
    }
}

impl NotSealed {
    /// Writes a line of the log for an operator.
    fn note(self, domain: &str, part: &Part) -> SealResult {
        let queue_id = part.envelope.head.trace;
        match self {
            Self::NoKey => SealResult::NoKey,
            Self::Message(why) => {
                tracing::warn!(%queue_id, domain, %why, "forwarded message not sealed");
                SealResult::NotSealable
            }
            Self::Unavailable => {
                tracing::warn!(%queue_id, domain, "forwarded message not sealed: the signer does not answer");
                SealResult::Unavailable
            }
        }
    }
}

/// Returns the message with a set of the domain, or of the nearest parent domain with a key, above its header.
async fn sealed_by(
    signer: &Signer,
    domain: &str,
    whole: (&Bytes, Chain, &Bytes),
) -> Result<Bytes, NotSealed> {
    for _ in 0..ATTEMPTS_MAX {
        let Some(key) = signer.rsa_key_for(domain).await? else {
            return Err(NotSealed::NoKey);
        };
        let key = (&*key.0, &*key.1);
        let draft = draft(key, whole).await.map_err(NotSealed::Message)?;
        let Some(value) = signer.rsa_signature(key, draft.octets()).await? else {
            continue;
        };
        let draft = draft.signed(&value).map_err(NotSealed::Message)?;
        let Some(value) = signer.rsa_signature(key, draft.octets()).await? else {
            continue;
        };
        let set = draft.signed(&value);
        return Ok(Bytes::from([&set[..], &whole.0[..]].concat()));
    }
    Err(NotSealed::Unavailable)
}

async fn draft(
    (domain, selector): (&str, &str),
    (message, chain, results): (&Bytes, Chain, &Bytes),
) -> Result<MessageDraft, NotSealable> {
    let small = message.len() <= HASH_HERE_MAX;
    let (message, results) = (message.clone(), results.clone());
    let (domain, selector) = (domain.to_owned(), selector.to_owned());
    let make = move || {
        let sealer = Sealer {
            domain: &domain,
            selector: &selector,
            now: clock::now(),
            octets_max: SIGN_OCTETS_MAX,
        };
        MessageDraft::of(&message, chain, &results, sealer)
    };
    if small {
        return make();
    }
    // The closure does not panic, and is cancelled only at the end of the process.
    let made = tokio::task::spawn_blocking(make).await;
    made.unwrap_or(Err(NotSealable::Chain))
}
