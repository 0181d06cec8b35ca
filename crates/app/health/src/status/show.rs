//! The state as text and as JSON.

use std::fmt::Write as _;

use serde_json::json;
use vere_control::TopSample;
use vere_control::supervision::{ProcessState, RoleState, SystemPhase, SystemState};
use vere_process::failure::Failure;
use vere_process::wording::size;

use super::facts::Facts;
use super::orders;
use crate::figures::{age, counted, dash};
use crate::finding::{Finding, Level};

/// The line for monitoring: the level, the severest finding or the state, and how many findings follow.
pub(super) fn summary(facts: &Facts, findings: &[Finding], level: Level) -> String {
    let text = match findings {
        [] => healthy(facts),
        [only] => only.text.clone(),
        [first, rest @ ..] => format!("{} (and {} more)", first.text, rest.len()),
    };
    // Plugins print one line.
    format!("{}: {}\n", level.word(), text.replace('\n', "; "))
}

/// The state of a system without findings.
pub(super) fn healthy(facts: &Facts) -> String {
    match facts.nodes.as_slice() {
        [] => {}
        [node] => {
            return format!(
                "the spool node {} answers; its gateway runs on another machine",
                node.name
            );
        }
        nodes => {
            return format!(
                "{} spool nodes answer; their gateway runs on another machine",
                nodes.len()
            );
        }
    }
    let roles = facts.system.as_ref().map_or(0, |system| system.roles.len());
    let queued = facts
        .queues
        .as_ref()
        .map_or(0, |sample| sample.totals.messages);
    format!(
        "{} ready, {} queued",
        counted(roles as u64, "role"),
        counted(queued as u64, "message")
    )
}

/// The facts and the findings.
///
/// # Errors
/// When a fact has no form in JSON.
pub(super) fn in_json(
    facts: &Facts,
    findings: &[Finding],
    level: Level,
) -> Result<String, Failure> {
    let mut value = json!({ "level": level, "findings": findings });
    if let (Some(to), serde_json::Value::Object(from)) =
        (value.as_object_mut(), serde_json::to_value(facts)?)
    {
        to.extend(from);
    }
    Ok(format!("{value:#}\n"))
}

/// The summary, the findings with remedies, the state in lines, and the table of roles.
pub(super) fn in_text(facts: &Facts, findings: &[Finding], level: Level) -> String {
    let mut out = summary(facts, findings, level);
    for finding in findings {
        let text = finding.text.replace('\n', "\n    ");
        let _ = writeln!(
            out,
            "  {}: {text}\n    {}",
            finding.level.word(),
            finding.remedy
        );
    }
    out.push('\n');
    if let Some(system) = &facts.system {
        let _ = writeln!(out, "{:<12} {}", "system", of_system(system));
    }
    for node in &facts.nodes {
        let state = match node.error {
            None => "answers",
            Some(_) => "does not answer",
        };
        let _ = writeln!(
            out,
            "{:<12} {} at {} {state}",
            "node", node.name, node.address
        );
    }
    if let Some(sample) = &facts.queues {
        let _ = writeln!(out, "{:<12} {}", "queues", of_queues(sample));
        if let Some(line) = orders::line(&facts.orders) {
            let _ = writeln!(out, "{:<12} {line}", "orders");
        }
        let lines = sample.replicas.iter();
        let lines: Vec<_> = lines
            .map(|line| format!("{} {}", line.node, line.sync))
            .collect();
        let _ = writeln!(out, "{:<12} {}", "replicas", lines.join(", "));
    }
    for certificate in certificates(facts) {
        let _ = writeln!(out, "{:<12} {certificate}", "certificate");
    }
    for disk in &facts.disks {
        let (free, all) = (size(disk.free_bytes), size(disk.size_bytes));
        let _ = writeln!(
            out,
            "{:<12} {}: {free} of {all} free",
            "disk",
            disk.directory.display()
        );
    }
    let _ = match &facts.backup {
        Some(last) => writeln!(
            out,
            "{:<12} {} ago, number {} in {}",
            "backup",
            age(last.age_seconds),
            last.number,
            last.place
        ),
        // The gateway's remaining nodes have the messages of a node alone.
        None if !facts.nodes.is_empty() => Ok(()),
        None => writeln!(
            out,
            "{:<12} none known; make one with: vere backup PLACE",
            "backup"
        ),
    };
    if let Some(system) = &facts.system {
        table(&mut out, &system.roles);
    }
    out
}

/// A line for each certificate that can be read.
pub(super) fn certificates(facts: &Facts) -> impl Iterator<Item = String> {
    facts.certificates.iter().filter_map(|certificate| {
        let seconds = certificate.remaining_seconds?;
        let (file, days) = (certificate.file.display(), counted(seconds / 86_400, "day"));
        Some(format!("{file}: {days} left"))
    })
}

fn of_system(system: &SystemState) -> String {
    let phase = match system.phase {
        SystemPhase::Starting => "starting",
        SystemPhase::Running => "running",
        SystemPhase::Stopping => "stopping",
    };
    format!(
        "{phase} for {}, version {}, process {}, settings number {}",
        age(system.uptime_seconds),
        system.version,
        system.pid,
        system.settings
    )
}

fn of_queues(sample: &TopSample) -> String {
    let totals = &sample.totals;
    let messages = counted(totals.messages as u64, "message");
    let oldest = totals.oldest_seconds.filter(|_| totals.messages > 0);
    let oldest = oldest.map(|seconds| format!(", the oldest {} old", age(seconds)));
    format!(
        "{messages} for {}{}, {} deferred, {} held",
        counted(totals.destinations as u64, "destination"),
        oldest.unwrap_or_default(),
        totals.deferred,
        totals.held
    )
}

fn table(out: &mut String, roles: &[RoleState]) {
    let _ = writeln!(
        out,
        "\n{:<14} {:<9} {:>8} {:>5} {:>9}",
        "ROLE", "STATE", "PROCESS", "AGE", "RESTARTS"
    );
    for role in roles {
        let state = match role.state {
            ProcessState::Down => "down",
            ProcessState::Starting => "starting",
            ProcessState::Ready => "ready",
            ProcessState::Stopping => "stopping",
        };
        let _ = writeln!(
            out,
            "{:<14} {state:<9} {:>8} {:>5} {:>9}",
            role.name,
            role.pid.map_or_else(dash, |pid| pid.to_string()),
            role.uptime_seconds.map_or_else(dash, age),
            role.restarts
        );
    }
}
