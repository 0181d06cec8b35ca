//! `vere node`: further machines with the queues.

mod edit;
mod invite;
mod join;
mod list;
mod remove;
mod renew;

use std::fs;
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use clap::Subcommand;
use vere_enrolment::{Owner, write};
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;

use crate::config_arg::ConfigArg;

/// Let other machines hold the queues: invite and join nodes, renew their certificates, remove nodes.
#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// Invite another machine to hold the queues as well, and wait until the machine has joined.
    ///
    /// Makes a CA for the spool and the certificate of this machine where missing, and prints one line to run on the other
    /// machine. Once the other machine has joined, the node is in the settings file; a restart puts the node in force. Ctrl-C
    /// ends the invitation.
    Invite(invite::InviteArgs),
    /// Make this machine a node, by the token that `vere node invite` printed on the gateway's machine.
    ///
    /// Makes the private key on this machine, and gets certificate, keys and settings from the other one, over TLS. The token
    /// has the fingerprint of the other machine's CA.
    Join(join::JoinArgs),
    /// Print the nodes of the settings, with their state and the rest of their certificates' life.
    List(list::ListArgs),
    /// Renew the certificates of this machine and its nodes now; a running gateway renews them by itself.
    ///
    /// Exit code 1: a certificate was not renewed.
    Renew(renew::RenewArgs),
    /// Remove a node that runs on another machine from the settings.
    ///
    /// Gateways do not connect to the machine any more, and other nodes refuse its certificate.
    Remove(remove::RemoveArgs),
}

/// Runs the command.
///
/// # Errors
/// When settings or files cannot be used, or the other machine cannot be reached or refuses.
pub(crate) fn run(command: &NodeCommand, config: &ConfigArg) -> Result<Outcome, Failure> {
    match command {
        NodeCommand::Invite(args) => invite::run(args, config).map(Outcome::Print),
        NodeCommand::Join(args) => join::run(args).map(Outcome::Print),
        NodeCommand::List(args) => list::run(args, &config.load()?.1).map(Outcome::Print),
        NodeCommand::Renew(args) => renew::run(args, &config.load()?.1),
        NodeCommand::Remove(args) => remove::run(args, config).map(Outcome::Print),
    }
}

/// An address with or without a port.
fn address(text: &str, port: u16) -> Result<SocketAddr, Failure> {
    let with_port = text.parse::<SocketAddr>().ok();
    let bare = || text.trim_matches(['[', ']']).parse::<IpAddr>().ok();
    with_port
        .or_else(|| bare().map(|ip| SocketAddr::new(ip, port)))
        .ok_or_else(|| {
            Failure::new(format!(
                "expected an IP address with or without a port, such as 192.0.2.2 or [2001:db8::2]:{port}; found {text:?}"
            ))
        })
}

/// Prints a text while the command goes on.
fn show(text: &str) {
    let mut out = std::io::stdout().lock();
    // A reader that is gone does not end the work.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// The key file of an account on the nodes; made where missing, for the user of the system.
fn spool_key(path: &Path, owner: Owner) -> Result<String, Failure> {
    if !path.exists() {
        let octets = vere_process::secret::random();
        let key: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
        write(path, &(key + "\n"), 0o600, owner)?;
    }
    vere_process::secret::load_or_make(path)?;
    Ok(fs::read_to_string(path)?.trim().to_owned())
}

#[cfg(test)]
mod tests;
