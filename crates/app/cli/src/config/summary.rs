//! The summary of a valid file, in a few lines.

use std::fmt::Write as _;

use vere_process::wording::{counted, messages};
use vere_settings::{LocalDelivery, OverQuota, Settings};
use vere_supervisor::roles::memory_bounds;

/// Builds the summary.
pub(super) fn of(settings: &Settings) -> String {
    let mut text = format!("host name   {}\n", settings.hostname);
    let services = [
        ("smtp", &settings.smtp),
        ("submission", &settings.submission),
        ("submissions", &settings.submissions),
        ("imap", &settings.imap),
        ("imaps", &settings.imaps),
        ("lmtp", &settings.lmtp),
    ];
    for (name, service) in services {
        let list = listed(&service.listen);
        let list = if list.is_empty() {
            "off".to_owned()
        } else {
            list
        };
        let _ = writeln!(text, "{name:<12}{list}");
    }
    let tls = match (&settings.tls.default, &settings.acme) {
        (Some(_), _) => "certificate from a file",
        (None, Some(_)) => "certificate by ACME",
        (None, None) => "none",
    };
    let local = match &settings.delivery.local {
        LocalDelivery::Maildir => "Maildir",
        LocalDelivery::Store => "mail store",
    };
    let networks = listed(&settings.relay.networks);
    let relay = if networks.is_empty() {
        "own users only"
    } else {
        &networks
    };
    let nodes = settings.spool.nodes.iter();
    let nodes: Vec<String> = nodes
        .map(|node| format!("{} {}", node.name, node.listen))
        .collect();
    let dkim = if settings.dkim.is_some() {
        "signs"
    } else {
        "off"
    };
    let rows = [
        ("tls", tls.to_owned()),
        ("relay for", relay.to_owned()),
        ("routes", settings.routes.len().to_string()),
        ("own mail", local.to_owned()),
        ("quota", quota(settings)),
        ("dkim", dkim.to_owned()),
        ("nodes", nodes.join(", ")),
        ("data", settings.data.display().to_string()),
    ];
    for (name, value) in rows {
        let _ = writeln!(text, "{name:<12}{value}");
    }
    text + &super::memory::roles(&memory_bounds(settings))
}

fn listed<T: ToString>(values: &[T]) -> String {
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    values.join(" ")
}

fn quota(settings: &Settings) -> String {
    let quota = &settings.quota;
    let size = quota.default.size.map(|size| size.to_string());
    let messages = quota.default.messages.map(messages);
    let bounds: Vec<String> = size.into_iter().chain(messages).collect();
    let mut text = bounds.join(", ");
    if !quota.accounts.is_empty() {
        let accounts = quota.accounts.len();
        text += ", ";
        text += &counted(accounts, "account of its own", "accounts of their own");
    }
    let over = match quota.over {
        OverQuota::Defer => "waits",
        OverQuota::Reject => "is returned",
    };
    text + "; mail beyond it " + over
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_its_row() {
        let text = "version = 1\nhostname = \"a.b\"\n[imaps]\nlisten = [\"127.0.0.1:993\"]\n\
                    [tls]\ncertificate = \"c\"\nkey = \"k\"\n[dkim]\n[quota]\nsize_max = \"2 GiB\"\n\
                    [[route]]\ndomain = \"*\"\nnext_hop = \"c.d\"\n";
        let said = of(&Settings::parse(text, "/etc/vere.toml").unwrap());
        for row in [
            "imaps       127.0.0.1:993\n",
            "imap        off\n",
            "lmtp        127.0.0.1:24\n",
            "routes      1\n",
            "own mail    mail store\n",
            "quota       2 GiB, 1000000 messages; mail beyond it waits\n",
            "dkim        signs\n",
        ] {
            assert!(said.contains(row), "{row} in:\n{said}");
        }
        assert!(said.lines().any(|line| line.starts_with("nodes       ")));
    }
}
