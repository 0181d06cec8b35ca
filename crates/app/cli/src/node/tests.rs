//! Changes of settings files, and what is refused.

use std::os::unix::fs::PermissionsExt as _;

use vere_settings::Settings;

use super::edit::{NewNode, add, remove};
use super::join::Place;
use super::*;
use crate::difference::difference;
use crate::settings_file::SettingsFile;
use vere_enrolment::message::{Account, Membership};
use vere_enrolment::{Candidate, Machine};

const SMALLEST: &str =
    "# kept\nversion = 1\nhostname = \"mx.example.org\" # too\n\n[smtp]\nlisten = []\n";

fn settings(text: &str) -> Settings {
    Settings::parse(text, "/etc/vere/vere.toml").unwrap()
}

fn with(text: &str, name: &str) -> String {
    let node = NewNode {
        name,
        listen: "192.0.2.2:2600".parse().unwrap(),
    };
    add(
        text,
        &settings(text),
        node,
        &Machine::below(Path::new("/d")),
    )
    .unwrap()
}

#[test]
fn a_node_comes_beside_the_default_nodes_and_goes_again() {
    let text = with(SMALLEST, "mail2");
    assert!(text.starts_with(SMALLEST), "{text}");
    let changed = settings(&text);
    let spool = &changed.spool;
    let names: Vec<_> = spool
        .nodes
        .iter()
        .map(|node| (node.name.as_str(), node.remote))
        .collect();
    assert_eq!(names, [("a", false), ("b", false), ("mail2", true)]);
    // Both nodes here could hold a message, and this machine be lost.
    assert_eq!((spool.replicas, spool.replicas_min), (3, 1));
    let defaults = settings(SMALLEST).spool.nodes;
    assert_eq!(&spool.nodes[..2], &defaults[..]);
    let tls = spool.tls.as_ref().unwrap();
    assert_eq!(
        tls.ca_key.as_deref(),
        Some(Path::new("/d/spool-tls/ca.key"))
    );
    assert_eq!(tls.files.key, Path::new("/d/spool-tls/machine.key"));

    let twice = settings(&{
        let node = NewNode {
            name: "mail3",
            listen: "192.0.2.3:2600".parse().unwrap(),
        };
        add(&text, &changed, node, &Machine::below(Path::new("/other"))).unwrap()
    });
    assert_eq!((twice.spool.nodes.len(), twice.spool.replicas), (4, 3));
    assert_eq!(twice.spool.tls, changed.spool.tls);

    let less = remove(&text, "mail2").unwrap();
    assert!(less.starts_with(SMALLEST), "{less}");
    let less = settings(&less);
    assert_eq!((less.spool.nodes, less.spool.replicas), (defaults, 2));
    remove(&text, "mail3").unwrap_err();
    remove(SMALLEST, "a").unwrap_err();
}

#[test]
fn sections_that_are_there_keep_their_keys_and_comments() {
    let text = format!(
        "{SMALLEST}[[spool.node]]\nname = \"one\" # first\nlisten = \"127.0.0.1:2600\"\n[spool]\nmemory_max = \"64 MiB\"\n\
         [spool.tls]\ncertificate = \"c\"\nkey = \"k\"\nca = \"r\"\nca_key = \"s\"\n"
    );
    let changed = with(&text, "two");
    assert!(changed.contains("name = \"one\" # first"), "{changed}");
    assert!(changed.contains("ca_key = \"s\"\n"), "{changed}");
    let spool = settings(&changed).spool;
    assert_eq!((spool.nodes.len(), spool.replicas), (2, 2));
    let inline =
        format!("{SMALLEST}[spool]\nnode = [{{ name = \"one\", listen = \"127.0.0.1:2600\" }}]\n");
    let node = NewNode {
        name: "two",
        listen: "192.0.2.2:2600".parse().unwrap(),
    };
    let machine = Machine::below(Path::new("/d"));
    let refused = add(&inline, &settings(SMALLEST), node, &machine).unwrap_err();
    assert!(refused.to_string().contains("by hand"), "{refused}");
}

#[test]
fn the_difference_has_the_changed_lines() {
    assert_eq!(difference("a\nb\n", "a\nb\n"), "");
    let text = difference("a\nb\nc\nd\n", "a\nB\nc\nd\ne\n");
    assert_eq!(text, "  a\n- b\n+ B\n  c\n  d\n+ e\n");
    assert_eq!(difference("", "a\n"), "+ a\n");
    let shown = difference(SMALLEST, &with(SMALLEST, "mail2"));
    assert!(
        shown.contains("+ replicas = 3\n") && !shown.contains("- "),
        "{shown}"
    );
}

#[test]
fn addresses_have_ports_or_get_them() {
    let text = |given| address(given, 2600).map(|address| address.to_string());
    assert_eq!(text("192.0.2.2").unwrap(), "192.0.2.2:2600");
    assert_eq!(text("192.0.2.2:9").unwrap(), "192.0.2.2:9");
    assert_eq!(text("2001:db8::2").unwrap(), "[2001:db8::2]:2600");
    assert_eq!(text("[2001:db8::2]").unwrap(), "[2001:db8::2]:2600");
    assert_eq!(text("[2001:db8::2]:9").unwrap(), "[2001:db8::2]:9");
    let error = text("mail2").unwrap_err().to_string();
    assert!(error.contains("192.0.2.2"), "{error}");
}

#[test]
fn a_settings_file_keeps_its_permissions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vere.toml");
    fs::write(&path, SMALLEST).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let link = folder.path().join("link.toml");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let file = SettingsFile::read(&link).unwrap();
    file.write("other").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "other");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o640
    );
}

fn membership() -> Membership {
    Membership {
        node: "mail2".to_owned(),
        listen: "192.0.2.2:2600".parse().unwrap(),
        gateway: "gateway".to_owned(),
        certificate: "c".to_owned(),
        ca: "a".to_owned(),
        key: "0a".repeat(32),
        durability: "replicated".to_owned(),
        queues_max: 16,
        groups_max: 4,
        accounts: vec![Account {
            name: "we\"st".to_owned(),
            makes_groups: false,
            key: "0b".repeat(32),
        }],
    }
}

#[test]
fn a_joining_machine_gets_the_settings_of_a_node() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(Some(&folder.path().join("vere"))).unwrap();
    place.refuse_existing().unwrap();
    let text = place.settings(&membership(), None).unwrap();
    let made = Settings::parse(&text, "/f").unwrap();
    assert_eq!(made.hostname.to_string(), "mail2.spool.invalid");
    let spool = &made.spool;
    assert_eq!((spool.nodes.len(), spool.nodes[0].remote), (1, false));
    assert_eq!((spool.queues_max, spool.groups_max), (16, 4));
    assert_eq!(spool.tls.as_ref().unwrap().ca_key, None);
    assert_eq!(
        (
            spool.accounts[0].name.as_str(),
            spool.accounts[0].makes_groups
        ),
        ("we\"st", false)
    );
    let candidate = Candidate::new().unwrap();
    place.write(&membership(), &candidate, &text).unwrap();
    // Killed before the end: the same command may go on. Afterwards a machine with settings is left alone.
    place.refuse_existing().unwrap();
    place.write(&membership(), &candidate, &text).unwrap();
    place.finish().unwrap();
    let refused = place.refuse_existing().unwrap_err().to_string();
    assert!(refused.contains("--force"), "{refused}");
    let secret = |path: &Path| fs::read_to_string(path).unwrap();
    assert_eq!(secret(&spool.accounts[0].secret).trim(), "0b".repeat(32));
    assert_eq!(secret(&spool.secret).trim(), "0a".repeat(32));
    let mode = fs::metadata(&spool.secret).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
