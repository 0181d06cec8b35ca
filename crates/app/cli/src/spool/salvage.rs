//! `vere spool salvage`: for operators, when no full replica of a group remains (rule R5).
//!
//! Without `--take`, the command only inspects the nodes. With `--take`, it registers the given node, in its present
//! incarnation, as the only full member of the group. The gateway continues from the content of that node and
//! rebuilds the other replicas. Records that only other nodes had are lost then, so the operator must ask for the
//! change.

use std::fmt::Write as _;
use std::net::SocketAddr;

use clap::Args;
use vere_cluster::{Swap, Versioned};
use vere_net::tls::MutualTls;
use vere_owner::{MemberState, Membership};
use vere_settings::{Settings, SpoolNode};
use vere_spoolwire::{Incarnation, NodeStat, Txn};

use super::nodes::key;
use vere_link::Credentials;
use vere_link::reader::{Reader, make_whole};
use vere_process::encryption;
use vere_process::failure::Failure;
use vere_process::wording::counted;

/// Choose the authoritative node after the loss of the membership register or of all full replicas.
#[derive(Debug, Args)]
pub(crate) struct SalvageArgs {
    /// Continue with the content of this node. Without the option, nothing is changed.
    #[arg(long, value_name = "NODE")]
    take: Option<String>,
    /// The gateway of the queues; by default, this machine's gateway.
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
}

pub(super) fn run(args: &SalvageArgs, settings: &Settings) -> Result<String, Failure> {
    let key = key(settings)?;
    let register = vere_link::register(settings)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let group = args.group.as_deref().unwrap_or(&settings.gateway.name);
    let name = format!("group/{group}");
    let read = runtime.block_on(register.read(&name));
    let now = match read {
        Ok(now) => now,
        Err(error) => return Err(Failure::new(format!("cannot read the register: {error}"))),
    };
    let record = now
        .as_ref()
        .and_then(|now| Membership::decode(&now.value).ok());
    let mut out = String::new();
    describe(&mut out, now.as_ref(), record.as_ref());
    let tls = encryption::certificates(settings)?;
    let taken = look(
        &mut out,
        settings,
        tls.as_ref(),
        (&key, group),
        args.take.as_deref(),
    );
    if args.take.is_some() && group == settings.gateway.name && in_use(settings) {
        return Err(Failure::new(format!(
            "{out}a gateway runs and holds the group on a full node; nothing was changed"
        )));
    }
    let Some(take) = &args.take else {
        out.push_str("nothing was changed; --take NODE goes on with what that node holds\n");
        return Ok(out);
    };
    let Some(taken) = taken else {
        return Err(Failure::new(format!(
            "{out}node {take} does not hold the group or does not answer; nothing was changed"
        )));
    };
    let epoch = record.map_or(taken.stat.epoch, |record| {
        record.epoch.max(taken.stat.epoch)
    });
    let epoch = epoch.saturating_add(1);
    let record = Membership::new(epoch, 0).with(take, taken.incarnation, MemberState::Full);
    let expected = now.map(|now| now.version);
    match runtime.block_on(register.swap(&name, expected, &record.encode())) {
        Ok(Swap::Done(_)) => {
            // Only now: while the register does not name the group, another gateway could take over a completed
            // group, though the group is empty.
            if taken.stat.syncing {
                let made = taken.make_whole(tls.as_ref(), (&key, group), epoch);
                made.map_err(|error| {
                    Failure::new(format!(
                        "{out}{error}; the register names node {take}, whose group is not whole yet: \
                         do the same again"
                    ))
                })?;
            }
            let _ = writeln!(
                out,
                "the group is what node {take} holds; start or restart the gateway now"
            );
            Ok(out)
        }
        Ok(Swap::Conflict(_)) => Err(Failure::new(
            "the register was changed meanwhile, by a gateway that runs; nothing was changed here",
        )),
        Err(error) => Err(Failure::new(format!("cannot write the register: {error}"))),
    }
}

/// Figures of the chosen node.
struct Taken<'a> {
    node: &'a SpoolNode,
    address: SocketAddr,
    incarnation: Incarnation,
    processed: Txn,
    stat: NodeStat,
}

impl Taken<'_> {
    /// An incomplete group counts only when empty: the node created the group, and waits to be filled.
    fn make_whole(
        &self,
        tls: Option<&MutualTls>,
        whose: (&Credentials, &str),
        epoch: u64,
    ) -> Result<(), String> {
        let name = &self.node.name;
        if self.processed > Txn(0) {
            return Err(format!("node {name} was being rebuilt and is incomplete"));
        }
        make_whole(self.address, self.node, tls, whose, epoch)
            .map_err(|error| format!("node {name} does not begin anew: {error}"))
    }
}

/// Writes the content of each node; returns the content of the node named `take`.
fn look<'a>(
    out: &mut String,
    settings: &'a Settings,
    tls: Option<&MutualTls>,
    (key, group): (&Credentials, &str),
    take: Option<&str>,
) -> Option<Taken<'a>> {
    let mut taken = None;
    for node in &settings.spool.nodes {
        let asked = Reader::connect(node, tls, key, group)
            .and_then(|mut reader| reader.stat().map(|stat| (reader, stat)));
        let line = match asked {
            Err(error) => error.to_string(),
            Ok((reader, stat)) => {
                let incarnation = reader.greeting.incarnation;
                if take == Some(&node.name) {
                    taken = Some(Taken {
                        node,
                        address: reader.address,
                        incarnation,
                        processed: reader.welcome.processed,
                        stat,
                    });
                }
                format!(
                    "life {incarnation}, {} up to transaction {}{}",
                    counted(stat.records, "record", "records"),
                    reader.welcome.processed,
                    if stat.syncing { ", incomplete" } else { "" },
                )
            }
        };
        let _ = writeln!(out, "node {}: {line}", node.name);
    }
    taken
}

/// Whether a gateway has all it needs: then nothing needs a salvage.
fn in_use(settings: &Settings) -> bool {
    let rows = super::replicas(&settings.control.socket).unwrap_or_default();
    rows.iter()
        .any(|row| row.active == "run" && row.sync == "sync")
}

fn describe(out: &mut String, now: Option<&Versioned>, record: Option<&Membership>) {
    let Some(record) = record else {
        let text = if now.is_some() {
            "the register holds something that is not a membership record\n"
        } else {
            "the register knows no such group\n"
        };
        out.push_str(text);
        return;
    };
    let _ = writeln!(out, "register: epoch {}", record.epoch);
    for member in &record.members {
        let state = match member.state {
            MemberState::Full => "full",
            MemberState::Syncing => "being rebuilt",
        };
        let _ = writeln!(
            out,
            "register: node {} of life {} is {state}",
            member.node, member.incarnation
        );
    }
}
