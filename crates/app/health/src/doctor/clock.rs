//! The clock: whether the clock is synchronised, and whether the clock is behind the files of the system.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use vere_settings::Settings;

use crate::figures::age;
use crate::program::{output, property};
use crate::row::Row;

const CHECK: &str = "clock";
/// Longest wait for systemd-timedated; D-Bus may have to start the program.
const PATIENCE: Duration = Duration::from_secs(5);
const OUTPUT_MAX: u64 = 16 * 1024;
/// Steps of a clock up to this span are harmless.
const HARMLESS: Duration = Duration::from_secs(60);

/// The state of the clock.
pub(super) fn rows(settings: Option<&Settings>) -> Vec<Row> {
    let mut rows = vec![synchronised(asked())];
    if let Some(settings) = settings {
        rows.extend(behind(&settings.data, SystemTime::now()));
    }
    rows
}

/// The kernel's state (`adjtimex(2)`), as systemd-timedated tells: the kernel call needs unsafe code.
fn asked() -> Result<String, String> {
    let words = ["timedatectl", "show", "-p", "NTPSynchronized", "-p", "NTP"];
    output(&words, PATIENCE, OUTPUT_MAX)
}

fn synchronised(state: Result<String, String>) -> Row {
    let state = match state {
        Ok(state) => state,
        Err(error) => return Row::ok(CHECK, format!("not compared with others: {error}")),
    };
    match (property(&state, "NTPSynchronized"), property(&state, "NTP")) {
        (Some("yes"), _) => Row::ok(CHECK, "synchronised"),
        (Some(_), Some("yes")) => Row::warning(
            CHECK,
            "not synchronised, although a time service is enabled",
            "see why with: timedatectl timesync-status, or: chronyc tracking; UDP port 123 must be open outwards",
        ),
        (Some(_), _) => Row::warning(
            CHECK,
            "not synchronised: no time service is enabled",
            "enable one with: apt-get install systemd-timesyncd && timedatectl set-ntp true",
        ),
        (None, _) => Row::ok(CHECK, "not compared with others: timedatectl says nothing"),
    }
}

/// A clock behind the newest file was set back: leases, retries and certificates wait for the clock.
fn behind(data: &Path, now: SystemTime) -> Option<Row> {
    let (path, time) = newest(data)?;
    let ahead = time
        .duration_since(now)
        .ok()
        .filter(|ahead| *ahead > HARMLESS)?;
    Some(Row::critical(
        CHECK,
        format!(
            "the clock is {} behind the file {}",
            age(ahead.as_secs()),
            path.display()
        ),
        "set the clock, then restart: systemctl restart vere",
    ))
}

/// The last change directly in the data directory.
fn newest(data: &Path) -> Option<(PathBuf, SystemTime)> {
    let entries = fs::read_dir(data).ok()?.flatten();
    let times = entries.filter_map(|entry| {
        let time = entry.metadata().ok()?.modified().ok()?;
        Some((entry.path(), time))
    });
    times.max_by_key(|(_, time)| *time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Level;

    #[test]
    fn the_state_of_the_kernel_has_its_remedy() {
        let row = |text: &str| synchronised(Ok(text.to_owned()));
        assert_eq!(row("NTPSynchronized=yes\nNTP=no\n").level, Level::Ok);
        let enabled = row("NTP=yes\nNTPSynchronized=no\n");
        assert!(enabled.remedy.unwrap().contains("port 123"));
        let none = row("NTP=no\nNTPSynchronized=no\n");
        assert!(none.remedy.unwrap().contains("set-ntp"));
        assert_eq!(
            synchronised(Err("timedatectl: none".to_owned())).level,
            Level::Ok
        );
    }

    #[test]
    fn a_clock_behind_the_files_is_critical() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("accepted.toml"), "").unwrap();
        let now = SystemTime::now();
        assert_eq!(behind(folder.path(), now), None);
        let row = behind(folder.path(), now - Duration::from_secs(7_200)).unwrap();
        assert_eq!(row.level, Level::Critical);
        assert!(row.text.contains("accepted.toml"), "{}", row.text);
    }
}
