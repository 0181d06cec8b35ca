//! The essentials for a new user, in one screen.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;

use vere_settings::Settings;

use super::files::{DOMAIN, PASSWORD, USERS, sink_folder};

/// Writes the banner below a first line.
pub(super) fn text(
    head: &str,
    config: &Path,
    settings: &Settings,
    sink: Option<SocketAddr>,
) -> String {
    let folder = shown(config.parent().unwrap_or(config));
    let smtp = first(&settings.smtp.listen);
    let mut text = format!("\n{head} A first message (swaks is in every distribution):\n\n");
    let line = |text: &mut String, name: &str, value: &str| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {name:<12} {value}");
    };
    let _ = writeln!(
        text,
        "  swaks --server {smtp} --from you@elsewhere.test --to {}@{DOMAIN} --header 'Subject: hello'\n",
        USERS[0]
    );
    for (name, value) in services(settings) {
        line(&mut text, name, &value);
    }
    if let Some(metrics) = settings.metrics.listen {
        line(&mut text, "metrics", &format!("http://{metrics}/metrics"));
    }
    line(&mut text, "spool nodes", &nodes(settings));
    let accounts: Vec<String> = USERS
        .iter()
        .map(|user| format!("{user}@{DOMAIN}"))
        .collect();
    line(
        &mut text,
        "accounts",
        &format!("{}, password `{PASSWORD}`", accounts.join(" and ")),
    );
    let imap = first(&settings.imap.listen);
    line(
        &mut text,
        "their mail",
        &format!(
            "curl -u {}@{DOMAIN}:{PASSWORD} 'imap://{imap}/INBOX;MAILINDEX=1'",
            USERS[0]
        ),
    );
    if let Some(sink) = sink {
        let kept = sink_folder(Path::new(&folder));
        line(
            &mut text,
            "sink",
            &format!(
                "{sink}; mail for any other domain ends in {}/",
                kept.display()
            ),
        );
    }
    line(&mut text, "CA", &format!("{folder}/ca.pem"));
    if let Some(web) = &settings.web {
        let https = first(&web.https);
        line(
            &mut text,
            "web",
            &format!(
                "curl --cacert {folder}/ca.pem --connect-to ::{https} https://mta-sts.{DOMAIN}/.well-known/mta-sts.txt"
            ),
        );
    }
    line(&mut text, "settings", &shown(config));
    text.push_str("\nThe way of a message (the id is in the 250 reply):  ./vere trace ID\n");
    text.push_str("Waiting messages:  ./vere queue list     Both replicas:  ./vere spool stat\n");
    text.push_str("The whole system:  ./vere status         Changed settings:  ./vere reload\n");
    text.push_str("Ctrl-C stops; the data stays.\n\n");
    text
}

/// The first address of a service's listeners.
fn first(addresses: &[SocketAddr]) -> String {
    addresses
        .first()
        .map_or_else(|| "-".to_owned(), ToString::to_string)
}

/// The services and the addresses of their listeners.
fn services(settings: &Settings) -> [(&'static str, String); 8] {
    let with = |addresses: &[SocketAddr], how: &str| format!("{} ({how})", first(addresses));
    [
        ("SMTP", first(&settings.smtp.listen)),
        (
            "submission",
            with(&settings.submission.listen, "STARTTLS, AUTH"),
        ),
        ("SMTPS", with(&settings.submissions.listen, "TLS, AUTH")),
        ("IMAP", with(&settings.imap.listen, "STARTTLS")),
        ("IMAPS", with(&settings.imaps.listen, "TLS")),
        ("LMTP", first(&settings.lmtp.listen)),
        (
            "DNSBL",
            settings.dnsbl.as_ref().map_or_else(
                || "-".to_owned(),
                |dnsbl| with(&dnsbl.listen, "UDP and TCP, bl.demo.test"),
            ),
        ),
        (
            "X.400",
            settings
                .x400
                .as_ref()
                .map_or_else(|| "-".to_owned(), |x400| with(&x400.listen, "P1, RFC 1006")),
        ),
    ]
}

/// The spool nodes and the addresses of their listeners.
fn nodes(settings: &Settings) -> String {
    let nodes: Vec<String> = settings
        .spool
        .nodes
        .iter()
        .map(|node| format!("{} on {}", node.name, node.listen))
        .collect();
    format!("{}; each message is on both", nodes.join(", "))
}

/// A path in the shortest usual notation.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let short = here.and_then(|here| path.strip_prefix(here).ok().map(Path::to_owned));
    short.as_deref().unwrap_or(path).display().to_string()
}
