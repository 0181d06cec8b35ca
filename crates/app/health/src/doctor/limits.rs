//! Memory and descriptors: the bounds of the settings beside the means of the machine.

use std::fs;

use nix::sys::resource::{Resource, getrlimit};
use vere_process::wording::size;
use vere_settings::Settings;
use vere_supervisor::roles::{memory_bounds, node_section};

use super::unit::Unit;
use crate::machine::Memory;
use crate::nodes;
use crate::row::Row;

/// Files, sockets of the processes and libraries beside the connections of a process.
const BESIDE: u64 = 512;
/// Available memory, in percent, below which a running machine is short of memory.
const SHORT: u64 = 5;

/// Compares the bounds of all roles with the memory of the machine and the limit of the unit.
pub(super) fn memory(settings: &Settings, unit: Option<&Unit>, runs: bool) -> Vec<Row> {
    let bound = bound(settings);
    let mut rows: Vec<Row> = Memory::read()
        .map(|machine| machine_row(bound, machine, runs))
        .into_iter()
        .collect();
    let limit = unit.and_then(|unit| unit.memory);
    rows.extend(limit.and_then(|limit| limit_row(bound, limit)));
    rows
}

/// The memory of all roles; on a machine with nodes alone, of the nodes.
fn bound(settings: &Settings) -> u64 {
    let mut bounds = memory_bounds(settings);
    let nodes = nodes::alone(settings);
    let is_node = |role: &str| nodes.iter().any(|node| node_section(&node.name) == role);
    if !nodes.is_empty() {
        bounds.roles.retain(|role| is_node(&role.role));
    }
    bounds.max().as_u64()
}

fn machine_row(bound: u64, machine: Memory, runs: bool) -> Row {
    const CHECK: &str = "memory";
    const REMEDY: &str = "see the parts with: vere config memory, and lower spool.memory_max or [limits], or add memory or swap space";
    let Memory {
        all,
        available,
        swap,
    } = machine;
    if !machine.holds(bound) {
        let swap = match swap {
            0 => String::new(),
            swap => format!(" and {} of swap space", size(swap)),
        };
        let text = format!(
            "the roles may use {}, and the machine has {}{swap}",
            size(bound),
            size(all)
        );
        return Row::warning(CHECK, text, REMEDY);
    }
    if !runs && !machine.has_room_for(bound) {
        let text = format!(
            "the roles may use {}, and {} are available beside other programs",
            size(bound),
            size(available)
        );
        return Row::warning(CHECK, text, REMEDY);
    }
    if available.saturating_mul(100) / all.max(1) < SHORT {
        return Row::warning(
            CHECK,
            format!("{} of {} are available", size(available), size(all)),
            "see what uses the memory with: ps -eo rss,comm --sort=-rss",
        );
    }
    let text = format!(
        "the roles may use {} of {}; {} are available",
        size(bound),
        size(all),
        size(available)
    );
    Row::ok(CHECK, text)
}

fn limit_row(bound: u64, limit: u64) -> Option<Row> {
    (limit < bound).then(|| {
        Row::warning(
            "memory",
            format!(
                "MemoryMax of the unit is {}, and the roles may use {}",
                size(limit),
                size(bound)
            ),
            "vere config memory --systemd > /etc/systemd/system/vere.service.d/memory.conf && systemctl daemon-reload",
        )
    })
}

/// Compares the limit of open files with the connections of the settings. `pid` is the supervisor's.
pub(super) fn descriptors(settings: &Settings, unit: Option<&Unit>, pid: Option<u32>) -> Row {
    let own = || {
        getrlimit(Resource::RLIMIT_NOFILE)
            .map(|(_, hard)| hard)
            .ok()
    };
    let running = pid.and_then(|pid| {
        let text = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
        open_files(&text)
    });
    let of_unit = unit
        .filter(|unit| unit.loaded)
        .and_then(|unit| unit.descriptors);
    let limit = running.or(of_unit).or_else(own).unwrap_or(u64::MAX);
    descriptors_row(needed(settings), limit)
}

/// Descriptors of the gateway with connections in both directions.
fn needed(settings: &Settings) -> u64 {
    let incoming = u64::from(settings.limits.connections_max);
    let outgoing = u64::from(settings.delivery.connections_max);
    incoming.saturating_add(outgoing).saturating_add(BESIDE)
}

fn descriptors_row(needed: u64, limit: u64) -> Row {
    const CHECK: &str = "descriptors";
    match limit < needed {
        true => Row::warning(
            CHECK,
            format!("the limit is {limit}, and the connections of the settings need {needed}"),
            "set LimitNOFILE in the unit, or lower limits.connections_max and delivery.connections_max",
        ),
        false => Row::ok(
            CHECK,
            format!("the limit is {limit}; {needed} are needed at most"),
        ),
    }
}

/// The hard limit of open files in `/proc/PID/limits`; `None` without a limit.
fn open_files(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Level;

    const GIB: u64 = 1 << 30;

    #[test]
    fn memory_is_compared_with_the_bounds() {
        let machine = Memory {
            all: 4 * GIB,
            available: 2 * GIB,
            swap: 0,
        };
        let level = |bound, runs| machine_row(bound, machine, runs).level;
        assert_eq!(level(GIB, false), Level::Ok);
        assert_eq!(level(3 * GIB, false), Level::Warning);
        assert_eq!(level(3 * GIB, true), Level::Ok);
        assert_eq!(level(5 * GIB, true), Level::Warning);
        let swap = Memory {
            swap: GIB,
            ..machine
        };
        assert_eq!(machine_row(5 * GIB, swap, true).level, Level::Ok);
        assert!(
            machine_row(6 * GIB, swap, true)
                .text
                .contains("1.0 GiB of swap space")
        );
        let short = Memory {
            all: 100,
            available: 4,
            swap: 0,
        };
        assert_eq!(machine_row(1, short, true).level, Level::Warning);
        assert_eq!(limit_row(GIB, 2 * GIB), None);
        assert!(
            limit_row(2 * GIB, GIB)
                .unwrap()
                .remedy
                .unwrap()
                .contains("--systemd")
        );
    }

    #[test]
    fn descriptors_are_compared_with_the_connections() {
        let text = "Limit  Soft  Hard  Units\nMax open files            1024                 65536                files\n";
        assert_eq!(open_files(text), Some(65_536));
        assert_eq!(
            open_files("Max open files  unlimited unlimited files\n"),
            None
        );
        assert_eq!(descriptors_row(22_512, 65_536).level, Level::Ok);
        assert_eq!(descriptors_row(22_512, 4_096).level, Level::Warning);
    }
}
