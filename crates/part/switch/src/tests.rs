//! Settings become an MTA, and faults are named.

use vere_settings::Settings;

use super::*;

const TEXT: &str = r#"
version = 1
hostname = "mta1.example.org"
[x400]
listen = ["127.0.0.1:0"]
domain = "C=GB; A=Carrier; P=Acme"
recipients_max = 100
[[x400.peer]]
name = "atlas"
domain = "C=FR; A=Atlas"
password = "to us"
own_password = "to them"
addresses = ["192.0.2.1"]
selector = "0x4d5441"
associations_max = 3
permanent = 7
[[x400.route]]
address = "A=Atlas; C=FR"
to = "peer:atlas"
[[x400.route]]
address = "O=Board; P=Acme; A=Carrier; C=GB"
to = "file:board"
[[x400.route]]
address = "P=Acme; A=Carrier; C=GB"
to = "unknown"
"#;

fn read(text: &str) -> Result<Option<Switch>, SwitchError> {
    let settings = Settings::parse(text, "vere.toml").expect("settings");
    Switch::of(&settings)
}

fn fault(from: &str, to: &str) -> String {
    assert!(TEXT.contains(from), "{from}");
    let read = read(&TEXT.replacen(from, to, 1));
    read.map(|_| ()).expect_err("a fault").to_string()
}

#[test]
fn settings_become_an_mta() {
    let switch = read(TEXT).expect("a switch").expect("the section");
    let site = &switch.mta.site;
    assert_eq!(site.domain.to_string(), "/PRMD=Acme/ADMD=Carrier/C=GB/");
    assert_eq!(
        (site.mta_name.to_string().as_str(), site.recipients_max),
        ("mta1", 100)
    );
    let terms = switch.mta.peers.get("atlas").expect("the peer");
    let theirs = terms.theirs.as_ref().expect("a name");
    assert_eq!(
        (
            theirs.mta_name.as_str(),
            theirs.password.expose().as_slice()
        ),
        ("atlas", &b"to us"[..])
    );
    let reach = &switch.reach["atlas"];
    assert_eq!((reach.associations_max, reach.permanent), (3, 3));
    let peer = reach.peer(
        "192.0.2.1",
        vec!["192.0.2.1:102".parse().expect("an address")],
    );
    assert_eq!(peer.called.transport.as_deref(), Some(&b"MTA"[..]));
    assert_eq!(peer.expected.expect("an answer").name, "atlas");
    assert!(peer.tls.is_none());
    let board = "S=Smith; O=Board; P=Acme; A=Carrier; C=GB".parse::<vere_x400::OrAddress>();
    let key = board.expect("an address").key().expect("a key");
    let row = switch.mta.routes.find(&key).expect("a row");
    assert_eq!(row.to, Some(Destination::File("board".to_owned())));
}

#[test]
fn without_the_section_there_is_no_mta() {
    assert!(
        read("version = 1\nhostname = \"mta1.example.org\"\n")
            .expect("no fault")
            .is_none()
    );
}

#[test]
fn faults_name_their_place() {
    let cases = [
        (
            "C=GB; A=Carrier; P=Acme",
            "O=Acme; C=GB; A=Carrier",
            "x400.domain: expected a domain such as",
        ),
        (
            "C=FR; A=Atlas",
            "A=Atlas",
            "x400.peer atlas: expected a domain such as",
        ),
        (
            "password = \"to us\"",
            "password_file = \"/nothing\"",
            "x400.peer atlas: cannot read /nothing",
        ),
        (
            "selector = \"0x4d5441\"",
            "selector = \"0x4d544\"",
            "x400.peer atlas: expected a selector",
        ),
        (
            "permanent = 7",
            "accept_content_types = [\"x\"]",
            "expected 2, 22 or an object identifier; found \"x\"",
        ),
        ("to = \"peer:atlas\"", "to = \"peer:other\"", "x400.route 1"),
        (
            "password = \"to us\"",
            "",
            "peer atlas: expected a password, an address or the name in a certificate",
        ),
    ];
    for (from, to, wanted) in cases {
        let said = fault(from, to);
        assert!(said.contains(wanted), "{said}");
    }
}

#[test]
fn a_password_is_the_first_line_of_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("password");
    let file = format!("password_file = \"{}\"", path.display());
    std::fs::write(&path, "correct horse\nbattery\n").expect("a file");
    let text = TEXT.replacen("password = \"to us\"", &file, 1);
    let switch = read(&text).expect("a switch").expect("the section");
    let terms = switch.mta.peers.get("atlas").expect("the peer");
    let theirs = terms.theirs.as_ref().expect("a name");
    assert_eq!(theirs.password.expose().as_slice(), b"correct horse");
    std::fs::write(&path, "\nnothing\n").expect("a file");
    let said = fault("password = \"to us\"", &file);
    assert!(
        said.contains("expected a password in the first line"),
        "{said}"
    );
}
