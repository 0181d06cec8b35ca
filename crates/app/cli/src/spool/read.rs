//! `vere spool read`: the records of a single queue, for an account with read access.

use std::fmt::Write as _;

use clap::Args;
use vere_net::tls::MutualTls;
use vere_settings::{Settings, SpoolNode};
use vere_spoolwire::RecordId;

use super::nodes::key;
use vere_link::Credentials;
use vere_link::reader::{ReadRecord, Reader};
use vere_process::encryption;
use vere_process::failure::Failure;

/// Default limit of printed records.
const COUNT: u32 = 1_000;

/// The queue and the range of records.
#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    /// The queue's name: `@finished`, `@notices`, or a destination.
    #[arg(value_name = "QUEUE")]
    queue: String,
    /// Read a queue of the gateway of this name; by default, of this machine's gateway.
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
    /// Begin with the record of this number, or the next existing record.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    from: u64,
    /// Print at most this number of records.
    #[arg(long, value_name = "NUMBER", default_value_t = COUNT)]
    count: u32,
}

/// Reads from the first answering node that holds the whole group.
///
/// # Errors
/// The error of each node, when no node shows the queue.
pub(super) fn run(args: &ReadArgs, settings: &Settings) -> Result<String, Failure> {
    let key = key(settings)?;
    let tls = encryption::certificates(settings)?;
    let group = args.group.as_deref().unwrap_or(&settings.gateway.name);
    let mut errors = Vec::new();
    for node in &settings.spool.nodes {
        match records(node, tls.as_ref(), (&key, group), args) {
            Ok(records) => return Ok(print(&records)),
            Err(error) => errors.push(format!("{}: {error}", node.name)),
        }
    }
    Err(Failure::new(errors.join("; ")))
}

fn records(
    node: &SpoolNode,
    tls: Option<&MutualTls>,
    (key, group): (&Credentials, &str),
    args: &ReadArgs,
) -> Result<Vec<ReadRecord>, Failure> {
    let mut reader = Reader::connect(node, tls, key, group)?;
    if reader.welcome.syncing {
        let text = format!("it does not hold all of group {group:?}");
        return Err(Failure::new(text));
    }
    let queues = reader.queues()?;
    let queue = queues.iter().find(|queue| queue.name == args.queue);
    let queue = queue.ok_or_else(|| {
        let (account, queue) = (&key.account, &args.queue);
        Failure::new(format!(
            "account {account:?} may not read queue {queue:?} of group {group:?}, or there is none"
        ))
    })?;
    let mut found: Vec<ReadRecord> = Vec::new();
    let mut from = RecordId(args.from);
    loop {
        let left = usize::try_from(args.count).unwrap_or(usize::MAX);
        let left = left.saturating_sub(found.len());
        let Some(left) = u32::try_from(left).ok().filter(|left| *left > 0) else {
            return Ok(found);
        };
        let (records, end) = reader.fetch(queue.id, from, left)?;
        let last = records.last().map(|record| record.id.next());
        found.extend(records);
        match last {
            Some(next) if !end => from = next,
            _ => return Ok(found),
        }
    }
}

fn print(records: &[ReadRecord]) -> String {
    let mut out = String::new();
    for ReadRecord { id, meta } in records {
        let _ = writeln!(out, "{id}\t{}", text(meta));
    }
    out
}

/// A line of text; characters that must not reach a terminal, as of envelopes, are escaped.
fn text(meta: &[u8]) -> String {
    match std::str::from_utf8(meta) {
        Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
        _ => meta.escape_ascii().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_printed_as_they_are_and_octets_escaped() {
        let record = |id, meta: &[u8]| ReadRecord {
            id: RecordId(id),
            meta: meta.to_vec(),
        };
        let records = [
            record(7, "{\"to\":\"jürgen\"}".as_bytes()),
            record(9, b"\x01\x1b[2J\xff"),
        ];
        let printed = "7\t{\"to\":\"jürgen\"}\n9\t\\x01\\x1b[2J\\xff\n";
        assert_eq!(print(&records), printed);
    }
}
