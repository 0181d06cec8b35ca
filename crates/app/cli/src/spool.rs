//! `vere spool`: the nodes that hold the queues.

mod groups;
pub(super) mod nodes;
mod read;
mod remove;
mod salvage;

use std::fmt::Write as _;

use clap::Subcommand;
use serde::Serialize;
use vere_net::tls::MutualTls;
use vere_process::wording::size;
use vere_settings::{Settings, SpoolNode};
use vere_spoolwire::{NodeStat, QueueStat};

use crate::roles::Roles;
use vere_control::ReplicaLine;
use vere_link::Credentials;
use vere_link::reader::Reader;
use vere_process::encryption;
use vere_process::failure::Failure;
use vere_process::log;
use vere_supervisor::roles::node_section;

use nodes::{key, replicas};

/// Manage the nodes that hold the queues.
#[derive(Debug, Subcommand)]
pub(crate) enum SpoolCommand {
    /// Run a single node, as on a machine that only holds queues.
    Serve {
        /// The name of the node in the settings.
        #[arg(long, value_name = "NAME")]
        node: String,
    },
    /// Print the state of every replica, and the content and usage of each node.
    Stat {
        /// Inspect the queues of the gateway of this name; by default, those of this machine's gateway.
        #[arg(long, value_name = "NAME")]
        group: Option<String>,
        /// Print the queues of each node as well.
        #[arg(long)]
        queues: bool,
        /// Print JSON: an object with `replicas` and `nodes`.
        #[arg(long)]
        json: bool,
    },
    Groups(groups::GroupsArgs),
    /// Print the metadata of a queue's records, which are the lines of `@finished` and `@notices`.
    ///
    /// Each line follows its number and a tab. Printed records need not be safe on all nodes yet.
    Read(read::ReadArgs),
    RemoveGroup(remove::RemoveArgs),
    /// Choose the authoritative node after the loss of the membership register or of all full replicas.
    Salvage(salvage::SalvageArgs),
}

/// Facts for `vere support-bundle`.
pub(crate) const FACTS: &[vere_health::bundle::Further] = &[
    (
        "spool.json",
        "vere spool stat: replicas and nodes",
        |settings| stat(settings, None, true, true),
    ),
    (
        "groups.json",
        "vere spool groups: the register",
        groups::in_json,
    ),
];

/// Runs the command and returns the text to print.
///
/// # Errors
/// When the settings are incomplete, or a node or the register does not answer.
pub(crate) fn run(
    command: &SpoolCommand,
    settings: &Settings,
    roles: &Roles,
) -> Result<String, Failure> {
    match command {
        SpoolCommand::Serve { node } => {
            let _log = log::start(settings, &node_section(node))?;
            (roles.node)(settings, node)?;
            Ok(String::new())
        }
        SpoolCommand::Stat {
            group,
            queues,
            json,
        } => stat(settings, group.as_deref(), *queues, *json),
        SpoolCommand::Groups(args) => groups::run(args, settings),
        SpoolCommand::Read(args) => read::run(args, settings),
        SpoolCommand::RemoveGroup(args) => remove::run(args, settings),
        SpoolCommand::Salvage(args) => salvage::run(args, settings),
    }
}

/// The status of a node for the gateway's group.
#[derive(Debug, Serialize)]
struct NodeLine {
    node: String,
    address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    figures: Option<Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queues: Option<Vec<QueueLine>>,
}

#[derive(Debug, Serialize)]
struct Figures {
    incarnation: u64,
    epoch: u64,
    /// Whether the group is incomplete at the node.
    rebuilding: bool,
    processed: u64,
    acknowledged: u64,
    queues_count: u64,
    records: u64,
    octets: u64,
    /// Limit of the octets; absent without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    octets_max: Option<u64>,
    /// Octets on disk for lack of memory.
    spilled_octets: u64,
    memory_used: u64,
    memory_max: u64,
    log_octets: u64,
    /// Whether acknowledgements wait for the disk.
    synced: bool,
    full: bool,
    /// Used share of the node's limit, for all groups.
    fill_percent: u64,
    /// Whether the node's content was found damaged, and is not yet repaired.
    damaged: bool,
}

#[derive(Debug, Serialize)]
struct QueueLine {
    name: String,
    records: u64,
    octets: u64,
    /// Accounts with read access to the queue alone; left out where they are the group's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    readers: Vec<String>,
}

impl From<NodeStat> for Figures {
    fn from(stat: NodeStat) -> Self {
        Self {
            incarnation: stat.incarnation.0,
            epoch: stat.epoch,
            rebuilding: stat.syncing,
            processed: stat.processed.0,
            acknowledged: stat.acknowledged.0,
            queues_count: stat.queues,
            records: stat.records,
            octets: stat.bytes,
            octets_max: (stat.bytes_max < u64::MAX).then_some(stat.bytes_max),
            spilled_octets: stat.spilled,
            memory_used: stat.memory_used,
            memory_max: stat.memory_max,
            log_octets: stat.log_bytes,
            synced: stat.synced,
            full: stat.full,
            fill_percent: stat.fill / 10,
            damaged: stat.damaged,
        }
    }
}

impl From<QueueStat> for QueueLine {
    fn from(queue: QueueStat) -> Self {
        let named = queue.readers.get().iter();
        Self {
            readers: named.map(|(account, _)| account.to_owned()).collect(),
            name: queue.name,
            records: queue.length,
            octets: queue.bytes,
        }
    }
}

fn stat(
    settings: &Settings,
    group: Option<&str>,
    queues: bool,
    json: bool,
) -> Result<String, Failure> {
    let key = key(settings)?;
    let tls = encryption::certificates(settings)?;
    let own = settings.gateway.name.as_str();
    let group = group.unwrap_or(own);
    let replicas = if group == own {
        replicas(&settings.control.socket)
    } else {
        Err(format!("the gateway of this machine is {own}"))
    };
    let nodes: Vec<NodeLine> = settings
        .spool
        .nodes
        .iter()
        .map(|node| node_line(node, tls.as_ref(), (&key, group), queues))
        .collect();
    if json {
        let value = serde_json::json!({
            "replicas": replicas.as_ref().ok(),
            "nodes": nodes,
        });
        return Ok(format!("{value:#}\n"));
    }
    let mut out = String::new();
    match &replicas {
        Ok(rows) => table(&mut out, rows),
        Err(error) => {
            let _ = writeln!(
                out,
                "no gateway to ask for the state of the replicas: {error}"
            );
        }
    }
    out.push('\n');
    figures(&mut out, &nodes);
    Ok(out)
}

fn node_line(
    node: &SpoolNode,
    tls: Option<&MutualTls>,
    (key, group): (&Credentials, &str),
    queues: bool,
) -> NodeLine {
    let asked = Reader::connect(node, tls, key, group).and_then(|mut reader| {
        let stat = reader.stat()?;
        let queues = queues.then(|| reader.queues()).transpose()?;
        Ok((reader.address, stat, queues))
    });
    let mut line = NodeLine {
        node: node.name.clone(),
        address: node.listen.to_string(),
        error: None,
        figures: None,
        queues: None,
    };
    match asked {
        Ok((address, stat, queues)) => {
            line.address = address.to_string();
            line.figures = Some(stat.into());
            line.queues = queues.map(|queues| queues.into_iter().map(Into::into).collect());
        }
        Err(error) => line.error = Some(error.to_string()),
    }
    line
}

/// Table I of the paper (Hitachi 2012).
fn table(out: &mut String, rows: &[ReplicaLine]) {
    let _ = writeln!(out, "Table I: replicas of the group");
    let _ = writeln!(
        out,
        "{:<12} {:<8} {:<8} {:<12} {:>14} {:>10}  TROUBLE",
        "NODE", "ACTIVE", "STANDBY", "SYNC", "TRANSACTIONS", "IN FLIGHT"
    );
    for row in rows {
        let sync = row.copied.map_or_else(
            || row.sync.clone(),
            |copied| format!("{} {copied}", row.sync),
        );
        let _ = writeln!(
            out,
            "{:<12} {:<8} {:<8} {:<12} {:>14} {:>10}  {}",
            row.node,
            row.active,
            row.standby,
            sync,
            row.transactions,
            row.in_flight,
            match (row.alone, row.trouble.as_deref()) {
                (true, _) => "acknowledged mail is in this memory only",
                (false, trouble) => trouble.unwrap_or("-"),
            },
        );
    }
}

fn figures(out: &mut String, nodes: &[NodeLine]) {
    let _ = writeln!(
        out,
        "{:<12} {:<22} {:>7} {:>9} {:>21} {:>21} {:>10} {:>10}  LEVEL",
        "NODE", "ADDRESS", "QUEUES", "RECORDS", "SIZE", "MEMORY", "SPILLED", "LOG"
    );
    for node in nodes {
        let Some(figures) = &node.figures else {
            let error = node.error.as_deref().unwrap_or_default();
            let _ = writeln!(out, "{:<12} {:<22} {error}", node.node, node.address);
            continue;
        };
        let of = |octets, most| format!("{} of {}", size(octets), size(most));
        let octets = figures
            .octets_max
            .map_or_else(|| size(figures.octets), |most| of(figures.octets, most));
        let level = if figures.synced { "synced" } else { "memory" };
        let _ = writeln!(
            out,
            "{:<12} {:<22} {:>7} {:>9} {:>21} {:>21} {:>10} {:>10}  {level}{}{}{}",
            node.node,
            node.address,
            figures.queues_count,
            figures.records,
            octets,
            of(figures.memory_used, figures.memory_max),
            size(figures.spilled_octets),
            size(figures.log_octets),
            if figures.rebuilding {
                ", rebuilding"
            } else {
                ""
            },
            if figures.full { ", full" } else { "" },
            if figures.damaged { ", damaged" } else { "" },
        );
        for queue in node.queues.iter().flatten() {
            let readers = if queue.readers.is_empty() {
                String::new()
            } else {
                format!("  read by {}", queue.readers.join(", "))
            };
            let _ = writeln!(
                out,
                "    {:<39} {:>9} {:>21}{readers}",
                queue.name,
                queue.records,
                size(queue.octets)
            );
        }
    }
}
