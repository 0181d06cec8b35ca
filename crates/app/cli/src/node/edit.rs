//! Changes of the settings file that keep comments and order.

use std::net::SocketAddr;
use std::path::Path;

use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, value};
use vere_enrolment::Machine;
use vere_process::failure::Failure;
use vere_settings::Settings;

/// The node to add.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewNode<'a> {
    pub(super) name: &'a str,
    pub(super) listen: SocketAddr,
}

/// Adds a node on another machine, the certificates where missing, and enough replicas that each message is on another
/// machine too.
///
/// # Errors
/// The file is written in a way that this function does not know.
pub(super) fn add(
    text: &str,
    settings: &Settings,
    node: NewNode<'_>,
    machine: &Machine,
) -> Result<String, Failure> {
    let mut document = parse(text)?;
    let spool = spool(&mut document)?;
    let here = settings
        .spool
        .nodes
        .iter()
        .filter(|node| !node.remote)
        .count();
    let wanted = i64::try_from(here + 1).unwrap_or(i64::MAX);
    if i64::from(settings.spool.replicas) < wanted {
        spool.insert("replicas", value(wanted));
    }
    if !spool.contains_key("tls") {
        spool.insert("tls", Item::Table(certificates(machine)?));
    }
    let nodes = spool.entry("node").or_insert_with(|| {
        // The default nodes are there only as long as the file has no section.
        let mut nodes = ArrayOfTables::new();
        for node in &settings.spool.nodes {
            nodes.push(section(&node.name, node.listen));
        }
        Item::ArrayOfTables(nodes)
    });
    let nodes = nodes.as_array_of_tables_mut().ok_or_else(unknown_form)?;
    let mut added = section(node.name, node.listen);
    added.insert("runs", value("elsewhere"));
    nodes.push(added);
    Ok(document.to_string())
}

/// Removes a node, and lowers the number of replicas to the nodes that are left.
///
/// # Errors
/// The file has no such node in a section, or is written in a way that this function does not know.
pub(super) fn remove(text: &str, name: &str) -> Result<String, Failure> {
    let mut document = parse(text)?;
    let spool = spool(&mut document)?;
    let nodes = spool.get_mut("node").and_then(Item::as_array_of_tables_mut);
    let nodes = nodes.ok_or_else(unknown_form)?;
    let place = nodes
        .iter()
        .position(|node| node.get("name").and_then(Item::as_str) == Some(name))
        .ok_or_else(|| Failure::new(format!("the settings have no node {name}")))?;
    nodes.remove(place);
    let left = i64::try_from(nodes.len()).unwrap_or(i64::MAX);
    for key in ["replicas", "replicas_min"] {
        let number = spool.get(key).and_then(Item::as_integer);
        if number.is_some_and(|number| number > left) {
            spool.insert(key, value(left));
        }
    }
    Ok(document.to_string())
}

fn parse(text: &str) -> Result<DocumentMut, Failure> {
    Ok(text.parse::<DocumentMut>()?)
}

fn spool(document: &mut DocumentMut) -> Result<&mut Table, Failure> {
    let implicit = || {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    };
    let spool = document.entry("spool").or_insert_with(implicit);
    spool.as_table_mut().ok_or_else(unknown_form)
}

fn section(name: &str, listen: SocketAddr) -> Table {
    let mut table = Table::new();
    table.insert("name", value(name));
    table.insert("listen", value(listen.to_string()));
    table
}

fn certificates(machine: &Machine) -> Result<Table, Failure> {
    let mut table = Table::new();
    for (key, path) in [
        ("certificate", &machine.certificate),
        ("key", &machine.key),
        ("ca", &machine.ca),
        ("ca_key", &machine.ca_key),
    ] {
        table.insert(key, value(text_of(path)?));
    }
    Ok(table)
}

fn text_of(path: &Path) -> Result<&str, Failure> {
    let text = path.to_str();
    text.ok_or_else(|| Failure::new(format!("{} is not a name in UTF-8", path.display())))
}

fn unknown_form() -> Failure {
    Failure::new(
        "expected [spool], [spool.tls] and [[spool.node]] as sections of the settings file; found another form: edit the \
         file by hand (docs/guides/machines.md)",
    )
}
