//! `vere node list`.

use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;
use vere_control::ReplicaLine;
use vere_enrolment::renewal::look;
use vere_net::tls::{Leaf, MutualTls};
use vere_process::encryption::{Encryption, certificates};
use vere_process::failure::Failure;
use vere_settings::{Settings, SpoolNode};
use vere_units::Timestamp;

use crate::spool::nodes::replicas;
use vere_process::json::to_json;
use vere_process::wording::counted;

const DAY_MILLIS: u64 = 24 * 3600 * 1000;

/// The form of the list.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Print JSON: an array of objects with `node`, `address`, `runs`, `state` (null without a running gateway),
    /// `certificate_end` (null without a certificate) and `error`.
    #[arg(long)]
    json: bool,
}

/// A node.
#[derive(Debug, Serialize)]
struct Row {
    node: String,
    address: String,
    runs: &'static str,
    /// As `vere spool stat` prints.
    state: Option<String>,
    certificate_end: Option<String>,
    #[serde(skip)]
    days: Option<u64>,
    error: Option<String>,
}

/// Runs the command and returns the text to print.
///
/// # Errors
/// When the certificates of this machine cannot be used.
pub(super) fn run(args: &ListArgs, settings: &Settings) -> Result<String, Failure> {
    let tls = certificates(settings)?;
    let states = replicas(&settings.control.socket).unwrap_or_default();
    let rows: Vec<Row> = settings
        .spool
        .nodes
        .iter()
        .map(|node| row(node, tls.as_ref(), &states))
        .collect();
    if args.json {
        return to_json(&rows);
    }
    Ok(table(&rows))
}

fn row(node: &SpoolNode, tls: Option<&MutualTls>, states: &[ReplicaLine]) -> Row {
    let encryption = Encryption::of(tls, node);
    let tls = encryption
        .as_ref()
        .and_then(|wanted| wanted.covers(node.listen));
    let leaf = tls.map(|tls| look(tls, node).map_err(|error| Failure::from(error).to_string()));
    let end = leaf.as_ref().and_then(|leaf| leaf.as_ref().ok()).map(end);
    let state = states.iter().find(|state| state.node == node.name);
    let trouble = state.and_then(|state| state.trouble.clone());
    Row {
        node: node.name.clone(),
        address: node.listen.to_string(),
        runs: if node.remote { "elsewhere" } else { "here" },
        state: state.map(|state| state.sync.clone()),
        certificate_end: end.map(|end| end.to_string()),
        days: end.map(|end| end.as_millis().saturating_sub(now().as_millis()) / DAY_MILLIS),
        error: leaf.and_then(Result::err).or(trouble),
    }
}

fn end(leaf: &Leaf) -> Timestamp {
    leaf.validity.not_after
}

fn now() -> Timestamp {
    vere_process::clock::now()
}

fn table(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<12} {:<24} {:<10} {:<12} {:<12} TROUBLE\n",
        "NODE", "ADDRESS", "RUNS", "STATE", "CERTIFICATE"
    );
    for row in rows {
        let days = row.days.map(|days| counted(days, "day", "days"));
        let _ = writeln!(
            text,
            "{:<12} {:<24} {:<10} {:<12} {:<12} {}",
            row.node,
            row.address,
            row.runs,
            row.state.as_deref().unwrap_or("unknown"),
            days.as_deref().unwrap_or("-"),
            row.error.as_deref().unwrap_or("-")
        );
    }
    text
}
