//! A queue of 1,000,000 messages of 10 KB in a node that may take 2 GiB of memory, page cache included:
//! what does not fit goes to disk and comes back, beside a program that writes a file under the same
//! limit.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use vere_spoolwire::{Answer, RecordId, Request, Seq};

use super::drive::{Lane, Until, drive};
use super::report::{Limit, Plot, Report};
use super::systems::{NodeMode, Server, VERE, secret};
use super::vere_wire::{QUEUE, Session};
use super::{Plan, Setting, SpoolBenchError, body, skip, there};
use crate::peer;

/// Memory of all processes and their page cache.
const LIMIT: u64 = 2 << 30;
/// Memory that the node may take for messages.
const MEMORY_MAX: u64 = 1 << 30;
/// Octets of each body.
const SIZE: usize = 10_000;
/// The queue is filled and read in so many parts, each measured.
const PARTS: u64 = 10;
/// In the first parts memory is not full yet.
const PARTS_IN_MEMORY: usize = 2;
const WINDOW: usize = 1 << 20;
/// Records of a block.
const BLOCK: u32 = 100;

const FILE: &str = "file writer";
const GROUP: &str = "limit";

/// A control group with a memory limit, removed when dropped.
#[derive(Debug)]
struct MemoryGroup {
    path: PathBuf,
}

impl MemoryGroup {
    fn create() -> io::Result<Self> {
        let name = format!("vere-bench-{}", std::process::id());
        let first = PathBuf::from("/sys/fs/cgroup/memory").join(&name);
        let second = PathBuf::from("/sys/fs/cgroup").join(&name);
        let (path, file) = if first.parent().is_some_and(std::path::Path::exists) {
            (first, "memory.limit_in_bytes")
        } else {
            (second, "memory.max")
        };
        fs::create_dir(&path)?;
        let group = Self { path };
        fs::write(group.path.join(file), LIMIT.to_string())?;
        Ok(group)
    }

    /// A command that enters the group before it begins.
    fn enter(&self, command: Vec<OsString>) -> Vec<OsString> {
        let script = r#"echo $$ >"$0"/cgroup.procs && exec "$@""#;
        let mut entered: Vec<OsString> = vec!["/bin/sh".into(), "-c".into(), script.into()];
        entered.push(self.path.clone().into());
        entered.extend(command);
        entered
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let until = Instant::now() + Duration::from_secs(5);
        while fs::remove_dir(&self.path).is_err() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Fills and reads the queue. A node that refuses, or a machine without such limits, is noted.
///
/// # Errors
///
/// A server misbehaves.
pub(super) fn measure(
    plan: &Plan,
    setting: &Setting<'_>,
    report: &mut Report,
) -> Result<(), SpoolBenchError> {
    let Some(vere) = setting.vere else {
        return Ok(());
    };
    let group = match MemoryGroup::create() {
        Ok(group) => group,
        Err(error) => {
            skip(
                report,
                format!("2 GiB of memory: no such limit here: {error}"),
            );
            return Ok(());
        }
    };
    let messages = plan.limited / PARTS;
    for _ in 0..PARTS {
        // Its median stands beside every tenth: the disk is shared with others.
        let rate = write_file(setting, &group, messages)?;
        for part in 0..PARTS {
            report.add(&name("put", part), "messages/s", FILE, rate);
            report.add(&name("fetched", part), "messages/s", FILE, rate);
        }
    }
    let enter = |command| group.enter(command);
    let node = Server::vere_by(vere, setting.base, NodeMode::Memory, MEMORY_MAX, enter);
    let Some(node) = there(node, report)? else {
        return Ok(());
    };
    if let Err(error) = fill_and_read(&node, messages, report) {
        skip(report, format!("2 GiB of memory: not there: {error}"));
    }
    for (kind, title) in [("put", "stored"), ("fetched", "read back")] {
        report.plots.push(Plot {
            title: format!(
                "{} x 10 KB in 2 GiB of memory, {title}, by tenths",
                plan.limited
            ),
            unit: "messages/s",
            points: (0..PARTS)
                .map(|part| (format!("{}", part + 1), name(kind, part)))
                .collect(),
        });
        for part in 0..PARTS {
            report.bar(&name(kind, part), VERE, Limit::RatioMin(FILE, 0.7));
        }
        fall(kind, report);
    }
    Ok(())
}

/// By how much the slowest part is slower than the first that needs the disk.
fn fall(kind: &str, report: &mut Report) {
    let rates: Vec<f64> = (0..PARTS)
        .filter_map(|part| report.median(&name(kind, part), VERE))
        .skip(PARTS_IN_MEMORY)
        .collect();
    let least = rates.iter().copied().fold(f64::MAX, f64::min);
    if let Some(first) = rates.first().filter(|first| **first > 0.0) {
        let what = format!("10 KB in 2 GiB of memory, {kind}: fall");
        report.add(&what, "%", VERE, 100.0 * (1.0 - least / first));
        report.bar(&what, VERE, Limit::ValueMax(20.0));
    }
}

fn name(kind: &str, part: u64) -> String {
    format!("10 KB in 2 GiB of memory, {kind}, tenth {}", part + 1)
}

/// Messages per second that `dd` writes to a file under the limit.
fn write_file(
    setting: &Setting<'_>,
    group: &MemoryGroup,
    messages: u64,
) -> Result<f64, SpoolBenchError> {
    let failed = SpoolBenchError::io;
    let folder = peer::folder(setting.base, "vere-bench-file-").map_err(failed("make a folder"))?;
    let pieces = messages * SIZE as u64 / (1 << 20);
    let mut file = OsString::from("of=");
    file.push(folder.path().join("file"));
    let count = OsString::from(format!("count={pieces}"));
    let command = ["dd", "if=/dev/zero", "bs=1M", "conv=fdatasync"].map(OsString::from);
    let command = group.enter([&command[..], &[count, file]].concat());
    let begun = Instant::now();
    let done = Command::new(&command[0]).args(&command[1..]).output();
    if !done.map_err(failed("write a file"))?.status.success() {
        return Err(SpoolBenchError::protocol("dd does not write"));
    }
    Ok(messages as f64 / begun.elapsed().as_secs_f64())
}

fn fill_and_read(node: &Server, part: u64, report: &mut Report) -> Result<(), SpoolBenchError> {
    let session = Session::open(node.address, &secret(), GROUP)?;
    let dialect = Box::new(session.dialect(&body(SIZE), false));
    let lane = Lane::new(dialect, vec![session.stream]);
    let mut lanes = [lane.map_err(SpoolBenchError::io("connect"))?];
    for number in 0..PARTS {
        let begun = Instant::now();
        drive(&mut lanes, WINDOW, Until::Units(part * (number + 1)))?;
        let rate = part as f64 / begun.elapsed().as_secs_f64();
        report.add(&name("put", number), "messages/s", VERE, rate);
    }
    drop(lanes);
    let mut session = Session::open(node.address, &secret(), GROUP)?;
    let mut next = RecordId(1);
    for number in 0..PARTS {
        let begun = Instant::now();
        let end = part * (number + 1);
        while next.0 <= end {
            next = fetch(&mut session, next, end)?;
        }
        let rate = part as f64 / begun.elapsed().as_secs_f64();
        report.add(&name("fetched", number), "messages/s", VERE, rate);
    }
    Ok(())
}

/// Reads one block and gives where the next begins.
fn fetch(session: &mut Session, from: RecordId, end: u64) -> Result<RecordId, SpoolBenchError> {
    let records = u32::try_from(end + 1 - from.0).unwrap_or(BLOCK).min(BLOCK);
    let fetch = Request::Fetch {
        queue: QUEUE,
        from,
        records,
        octets: u32::MAX,
    };
    let mut out = Vec::new();
    fetch.encode(&mut out, Seq(from.0));
    session.send(&out)?;
    let Answer::Block { head, .. } = session.answer()? else {
        return Err(SpoolBenchError::protocol("no block"));
    };
    if head.records == 0 {
        return Err(SpoolBenchError::protocol(format!(
            "record {from} is missing"
        )));
    }
    session.pass(head.octets)?;
    Ok(head.next)
}
