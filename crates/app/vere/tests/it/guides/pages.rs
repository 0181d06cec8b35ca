//! What is run of each page, and the reasons for the rest.

use std::collections::BTreeSet;

use super::folder;
use crate::pages::steps;

/// Pages whose commands are run.
const RUN: [&str; 25] = [
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
    "machines",
    "gateways",
    "volume",
    "doctor",
    "filters",
];
/// Pages of which no command is run, each with the reason. A unit test of `vere-cli` parses their commands.
const NOT_RUN: [(&str, &str); 11] = [
    ("clients", "no command"),
    ("failures", "no command"),
    ("files", "no command"),
    ("front", "no command"),
    (
        "install",
        "a machine of its own; scripts of make packages-test",
    ),
    ("outgoing", "no command"),
    ("records", "no command"),
    ("relay-domains", "no command"),
    ("sending", "no command"),
    ("upgrade", "no command"),
    ("x400", "no command"),
];
/// Parts of commands that no test of a page runs, for every page.
const NOWHERE: [(&str, &str); 5] = [
    ("systemctl", "systemd; scripts of make packages-test"),
    ("journalctl", "systemd"),
    ("apt install", "packages; scripts of make packages-test"),
    ("vere queue top", "a screen; top.rs"),
    ("s3://", "a server of objects"),
];
/// Beginnings of commands that are not run, each with its page and the reason.
const LEFT_OUT: [(&str, &str, &str); 13] = [
    ("settings", "vere doctor", "typed on its own page"),
    ("troubleshooting", "vere doctor", "typed on its own page"),
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
        "typed on the page of the doctor",
    ),
    (
        "volume",
        "vere fs check home --bring-in",
        "changes of a lost machine; mounts_gap.rs",
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
