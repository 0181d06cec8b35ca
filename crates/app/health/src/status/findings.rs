//! The faults of a system by its state, with their remedies.

use vere_control::supervision::{ProcessState, RoleState, SystemPhase, SystemState};
use vere_control::{ReplicaLine, TopSample};
use vere_process::wording::size;

use super::facts::{Backup, Certificate, Disk, Facts};
use super::orders;
use crate::figures::{age, counted};
use crate::finding::{Finding, Level};
use crate::nodes::NodeHere;
use crate::starting;

/// Seconds within which an unexpected end of a role is news.
const RECENT: u64 = 3_600;
/// Age of the oldest message, in seconds, from which on the queues are worth a look.
const OLD: u64 = 86_400;
/// Days to the end of a certificate; fewer mean a failed renewal, since ACME renews 30 days before the end.
const CERTIFICATE_WARNING: u64 = 14;
const CERTIFICATE_CRITICAL: u64 = 3;
/// Free space of a disk, in percent.
const DISK_WARNING: u64 = 10;
const DISK_CRITICAL: u64 = 3;

/// The findings, the severest first.
pub(super) fn of(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    match &facts.system {
        None if facts.nodes.is_empty() => findings.push(Finding::critical(
            "the system is not running",
            format!("start it with: {}", starting::system(facts.file.as_deref())),
        )),
        // A mail system is not meant to run here.
        None => findings.extend(facts.nodes.iter().filter_map(|one| node(one, facts))),
        Some(system) => {
            running(system, facts, &mut findings);
            gateway(facts, &mut findings);
        }
    }
    findings.extend(facts.certificates.iter().filter_map(certificate));
    findings.extend(facts.disks.iter().filter_map(disk));
    findings.extend(facts.backup.as_ref().and_then(backup));
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
    findings
}

/// The fault of a node alone on its machine.
fn node(node: &NodeHere, facts: &Facts) -> Option<Finding> {
    let error = node.error.as_ref()?;
    let NodeHere { name, address, .. } = node;
    Some(Finding::critical(
        format!("the spool node {name} does not answer at {address}: {error}"),
        format!(
            "start it with: {}",
            starting::node(facts.file.as_deref(), name)
        ),
    ))
}

fn running(system: &SystemState, facts: &Facts, findings: &mut Vec<Finding>) {
    match system.phase {
        SystemPhase::Starting => findings.push(Finding::warning(
            "the system is starting",
            "wait; the log prints the progress",
        )),
        SystemPhase::Stopping => findings.push(Finding::critical(
            "the system is stopping",
            "start it again with: systemctl start vere",
        )),
        SystemPhase::Running => {}
    }
    findings.extend(
        system
            .roles
            .iter()
            .filter_map(|role| one_role(role, system)),
    );
    if system.version != facts.version {
        findings.push(Finding::warning(
            format!(
                "version {} runs; version {} is installed",
                system.version, facts.version
            ),
            "restart it with: systemctl restart vere",
        ));
    }
    if let Some(refused) = &system.refused {
        findings.push(Finding::warning(
            format!(
                "the reload {} ago was refused: {}",
                age(refused.seconds_ago),
                refused.reason
            ),
            "correct the file, then: vere reload",
        ));
    }
    if !facts.edited.restart.is_empty() {
        findings.push(Finding::warning(
            format!(
                "edited and not in force: {}",
                facts.edited.restart.join(", ")
            ),
            "restart it with: systemctl restart vere",
        ));
    } else if !facts.edited.reload.is_empty() {
        findings.push(Finding::warning(
            format!(
                "edited and not in force: {}",
                facts.edited.reload.join(", ")
            ),
            "put the settings in force with: vere reload",
        ));
    }
}

fn one_role(role: &RoleState, system: &SystemState) -> Option<Finding> {
    let name = &role.name;
    let end = role.last_end.as_ref();
    if role.state == ProcessState::Down && system.phase == SystemPhase::Running {
        let why = end
            .map(|end| format!(": {}", end.status))
            .unwrap_or_default();
        return Some(Finding::critical(
            format!("role {name} is down{why}"),
            "look into the log; it is started again by itself",
        ));
    }
    if let (ProcessState::Starting, Some(work)) = (role.state, &role.complaint) {
        return Some(Finding::warning(
            format!("role {name} is starting: {work}"),
            "wait; the role accepts work when it is ready",
        ));
    }
    if let Some(complaint) = &role.complaint {
        return Some(Finding::warning(
            format!("role {name} keeps its earlier settings: {complaint}"),
            "correct the cause, then: vere reload",
        ));
    }
    let end = end.filter(|end| end.seconds_ago < RECENT)?;
    Some(Finding::warning(
        format!(
            "role {name} ended unexpectedly {} ago ({}), {} since the start of the system",
            age(end.seconds_ago),
            end.status,
            counted(role.restarts, "time")
        ),
        "look into the log",
    ))
}

fn gateway(facts: &Facts, findings: &mut Vec<Finding>) {
    if let Some(error) = &facts.queues_error {
        findings.push(Finding::critical(
            format!("the gateway does not answer: {error}"),
            "look into the log",
        ));
    }
    let Some(sample) = &facts.queues else {
        return;
    };
    if let Some(reason) = &sample.closed {
        let heaviest = sample
            .heaviest
            .as_ref()
            .or(sample.heaviest_on_disk.as_ref());
        let who = heaviest
            .map(|one| format!("; {} holds most", one.client))
            .unwrap_or_default();
        findings.push(Finding::critical(
            format!("new mail is refused: {reason}{who}"),
            "see what holds the space with: vere queue top",
        ));
    }
    if sample.delivers == Some(false) {
        findings.push(Finding::critical(
            "nothing is delivered: the lease of the queues is not held",
            "see the replicas with: vere spool stat",
        ));
    }
    findings.extend(replicas(&sample.replicas));
    findings.extend(queues(sample));
    findings.extend(orders::held(&facts.orders));
}

fn queues(sample: &TopSample) -> Option<Finding> {
    let oldest = sample
        .totals
        .oldest_seconds
        .filter(|oldest| *oldest >= OLD)?;
    let place = sample.queues.first();
    let place = place
        .map(|row| format!(", for {}", row.destination))
        .unwrap_or_default();
    Some(Finding::warning(
        format!("the oldest message waits since {}{place}", age(oldest)),
        "see the reasons with: vere queue list",
    ))
}

fn replicas(lines: &[ReplicaLine]) -> Option<Finding> {
    if let Some(line) = lines.iter().find(|line| line.alone) {
        return Some(Finding::critical(
            format!(
                "acknowledged mail is only in the memory of node {}",
                line.node
            ),
            "bring a second node back; see: vere spool stat",
        ));
    }
    let away: Vec<&str> = lines
        .iter()
        .filter(|line| !matches!(line.sync.as_str(), "sync" | "slow"))
        .map(|line| line.node.as_str())
        .collect();
    let level = match (away.len(), lines.len()) {
        (0, _) => return None,
        (away, all) if away == all => Level::Critical,
        _ => Level::Warning,
    };
    Some(Finding {
        level,
        text: format!("no replica in sync on: {}", away.join(", ")),
        remedy: "see the reasons with: vere spool stat".to_owned(),
    })
}

fn certificate(certificate: &Certificate) -> Option<Finding> {
    let file = certificate.file.display();
    if let Some(error) = &certificate.error {
        return Some(Finding::critical(
            error.clone(),
            "correct the file, then: vere reload",
        ));
    }
    let days = certificate.remaining_seconds? / 86_400;
    let finding = match days {
        0..CERTIFICATE_CRITICAL => Finding::critical,
        CERTIFICATE_CRITICAL..CERTIFICATE_WARNING => Finding::warning,
        _ => return None,
    };
    Some(finding(
        format!("the certificate {file} ends in {}", counted(days, "day")),
        "renew it; the log has the reason why a renewal failed".to_owned(),
    ))
}

fn disk(disk: &Disk) -> Option<Finding> {
    let percent = disk.free_bytes.saturating_mul(100) / disk.size_bytes.max(1);
    let finding = match percent {
        0..DISK_CRITICAL => Finding::critical,
        DISK_CRITICAL..DISK_WARNING => Finding::warning,
        _ => return None,
    };
    Some(finding(
        format!(
            "{} free below {}, {percent} %",
            size(disk.free_bytes),
            disk.directory.display()
        ),
        "free or add disk space; mail is refused before the disk is full".to_owned(),
    ))
}

fn backup(last: &Backup) -> Option<Finding> {
    last.warn_after_seconds
        .filter(|bound| last.age_seconds > *bound)?;
    Some(Finding::warning(
        format!(
            "the last backup is {} old (number {} in {})",
            age(last.age_seconds),
            last.number,
            last.place
        ),
        format!(
            "make one with: vere backup {}; the reason why none was made: journalctl -u vere-backup, or the mail of cron",
            last.place
        ),
    ))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
