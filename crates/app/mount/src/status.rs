//! The state of a mount: as JSON over the control socket, and as lines for people.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use vere_mailfs::format::Encoding;
use vere_mailfs::volume::{AccountStatus, GroupStatus, Status, Strategy};
use vere_settings::Volume as Described;

use crate::budgets;
use crate::copies;
pub(crate) use crate::figures::octets;
use crate::figures::time;

/// The word of a mode.
pub(crate) const fn mode_word(strong: bool) -> &'static str {
    if strong { "strong" } else { "weak" }
}

/// The word of a strategy.
pub(crate) const fn strategy_word(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::One => "one",
        Strategy::All => "all",
        Strategy::Fast => "fast",
    }
}

/// The word of an encoding.
pub(crate) const fn encoding_word(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::EightBit => "8bit",
        Encoding::Base64 => "base64",
    }
}

/// The state as JSON; the help of `vere fs status` has every field.
pub(crate) fn json(status: &Status, groups: &[GroupStatus], point: Option<&Path>) -> Value {
    let accounts: Vec<Value> = status.accounts.iter().map(account_json).collect();
    let stored_octets = stored(groups);
    let groups: Vec<Value> = groups
        .iter()
        .map(|group| {
            json!({
                "group": group.group,
                "strategy": strategy_word(group.strategy),
                "accounts": group.accounts,
                "packs": group.packs,
                "octets": group.octets,
                "missing": group.missing,
            })
        })
        .collect();
    json!({
        "mounted_at": point,
        "mode": mode_word(status.strong),
        "generation": status.generation,
        "fingerprint": status.fingerprint.to_string(),
        "writer": status.writer,
        "quiet": status.quiet,
        "rows_waiting": status.rows_waiting,
        "octets_waiting": status.octets_waiting,
        "octets_sending": status.octets_sending,
        "octets_per_second": status.octets_per_second,
        "seconds_left": status.octets_waiting.checked_div(status.octets_per_second),
        "commits_sending": status.commits_sending,
        "journal_octets": status.journal_octets,
        "cache_octets": status.cache_octets,
        "rows": {
            "octets": status.rows.octets,
            "pages_waiting": status.rows.pages_waiting,
            "calls_waiting": status.rows.calls_waiting,
        },
        "disk_octets": status.disk_octets,
        "disk_hits": status.disk_hits,
        "disk_misses": status.disk_misses,
        "octets_shared": status.octets_shared,
        "copies_missing": status.copies_missing,
        "conflicts": status.conflicts,
        "conflicts_latest": status.conflicts_latest,
        "commits_open": status.commits_open,
        "metadata_copies": copies::json(&status.mirrors),
        "inodes": status.logical.map(|(inodes, _)| inodes),
        "logical_octets": status.logical.map(|(_, octets)| octets),
        "stored_octets": stored_octets,
        "pack_octets": status.upkeep.filter(|row| row.collected_ms != 0).map(|row| row.octets),
        "garbage_octets": status.upkeep.map(|row| row.octets.saturating_sub(row.live_octets)),
        "collected_ms": status.upkeep.map(|row| row.collected_ms).filter(|time| *time != 0),
        "checked_ms": status.upkeep.map(|row| row.checked_ms).filter(|time| *time != 0),
        "keep_versions_s": status.retention.map(|(versions, _)| versions),
        "keep_deleted_s": status.retention.map(|(_, deleted)| deleted),
        "slot": status.slot,
        "unconfirmed": status.unconfirmed,
        "read_only": status.read_only,
        "accounts": accounts,
        "groups": groups,
    })
}

/// Octets of packs on all accounts.
fn stored(groups: &[GroupStatus]) -> u64 {
    let of_group = |group: &GroupStatus| {
        let members = u64::try_from(group.accounts.len()).unwrap_or(u64::MAX);
        group.octets.saturating_mul(members)
    };
    groups.iter().map(of_group).fold(0, u64::saturating_add)
}

fn account_json(account: &AccountStatus) -> Value {
    json!({
        "account": account.account,
        "requests": account.asked,
        "failing": account.failing,
        "failing_for_s": account.failing_for.as_secs(),
        "next_attempt_s": account.next_attempt.as_secs(),
        "used_octets": account.quota.map(|(used, _)| used),
        "limit_octets": account.quota.map(|(_, limit)| limit),
        "encoding": encoding_word(account.encoding),
        "scarce": account.scarce.as_ref().map(|(reason, _)| reason),
        "scarce_for_s": account.scarce.as_ref().map(|(_, left)| left.as_secs()),
        "up": account.up,
        "down": account.down,
    })
}

/// The state for people. The description has the names of accounts.
pub(crate) fn shown(status: &Value, described: Option<&Described>) -> String {
    let mut text = String::new();
    // Writing into a text does not fail.
    let mut line = |name: &str, value: String| {
        let _written = writeln!(text, "{name:19} {value}");
    };
    let number = |key: &str| status[key].as_u64().unwrap_or(0);
    let word = |key: &str| status[key].as_str().unwrap_or_default().to_owned();
    line("mounted at", word("mounted_at"));
    line("mode", word("mode"));
    line("generation", number("generation").to_string());
    line("fingerprint", word("fingerprint"));
    line("writer", number("writer").to_string());
    line("waiting", waiting(status));
    if let Some(waiting) = budgets::waiting(status) {
        line("budget", waiting);
    }
    line("journal", octets(number("journal_octets")));
    line("content in memory", octets(number("cache_octets")));
    line("rows in memory", rows(&status["rows"]));
    line("content on disk", on_disk(status));
    line("sent once", octets(number("octets_shared")));
    if number("conflicts") > 0 {
        line("conflicts", number("conflicts").to_string());
        for latest in status["conflicts_latest"].as_array().into_iter().flatten() {
            line("", latest.as_str().unwrap_or_default().to_owned());
        }
    }
    if number("commits_open") > 0 {
        let open = format!("{}, of mounts that are away", number("commits_open"));
        line("commits to merge", open);
    }
    for (name, value) in copies::shown(status) {
        line(&name, value);
    }
    line("files", files(status));
    line("garbage", garbage(status));
    if let Some(line_of_slot) = status["slot"].as_str() {
        line("key slot", line_of_slot.to_owned());
    }
    if status["unconfirmed"] == Value::Bool(true) {
        let text =
            "as of the local disk: the lead account has not answered yet, and nothing is sent";
        line("state", text.to_owned());
    }
    if let Some(reason) = status["read_only"].as_str() {
        line("read-only", reason.to_owned());
    }
    for name in ["reopening", "reopened"] {
        if let Some(told) = status[name].as_str() {
            line(name, told.to_owned());
        }
    }
    for account in status["accounts"].as_array().into_iter().flatten() {
        let name = format!("account {}", account["account"]);
        line(&name, account_line(account, described));
    }
    for group in status["groups"].as_array().into_iter().flatten() {
        line(&format!("group {}", group["group"]), group_line(group));
    }
    text
}

/// Rows in memory, and calls that wait for others.
fn rows(rows: &Value) -> String {
    let number = |key: &str| rows[key].as_u64().unwrap_or(0);
    let text = octets(number("octets"));
    match number("calls_waiting") {
        0 => text,
        calls => format!(
            "{text}; {calls} calls wait for {} pages",
            number("pages_waiting")
        ),
    }
}

/// The cache on the local disk.
fn on_disk(status: &Value) -> String {
    let number = |key: &str| status[key].as_u64().unwrap_or(0);
    let (hits, misses) = (number("disk_hits"), number("disk_misses"));
    let all = hits.saturating_add(misses);
    let text = octets(number("disk_octets"));
    format!("{text}, {hits} of {all} chunks found")
}

/// Logical against stored octets.
fn files(status: &Value) -> String {
    let stored = octets(status["stored_octets"].as_u64().unwrap_or(0));
    match (status["inodes"].as_u64(), status["logical_octets"].as_u64()) {
        (Some(inodes), Some(logical)) => {
            let logical = octets(logical);
            format!(
                "{inodes} with {logical} as of the last checkpoint, {stored} in packs on all accounts"
            )
        }
        _ => format!("{stored} in packs on all accounts"),
    }
}

/// Content that no file needs, and the last runs of upkeep.
fn garbage(status: &Value) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX));
    let ago = |key: &str| match status[key].as_i64() {
        None => "never".to_owned(),
        Some(at) => format!(
            "{} ago",
            time(now.saturating_sub(at).max(0).unsigned_abs() / 1_000)
        ),
    };
    let (all, needless) = (
        status["pack_octets"].as_u64(),
        status["garbage_octets"].as_u64(),
    );
    let mut text = match (all, needless) {
        (Some(all), Some(needless)) if all > 0 => {
            let percent = u128::from(needless).saturating_mul(100) / u128::from(all);
            format!("{percent} % of {}, ", octets(all))
        }
        _ => String::new(),
    };
    let (collected, checked) = (ago("collected_ms"), ago("checked_ms"));
    // Writing into a text does not fail.
    let _written = write!(text, "collected {collected}, checked {checked}");
    if let Some(versions) = status["keep_versions_s"].as_u64() {
        let _written = write!(text, ", versions kept for {}", time(versions));
    }
    text
}

/// What is not on the servers, and how long that takes.
fn waiting(status: &Value) -> String {
    let number = |key: &str| status[key].as_u64().unwrap_or(0);
    let (rows, all) = (number("rows_waiting"), number("octets_waiting"));
    if status["quiet"] == Value::Bool(true) && all == 0 {
        return "nothing: every change is on the servers".to_owned();
    }
    let mut text = format!("{} of content, {rows} changes of names", octets(all));
    let speed = number("octets_per_second");
    if speed > 0 {
        // Writing into a text does not fail.
        let _written = write!(text, ", {}/s", octets(speed));
        if let Some(left) = status["seconds_left"].as_u64() {
            let _written = write!(text, ", about {} left", time(left.max(1)));
        }
    }
    text
}

fn account_line(account: &Value, described: Option<&Described>) -> String {
    let mut parts = Vec::new();
    match account["failing"].as_str() {
        None => parts.push("works".to_owned()),
        Some(fault) => {
            let since = time(account["failing_for_s"].as_u64().unwrap_or(0));
            let next = time(account["next_attempt_s"].as_u64().unwrap_or(0));
            parts.push(format!(
                "fails for {since} ({fault}), next attempt in {next}"
            ));
        }
    }
    parts.push(room(account));
    parts.extend(budgets::shown(account));
    for way in ["up", "down"] {
        if let Some(speed) = account[way].as_u64() {
            parts.push(format!("{way} {}/s", octets(speed)));
        }
    }
    parts.push(format!(
        "{} requests under way",
        account["requests"].as_u64().unwrap_or(0)
    ));
    let number = account["account"].as_u64();
    let of = described.and_then(|described| {
        let mut accounts = described.accounts.iter();
        accounts.find(|of| Some(u64::from(of.number)) == number)
    });
    if let Some(of) = of {
        parts.push(of.url.clone());
    }
    parts.join(", ")
}

/// The room of an account, as JSON has the room.
pub(crate) fn room(account: &Value) -> String {
    match (
        account["used_octets"].as_u64(),
        account["limit_octets"].as_u64(),
    ) {
        (Some(used), Some(limit)) => format!("{} of {} used", octets(used), octets(limit)),
        _ => "no quota told".to_owned(),
    }
}

fn group_line(group: &Value) -> String {
    let accounts: Vec<String> = group["accounts"]
        .as_array()
        .into_iter()
        .flatten()
        .map(ToString::to_string)
        .collect();
    let packs = group["packs"].as_u64().unwrap_or(0);
    let mut text = format!(
        "accounts {}: strategy {}, {packs} pack{}, {}",
        accounts.join(", "),
        group["strategy"].as_str().unwrap_or_default(),
        if packs == 1 { "" } else { "s" },
        octets(group["octets"].as_u64().unwrap_or(0))
    );
    for (account, packs) in group["missing"].as_object().into_iter().flatten() {
        // Writing into a text does not fail.
        let _written = write!(text, "; account {account} lacks {packs}");
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::time::Duration;

    use super::{json, shown};
    use vere_mailfs::format::Encoding;
    use vere_mailfs::rows::UpkeepRow;
    use vere_mailfs::volume::{AccountStatus, GroupStatus, RowsStatus, Status, Strategy};

    /// A state, for tests.
    pub(crate) fn status() -> Status {
        let account = AccountStatus {
            account: 1,
            asked: 2,
            failing: None,
            failing_for: Duration::ZERO,
            next_attempt: Duration::ZERO,
            quota: Some((5 << 20, 1 << 30)),
            encoding: Encoding::EightBit,
            scarce: None,
            up: None,
            down: Some(3 << 20),
        };
        Status {
            generation: 7,
            fingerprint: "7-9c1185a5".parse().unwrap(),
            writer: 1,
            strong: true,
            quiet: true,
            rows_waiting: 0,
            octets_waiting: 0,
            octets_sending: 0,
            octets_per_second: 0,
            commits_sending: 0,
            journal_octets: 1_000,
            cache_octets: 0,
            rows: RowsStatus::default(),
            disk_octets: 3 << 20,
            disk_hits: 5,
            disk_misses: 2,
            octets_shared: 1 << 20,
            logical: Some((3, 2 << 20)),
            upkeep: Some(UpkeepRow {
                octets: 4 << 20,
                live_octets: 3 << 20,
                ..UpkeepRow::default()
            }),
            retention: Some((604_800, 604_800)),
            copies_missing: 0,
            accounts: vec![
                account.clone(),
                AccountStatus {
                    account: 2,
                    failing: Some("no room".to_owned()),
                    failing_for: Duration::from_secs(300),
                    next_attempt: Duration::from_secs(8),
                    quota: None,
                    ..account
                },
            ],
            conflicts: 0,
            conflicts_latest: Vec::new(),
            commits_open: 0,
            mirrors: Vec::new(),
            slot: None,
            unconfirmed: false,
            read_only: None,
        }
    }

    #[test]
    fn conflicts_are_told() {
        let status = Status {
            conflicts: 2,
            conflicts_latest: vec!["one".to_owned(), "two".to_owned()],
            commits_open: 1,
            unconfirmed: true,
            ..status()
        };
        let text = shown(&json(&status, &[], None), None);
        let lines = [
            "conflicts           2\n",
            "                    two\n",
            "commits to merge    1, of mounts that are away\n",
            "state               as of the local disk: the lead account has not answered yet, and nothing is sent\n",
        ];
        for line in lines {
            assert!(text.contains(line), "{line} in {text}");
        }
    }

    #[test]
    fn a_status_for_people() {
        let groups = [GroupStatus {
            group: 1,
            strategy: Strategy::Fast,
            accounts: vec![1, 2],
            packs: 12,
            octets: 12 << 20,
            missing: BTreeMap::from([(2, 3)]),
        }];
        let text = shown(&json(&status(), &groups, Some(Path::new("/mnt"))), None);
        let lines = [
            "mounted at          /mnt\n",
            "mode                strong\n",
            "fingerprint         7-9c1185a5\n",
            "content on disk     3.0 MiB, 5 of 7 chunks found\n",
            "sent once           1.0 MiB\n",
            "waiting             nothing: every change is on the servers\n",
            "account 1           works, 5.0 MiB of 1.0 GiB used, down 3.0 MiB/s, 2 requests under way\n",
            "account 2           fails for 5 min (no room), next attempt in 8 s, no quota told, down 3.0 MiB/s, 2 requests",
            "group 1             accounts 1, 2: strategy fast, 12 packs, 12.0 MiB; account 2 lacks 3\n",
            "files               3 with 2.0 MiB as of the last checkpoint, 24.0 MiB in packs on all accounts\n",
            "garbage             collected never, checked never, versions kept for 7 days\n",
        ];
        for line in lines {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(!text.contains("read-only"));
    }

    #[test]
    fn uploads_have_a_speed_and_an_end() {
        let status = Status {
            quiet: false,
            rows_waiting: 3,
            octets_waiting: 30 << 20,
            octets_per_second: 1 << 20,
            rows: RowsStatus {
                octets: 5 << 20,
                pages_waiting: 3,
                calls_waiting: 2,
            },
            ..status()
        };
        let value = json(&status, &[], None);
        assert_eq!(value["seconds_left"], 30);
        let text = shown(&value, None);
        let line = "30.0 MiB of content, 3 changes of names, 1.0 MiB/s, about 30 s left\n";
        assert!(text.contains(line), "{text}");
        let line = "rows in memory      5.0 MiB; 2 calls wait for 3 pages\n";
        assert!(text.contains(line), "{text}");
    }
}
