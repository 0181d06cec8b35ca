//! `vere spool groups`: lists the groups of queues with their gateways and content.

use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;
use vere_net::tls::MutualTls;
use vere_owner::lease::LeaseRecord;
use vere_owner::{MemberState, Membership};
use vere_process::wording::size;
use vere_settings::Settings;
use vere_spoolwire::NodeStat;

use super::nodes::key;
use vere_link::Credentials;
use vere_link::reader::Reader;
use vere_process::encryption;
use vere_process::failure::Failure;
use vere_process::json::to_json;

/// List the groups of queues in the register: their nodes, their gateways, and their content.
#[derive(Debug, Args)]
pub(crate) struct GroupsArgs {
    /// Print JSON: a list of objects with `group`, `epoch`, `members`, `lease`, `queues`, `records`, `octets` and,
    /// where the content is unknown, `error`.
    #[arg(long)]
    json: bool,
}

/// A group; the content is left out where no full member answers.
#[derive(Debug, Serialize)]
struct GroupLine {
    group: String,
    /// The epoch, which grows with every takeover.
    #[serde(skip_serializing_if = "Option::is_none")]
    epoch: Option<u64>,
    members: Vec<MemberLine>,
    /// The right to deliver: `held` by its gateway, or `adopted` by another gateway, alive or not; `free`: by no
    /// gateway.
    lease: &'static str,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    holds: Option<Holds>,
    /// The reason why the content of the group is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Serialize)]
struct MemberLine {
    node: String,
    /// Or the member is being rebuilt.
    full: bool,
}

#[derive(Debug, Serialize)]
struct Holds {
    queues: u64,
    records: u64,
    octets: u64,
}

impl From<NodeStat> for Holds {
    fn from(stat: NodeStat) -> Self {
        Self {
            queues: stat.queues,
            records: stat.records,
            octets: stat.bytes,
        }
    }
}

/// The groups in JSON.
pub(super) fn in_json(settings: &Settings) -> Result<String, Failure> {
    run(&GroupsArgs { json: true }, settings)
}

pub(super) fn run(args: &GroupsArgs, settings: &Settings) -> Result<String, Failure> {
    let key = key(settings)?;
    let tls = encryption::certificates(settings)?;
    let register = vere_link::register(settings)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let list = |prefix| {
        let listed = runtime.block_on(register.list(prefix));
        listed.map_err(|error| Failure::new(format!("cannot read the register: {error}")))
    };
    let (groups, leases) = (list("group/")?, list("lease/")?);
    let mut lines = Vec::with_capacity(groups.len());
    // A removed group, or a group that never started, has no members.
    let is_void = |record: &[u8]| {
        let record = Membership::decode(record);
        record.is_ok_and(|record| record.members.is_empty())
    };
    for (name, record) in groups.iter().filter(|(_, record)| !is_void(&record.value)) {
        let group = name.strip_prefix("group/").unwrap_or(name);
        let lease = leases.iter().find_map(|(name, lease)| {
            let of = name.strip_prefix("lease/") == Some(group);
            of.then_some(lease.value.as_slice())
        });
        let mut line = line(group, &record.value, lease);
        match look(settings, tls.as_ref(), &key, &line) {
            Ok(holds) => line.holds = Some(holds),
            Err(error) => line.error = Some(error),
        }
        lines.push(line);
    }
    if args.json {
        to_json(&lines)
    } else {
        Ok(table(&lines))
    }
}

/// The register's record of a group.
fn line(group: &str, record: &[u8], lease: Option<&[u8]>) -> GroupLine {
    let record = Membership::decode(record).ok();
    let members = record.iter().flat_map(|record| &record.members);
    GroupLine {
        group: group.to_owned(),
        epoch: record.as_ref().map(|record| record.epoch),
        members: members
            .map(|member| MemberLine {
                node: member.node.clone(),
                full: member.state == MemberState::Full,
            })
            .collect(),
        lease: match lease.map(LeaseRecord::decode) {
            None => "free",
            Some(None) => "unreadable",
            Some(Some(lease)) if lease.holder == 0 => "free",
            Some(Some(lease)) if lease.adopted => "adopted",
            Some(Some(_)) => "held",
        },
        holds: None,
        error: None,
    }
}

/// The group's content at the first full member that answers.
fn look(
    settings: &Settings,
    tls: Option<&MutualTls>,
    key: &Credentials,
    line: &GroupLine,
) -> Result<Holds, String> {
    let mut error = "no full member".to_owned();
    for member in line.members.iter().filter(|member| member.full) {
        let nodes = &settings.spool.nodes;
        let Some(node) = nodes.iter().find(|node| node.name == member.node) else {
            error = format!("no node {} in the settings", member.node);
            continue;
        };
        let asked = Reader::connect(node, tls, key, &line.group);
        match asked.and_then(|mut reader| reader.stat()) {
            Ok(stat) if stat.syncing => error = format!("{}: incomplete", node.name),
            Ok(stat) => return Ok(stat.into()),
            Err(said) => error = format!("{}: {said}", node.name),
        }
    }
    Err(error)
}

fn table(lines: &[GroupLine]) -> String {
    if lines.is_empty() {
        return "no groups\n".to_owned();
    }
    let mut out = format!(
        "{:<24} {:>6} {:<10} {:>7} {:>9} {:>10}  NODES\n",
        "GROUP", "EPOCH", "LEASE", "QUEUES", "RECORDS", "SIZE"
    );
    for line in lines {
        let figures = line.holds.as_ref().map_or_else(
            || format!("{:>7} {:>9} {:>10}", "?", "?", "?"),
            |holds| {
                let size = size(holds.octets);
                format!("{:>7} {:>9} {size:>10}", holds.queues, holds.records)
            },
        );
        let nodes = line.members.iter().map(|member| {
            let state = if member.full { "" } else { " (being rebuilt)" };
            format!("{}{state}", member.node)
        });
        let nodes = nodes.collect::<Vec<_>>().join(", ");
        let error = line.error.as_ref();
        let error = error.map_or_else(String::new, |error| format!("  {error}"));
        let epoch = line.epoch.map_or("?".to_owned(), |epoch| epoch.to_string());
        let _ = writeln!(
            out,
            "{:<24} {epoch:>6} {:<10} {figures}  {nodes}{error}",
            line.group, line.lease
        );
    }
    out
}
