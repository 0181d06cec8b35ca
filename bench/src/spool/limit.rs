//! A queue of 1,000,000 messages of 10 KB in a node with a limit of 2 GiB of memory, page cache included: excess
//! messages go to disk and come back. A program that appends as many octets to a file under the same limit takes
//! turns with the node, tenth by tenth: other programs may use the disk.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use vere_spoolwire::{Answer, RecordId};

use super::drive::{Until, drive};
use super::durable::{Kill, restart};
use super::plan::{Setting, body};
use super::report::Report;
use super::systems::{NodeMode, Server, VERE};
use super::vere_wire::{Session, fetch};
use crate::error::BenchError;
use crate::peer::{self, there};
use crate::process::{entering, guard, remove_group};
use crate::row::Bar;

/// Limit of the memory of all processes with their page cache.
const LIMIT: u64 = 2 << 30;
/// Limit of the node's memory for messages.
const MEMORY_MAX: u64 = 1 << 30;
/// Octets of each body.
const SIZE: usize = 10_000;
/// Number of parts, each measured, in which the queue is filled and read.
const PARTS: u64 = 10;
/// In the first parts memory is not full yet.
const PARTS_IN_MEMORY: usize = 2;
const WINDOW: usize = 1 << 20;
/// Records of a block.
const BLOCK: u32 = 100;

const FILE: &str = "file writer";
/// The figure of our node divided by the figure of the file writer.
const BESIDE: &str = "vere by file writer";

/// By how many percent the slowest tenth may be slower.
const FALL_MAX: f64 = 20.0;
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
        guard::keep(guard::Left::Group(path.clone()));
        let group = Self { path };
        fs::write(group.path.join(file), LIMIT.to_string())?;
        Ok(group)
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        remove_group(&self.path, Duration::from_secs(5));
    }
}

/// Fills and reads the queue. A refusal by the node, or a machine without such limits, is noted.
pub(super) fn measure(setting: &Setting<'_>, report: &mut Report) -> Result<(), BenchError> {
    let group = match MemoryGroup::create() {
        Ok(group) => group,
        Err(error) => {
            report
                .header
                .skip(format!("2 GiB of memory: no such limit here: {error}"));
            return Ok(());
        }
    };
    let enter = |command: Vec<OsString>| entering(&group.path, &command);
    let start = |mode| Server::vere_by(setting.vere, setting.base, mode, MEMORY_MAX, enter);
    let Some(node) = there(start(NodeMode::Memory), &mut report.header)? else {
        return Ok(());
    };
    let folder = peer::folder(setting.base, "vere-bench-file-");
    let folder = folder.map_err(BenchError::io("make a folder"))?;
    let writer = Writer {
        group: &group,
        file: folder.path().join("file"),
        messages: setting.plan.limited / PARTS,
    };
    if let Err(error) = fill_and_read(&node, &writer, report) {
        report
            .header
            .skip(format!("2 GiB of memory: not there: {error}"));
    }
    drop((node, folder));
    for (kind, title) in [("put", "stored"), ("fetched", "read back")] {
        let count = setting.plan.limited;
        let title = format!("{count} x 10 KB in 2 GiB of memory, {title}, by tenths");
        let points = (0..PARTS).map(|part| (format!("{}", part + 1), name(kind, part)));
        report.plot(title, "messages/s", points);
        for part in 0..PARTS {
            report.beside(&name(kind, part), VERE, FILE, Bar::RatioMin(0.7));
        }
        fall(kind, report);
    }
    let Some(mut node) = there(start(NodeMode::Synced), &mut report.header)? else {
        return Ok(());
    };
    let kill = Kill {
        messages: setting.plan.limited,
        size: SIZE,
        what: " in 2 GiB of memory",
    };
    if let Err(error) = restart(&kill, &mut node, report) {
        report
            .header
            .skip(format!("2 GiB of memory, kill -9: {error}"));
    }
    Ok(())
}

/// The slowdown of the slowest part against the first part that needs the disk; the writer's parts in turns with the
/// node's show the disk's share.
fn fall(kind: &str, report: &mut Report) {
    let of = |report: &Report, system: &str| -> Vec<f64> {
        (0..PARTS)
            .filter_map(|part| report.median(&name(kind, part), system))
            .skip(PARTS_IN_MEMORY)
            .collect()
    };
    let (ours, file) = (of(report, VERE), of(report, FILE));
    let beside = ours.iter().zip(&file).map(|(ours, file)| ours / file);
    let beside: Vec<f64> = beside.collect();
    let what = format!("10 KB in 2 GiB of memory, {kind}: fall");
    for (system, rates) in [(FILE, &file), (VERE, &ours), (BESIDE, &beside)] {
        let least = rates.iter().copied().fold(f64::MAX, f64::min);
        if let Some(first) = rates.first().filter(|first| **first > 0.0) {
            report.add(&what, "%", system, 100.0 * (1.0 - least / first));
        }
    }
    for system in [VERE, BESIDE] {
        report.bar(&what, system, Bar::ValueMax(FALL_MAX));
    }
}

fn name(kind: &str, part: u64) -> String {
    format!("10 KB in 2 GiB of memory, {kind}, tenth {}", part + 1)
}

/// Appends to a file under the limit.
struct Writer<'a> {
    group: &'a MemoryGroup,
    file: PathBuf,
    /// How many messages a tenth has.
    messages: u64,
}

impl Writer<'_> {
    /// Messages per second that `dd` writes and syncs: the octets of a tenth.
    fn tenth(&self) -> Result<f64, BenchError> {
        let failed = BenchError::io;
        let mut file = OsString::from("of=");
        file.push(&self.file);
        let count = format!("count={}", self.messages * SIZE as u64 / (1 << 20));
        let command = [
            "dd",
            "if=/dev/zero",
            "bs=1M",
            "oflag=append",
            "conv=notrunc,fdatasync",
            &count,
        ];
        let command = command.map(OsString::from);
        let command = entering(&self.group.path, &[&command[..], &[file]].concat());
        let begun = Instant::now();
        let done = Command::new(&command[0]).args(&command[1..]).output();
        if !done.map_err(failed("write a file"))?.status.success() {
            return Err(BenchError::protocol("dd does not write"));
        }
        Ok(self.messages as f64 / begun.elapsed().as_secs_f64())
    }
}

fn fill_and_read(
    node: &Server,
    writer: &Writer<'_>,
    report: &mut Report,
) -> Result<(), BenchError> {
    let part = writer.messages;
    let session = Session::open(node.address, GROUP)?;
    let mut lanes = [session.filling(&body(SIZE))?];
    for number in 0..PARTS {
        let name = name("put", number);
        report.add(&name, "messages/s", FILE, writer.tenth()?);
        let begun = Instant::now();
        drive(&mut lanes, WINDOW, Until::Units(part * (number + 1)))?;
        let rate = part as f64 / begun.elapsed().as_secs_f64();
        report.add(&name, "messages/s", VERE, rate);
    }
    drop(lanes);
    // Room for the writer to begin again.
    fs::remove_file(&writer.file).map_err(BenchError::io("remove a file"))?;
    let mut session = Session::open(node.address, GROUP)?;
    let mut next = RecordId(1);
    for number in 0..PARTS {
        let name = name("fetched", number);
        report.add(&name, "messages/s", FILE, writer.tenth()?);
        let begun = Instant::now();
        let end = part * (number + 1);
        next = read_through(&mut session, next, end)?;
        let rate = part as f64 / begun.elapsed().as_secs_f64();
        report.add(&name, "messages/s", VERE, rate);
    }
    Ok(())
}

/// Reads block after block up to a record, and returns the id after the record. The next block is requested as soon
/// as the end of the present block is known, before the present records have arrived.
fn read_through(session: &mut Session, from: RecordId, end: u64) -> Result<RecordId, BenchError> {
    let mut next = from;
    ask(session, next, end)?;
    while next.0 <= end {
        let Answer::Block { head, .. } = session.answer()? else {
            return Err(BenchError::protocol("no block"));
        };
        if head.records == 0 {
            return Err(BenchError::protocol(format!("record {next} is missing")));
        }
        next = head.next;
        ask(session, next, end)?;
        session.pass(head.octets)?;
    }
    Ok(next)
}

/// Requests the block from `from` on, unless `from` is the end.
fn ask(session: &mut Session, from: RecordId, end: u64) -> Result<(), BenchError> {
    if from.0 > end {
        return Ok(());
    }
    let records = u32::try_from(end + 1 - from.0).unwrap_or(BLOCK).min(BLOCK);
    session.send(&fetch(from, records, from.0))
}
