//! Versions, the machine, and the bounds of memory.

use std::fs;

use serde_json::{Value, json};
use vere_process::clock;
use vere_process::failure::Failure;
use vere_settings::Settings;
use vere_supervisor::roles::memory_bounds;

/// The time as part of a file's name: `20261130T104500Z`.
pub(super) fn moment() -> String {
    let time = clock::now().to_string();
    let whole = time.split('.').next().unwrap_or(&time);
    let digits = whole
        .chars()
        .filter(|letter| letter.is_ascii_digit() || *letter == 'T');
    digits.collect::<String>() + "Z"
}

/// Versions of the programs, and means of the machine.
pub(super) fn versions() -> Result<String, Failure> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let first = |path: &str| read(path).lines().next().unwrap_or_default().to_owned();
    let release = read("/etc/os-release");
    let system = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    let memory = read("/proc/meminfo");
    let value = json!({
        "vere": env!("CARGO_PKG_VERSION"),
        "program": std::env::current_exe().ok().map(|path| path.display().to_string()),
        "time": clock::now().to_string(),
        "system": system.map(|name| name.trim_matches('"')),
        "kernel": first("/proc/version"),
        "uptime_seconds": first("/proc/uptime").split('.').next().and_then(|text| text.parse::<u64>().ok()),
        "load": first("/proc/loadavg"),
        "processors": std::thread::available_parallelism().ok().map(usize::from),
        "memory": memory.lines().take(5).collect::<Vec<_>>(),
        "pressure": {
            "cpu": first("/proc/pressure/cpu"),
            "io": first("/proc/pressure/io"),
            "memory": first("/proc/pressure/memory"),
        },
    });
    Ok(format!("{value:#}\n"))
}

/// The bounds of all roles.
pub(super) fn memory(settings: &Settings) -> Result<String, Failure> {
    let bounds = memory_bounds(settings);
    let roles: Vec<Value> = bounds
        .roles
        .iter()
        .map(|role| json!({ "role": role.role, "bytes": role.max().as_u64() }))
        .collect();
    let value = json!({ "bytes": bounds.max().as_u64(), "roles": roles });
    Ok(format!("{value:#}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_moment_fits_into_a_name() {
        let moment = moment();
        assert_eq!(moment.len(), 16, "{moment}");
        assert!(moment.starts_with("20") && moment.ends_with('Z'));
    }
}
