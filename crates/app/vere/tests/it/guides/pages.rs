//! What is run of each page, and the reasons for the rest.

use std::collections::BTreeSet;

use super::folder;
use crate::pages::steps;

/// Pages whose commands are run.
const RUN: [&str; 20] = [
    "vps",
    "dns",
    "tls",
    "smarthost",
    "accounts",
    "backup",
    "undelete",
    "monitor",
    "queues",
    "troubleshooting",
    "transfer",
    "disk",
    "migrate",
    "block-lists",
    "judgement",
    "quarantine",
    "reports",
    "settings",
    "dkim",
    "web",
];
/// Pages of which no command is run, each with the reason. A unit test of `vere-cli` parses their commands.
const NOT_RUN: [(&str, &str); 16] = [
    ("clients", "programs with windows"),
    ("doctor", "its findings are those of the machine; doctor.rs"),
    ("failures", "no command"),
    ("files", "no command"),
    ("filters", "rspamd; filters.rs"),
    ("front", "no command"),
    ("gateways", "two machines; gateways.rs"),
    (
        "install",
        "a machine of its own; scripts of make packages-test",
    ),
    (
        "machines",
        "two machines; second_machine.rs, spool_tls.rs, spool_access.rs",
    ),
    ("outgoing", "other servers; next_hops.rs, couriers.rs"),
    ("records", "no command"),
    ("relay-domains", "another server; front_call_ahead.rs"),
    ("sending", "no command"),
    ("upgrade", "packages; scripts of make packages-test"),
    ("volume", "accounts of providers; mounts.rs, tutorial.rs"),
    ("x400", "other MTAs; x400.rs, tutorial.rs"),
];
/// Parts of commands that no test of a page runs, for every page.
const NOWHERE: [(&str, &str); 6] = [
    ("systemctl", "systemd; scripts of make packages-test"),
    ("journalctl", "systemd"),
    ("apt install", "packages; scripts of make packages-test"),
    ("vere queue top", "a screen; top.rs"),
    ("vere doctor", "findings of the machine; doctor.rs"),
    ("s3://", "a server of objects"),
];
/// Beginnings of commands that are not run, each with its page and the reason.
const LEFT_OUT: [(&str, &str, &str); 10] = [
    (
        "disk",
        "sudo install",
        "the user vere; scripts of make packages-test",
    ),
    (
        "smarthost",
        "sudo install",
        "the user vere; scripts of make packages-test",
    ),
    ("tls", "tsig-keygen", "a program of BIND"),
    ("tls", "curl -fsS", "a line of the reader's program"),
    (
        "transfer",
        "vere import -a bob@example.org --password-file",
        "another server; transfer_remote.rs",
    ),
    (
        "troubleshooting",
        "vere dns check",
        "the DNS of the internet; dns_check.rs",
    ),
    (
        "troubleshooting",
        "vere explain",
        "messages of strangers; judging.rs, tutorial.rs",
    ),
    (
        "troubleshooting",
        "vere support-bundle",
        "facts of the machine; doctor.rs",
    ),
    (
        "vps",
        "vere dns check",
        "the DNS of the internet; dns_check.rs",
    ),
    (
        "dns",
        "vere dns check",
        "the DNS of the internet; dns_check.rs",
    ),
];

/// The text of a page.
pub(super) fn text(page: &str) -> String {
    let file = folder().join(page).with_extension("md");
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Whether a command of a page is not run.
pub(super) fn is_left_out(page: &str, command: &str) -> bool {
    let nowhere = NOWHERE.iter().any(|(part, _)| command.contains(part));
    let here = |(name, begin, _): &(&str, &str, &str)| *name == page && command.starts_with(begin);
    nowhere || LEFT_OUT.iter().any(here)
}

#[test]
fn every_guide_is_run_or_named() {
    let entries = std::fs::read_dir(folder()).expect("the guides");
    let names = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        name.strip_suffix(".md").map(str::to_owned)
    });
    let found: BTreeSet<String> = names.collect();
    let not_run = NOT_RUN.iter().map(|(page, _)| *page);
    let known: BTreeSet<String> = RUN.into_iter().chain(not_run).map(str::to_owned).collect();
    assert_eq!(found, known);
}

#[test]
fn what_is_left_out_is_there() {
    for (page, begin, _) in LEFT_OUT {
        let mut steps = steps(&text(page)).into_iter();
        let is_there = steps.any(|step| step.command.starts_with(begin));
        assert!(is_there, "{page} has no command {begin}");
    }
}

#[test]
fn pages_without_commands_have_none() {
    for (page, _) in NOT_RUN.iter().filter(|(_, reason)| *reason == "no command") {
        assert_eq!(steps(&text(page)), [], "{page}");
    }
}
