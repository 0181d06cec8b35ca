//! Looks up the records of keys that wait, and tells the signer which records the DNS has.
//!
//! The signer has the keys, decides the order and the pauses, and reaches no name server; the gateway has no key and
//! remembers nothing. One record is looked up at a time.

use std::rc::Rc;
use std::time::Duration;

use vere_dkim::Published;
use vere_net::resolver::TxtAnswer;
use vere_signwire::WaitingKey;
use vere_telemetry::metrics::RecordLook;

use super::process::Process;
use super::signer::Signer;

/// The least pause between two looks: very many waiting keys are no reason to flood the name servers.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// The pause while the signer does not answer.
const PAUSE_UNAVAILABLE: Duration = Duration::from_secs(5);

/// Looks up records until the gateway stops.
pub(super) async fn watch(process: Rc<Process>) {
    let Some(signer) = &process.signer else {
        return;
    };
    loop {
        let pause = match signer.waiting_key().await {
            Err(_) => PAUSE_UNAVAILABLE,
            Ok((count, step)) => {
                process.metrics.keys_waiting(count);
                match step {
                    Ok(key) => {
                        look(&process, signer, &key).await;
                        PAUSE_MIN
                    }
                    Err(pause) => pause.max(PAUSE_MIN),
                }
            }
        };
        tokio::time::sleep(pause).await;
    }
}

async fn look(process: &Process, signer: &Signer, key: &WaitingKey) {
    let name = format!("{}._domainkey.{}", key.selector, key.domain);
    let (result, why) = match process.resolver().txt(&name).await {
        TxtAnswer::Found(texts) => {
            let found = Published::compare(&key.record, &texts);
            (result(found), found.to_string())
        }
        TxtAnswer::None | TxtAnswer::NoSuchName => {
            (RecordLook::Missing, Published::Missing.to_string())
        }
        TxtAnswer::TempFail(failure) => (
            RecordLook::Unanswered,
            format!("cannot be looked up: {failure}"),
        ),
    };
    process.metrics.record_looked_up(result);
    if result == RecordLook::Seen {
        let is_active = matches!(signer.seen(&key.domain, &key.selector).await, Ok(true));
        tracing::info!(
            record = name,
            is_active,
            "record of a waiting key seen in the DNS"
        );
    } else if is_told(key.looks) {
        tracing::info!(
            record = name,
            looks = key.looks + 1,
            "key waits, its record {why}"
        );
    } else {
        tracing::debug!(
            record = name,
            looks = key.looks + 1,
            "key waits, its record {why}"
        );
    }
}

const fn result(found: Published) -> RecordLook {
    match found {
        Published::Key | Published::Testing => RecordLook::Seen,
        Published::Missing => RecordLook::Missing,
        _ => RecordLook::Other,
    }
}

/// Whether a look that found nothing has a line in the log: the first look, and then ever fewer.
const fn is_told(looks: u32) -> bool {
    looks.saturating_add(1).is_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ever_fewer_looks_are_told() {
        let told: Vec<u32> = (0..100).filter(|looks| is_told(*looks)).collect();
        assert_eq!(told, [0, 1, 3, 7, 15, 31, 63]);
        assert!(!is_told(u32::MAX - 1));
    }
}
