//! Local addresses, which need no connection.

use std::net::IpAddr;

use vere_directory::{self as directory, Directory, Resolution};
use vere_smtp::address::AddrSpec;

use super::verdict::Verdict;

/// A domain, or the literal of an IP address, with or without its brackets.
pub(super) fn domain_of(target: &str) -> String {
    match target.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => format!("[{address}]"),
        Ok(IpAddr::V6(address)) => format!("[IPv6:{address}]"),
        Err(_) => target.to_owned(),
    }
}

/// Returns the local system's verdict on a recipient in a local domain, without asking a host; `None` for remote
/// domains.
pub(super) fn answer(
    directory: Option<&Directory>,
    recipient: &AddrSpec,
) -> Option<(Verdict, String)> {
    let resolved = match directory?.resolve(recipient) {
        Ok(Resolution::NotLocal) => return None,
        Ok(resolved) => resolved,
        Err(error) => return Some((Verdict::Deferred, error.to_string())),
    };
    if let Some(refusal) = resolved.refusal() {
        let text = format!("{recipient} is of this system: {refusal}");
        return Some((Verdict::Refused, text));
    }
    let text = match resolved {
        Resolution::Forward(targets) => {
            let targets: Vec<_> = targets.iter().map(target_text).collect();
            format!(
                "{recipient} is an alias of this system for {}",
                targets.join(", ")
            )
        }
        _ => format!("{recipient} is an address of this system"),
    };
    Some((Verdict::Taken, text))
}

fn target_text(target: &directory::Target) -> String {
    match target {
        directory::Target::Local { account, .. } => account.to_string(),
        directory::Target::Remote(address) => address.to_string(),
    }
}
