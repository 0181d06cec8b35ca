//! Looks up the records of waiting keys.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use vere_dkim::{Published, StoredKey};
use vere_net::resolver::{Resolver, TxtAnswer};
use vere_process::failure::Failure;
use vere_settings::Settings;

/// Time for all look-ups of a command.
const PATIENCE: Duration = Duration::from_secs(10);

/// The result of a look-up: whether the record was seen, and the predicate of a sentence about its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) is_seen: bool,
    pub(super) text: String,
}

/// Looks up the records of keys by the name servers of the settings, by the names of the records.
///
/// # Errors
/// When the name servers of the settings cannot be used.
pub(super) fn look_up(
    settings: &Settings,
    keys: &[&StoredKey],
) -> Result<HashMap<String, Look>, Failure> {
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let resolver = vere_outbound::resolver(settings)?;
    Ok(runtime.block_on(async {
        let end = Instant::now() + PATIENCE;
        let mut looks = HashMap::new();
        for key in keys {
            let name = key.record_name();
            let look = timeout_at(end, one(&resolver, key, &name)).await;
            let late = |_| Look {
                is_seen: false,
                text: format!("was not looked up within {} s", PATIENCE.as_secs()),
            };
            looks.insert(name, look.unwrap_or_else(late));
        }
        looks
    }))
}

async fn one(resolver: &Resolver, key: &StoredKey, name: &str) -> Look {
    let found = match resolver.txt(name).await {
        TxtAnswer::Found(texts) => Published::compare(&key.record_text(), &texts),
        TxtAnswer::None | TxtAnswer::NoSuchName => Published::Missing,
        TxtAnswer::TempFail(failure) => {
            return Look {
                is_seen: false,
                text: format!("cannot be looked up: {failure}"),
            };
        }
    };
    Look {
        is_seen: found.is_seen(),
        text: found.to_string(),
    }
}
