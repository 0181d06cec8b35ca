use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;

use super::*;

/// The settings of a system whose secrets all contain `PLANTED`.
const SETTINGS: &str = r#"version = 1
# an old password: PLANTED-comment
hostname = "mx.example.org"
pasword = "PLANTED-unknown"

[[route]]
domain = "*"
next_hop = "smart.example.net:587"
tls = "required"
username = "ann"
password = "PLANTED-password"

[[route]]
domain = "other.example"
next_hop = "smart.example.net:588"
tls = "required"
username = "ann"
password_file = "password"

[records]
webhook = "https://hooks.example.net/PLANTED-path?key=PLANTED-key"
webhook_secret = "secret"

[front]

[[front.list]]
zone = "PLANTED-customer.zen.dq.example.net"
"#;

fn unpacked(path: &Path) -> BTreeMap<String, String> {
    let file = fs::File::open(path).unwrap();
    let mut archive = tar::Archive::new(zstd::Decoder::new(file).unwrap());
    let texts = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let name = entry
            .path()
            .unwrap()
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        (name, text)
    });
    texts.collect()
}

/// The bundle of a stopped system.
fn bundle(text: &str, anonymous: bool) -> (BTreeMap<String, String>, String) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let data = format!("data = {:?}\n", at("data"));
    let text = text.replacen("version = 1\n", &format!("version = 1\n{data}"), 1);
    fs::create_dir(at("data")).unwrap();
    for name in ["vere.toml", "data/accepted.toml"] {
        fs::write(at(name), &text).unwrap();
    }
    for name in ["password", "secret", "data/spool.key"] {
        fs::write(at(name), "PLANTED-file").unwrap();
    }
    let log =
        "refused by smart.example.net: 535 wrong password PLANTED-password for ann@example.org\n";
    fs::write(at("log"), log).unwrap();
    let args = BundleArgs {
        file: Some(at("x.tar.zst")),
        anonymous,
        no_dns: true,
        address: Vec::new(),
        log: Some(at("log")),
        json: false,
    };
    let further: [Further; 1] = [("spool.json", "vere spool stat", |_| {
        Ok("a queue for smart.example.net with PLANTED-password\n".to_owned())
    })];
    let Outcome::Print(said) = run(&args, || Ok(at("vere.toml")), &further).unwrap() else {
        panic!("another outcome");
    };
    (unpacked(&at("x.tar.zst")), said)
}

#[test]
fn no_planted_secret_is_in_the_bundle() {
    let valid = SETTINGS.replace("pasword = \"PLANTED-unknown\"\n", "");
    for (text, is_valid) in [(SETTINGS, false), (&*valid, true)] {
        let (files, said) = bundle(text, false);
        for (name, text) in &files {
            assert!(!text.contains("PLANTED"), "{name}: {text}");
        }
        assert!(!said.contains("PLANTED"), "{said}");
        for name in [
            "README.txt",
            "settings.toml",
            "doctor.json",
            "versions.json",
            "log.txt",
        ] {
            assert!(files.contains_key(name), "{name}: {said}");
        }
        assert_eq!(files.contains_key("folders.json"), is_valid, "{said}");
        let log = &files["log.txt"];
        assert!(
            log.contains("wrong password [redacted] for ann@example.org"),
            "{log}"
        );
        let settings = &files["settings.toml"];
        assert!(settings.contains("username = \"ann\""), "{settings}");
        assert!(files["README.txt"].contains("queues.json") == is_valid);
    }
}

#[test]
fn a_file_that_is_no_toml_is_left_out_as_a_whole() {
    let broken = SETTINGS.replace(
        "password = \"PLANTED-password\"",
        "password = \"PLANTED-password",
    );
    let (files, said) = bundle(&broken, false);
    assert!(!files.contains_key("settings.toml"), "{said}");
    for (name, text) in files
        .iter()
        .filter(|(name, _)| *name != "log.txt" && *name != "spool.json")
    {
        assert!(!text.contains("PLANTED"), "{name}: {text}");
    }
}

#[test]
fn names_are_pseudonyms_on_request() {
    let valid = SETTINGS.replace("pasword = \"PLANTED-unknown\"\n", "");
    let (files, _) = bundle(&valid, true);
    for (name, text) in files.iter().filter(|(name, _)| *name != "versions.json") {
        for part in ["smart", "example", "ann@"] {
            assert!(!text.contains(part), "{part} in {name}: {text}");
        }
    }
    // Equal names have equal pseudonyms in all files.
    let queue = &files["spool.json"];
    let name = queue
        .split_whitespace()
        .find(|word| word.starts_with("name-"))
        .unwrap();
    assert!(files["settings.toml"].contains(name) && files["log.txt"].contains(name));
}

#[test]
fn an_existing_file_and_another_ending_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tar.gz");
    fs::write(&path, "").unwrap();
    let refused = |file: PathBuf| {
        let args = BundleArgs {
            file: Some(file),
            anonymous: false,
            no_dns: true,
            address: Vec::new(),
            log: None,
            json: true,
        };
        let none = || Err(Failure::new("no configuration"));
        run(&args, none, &[]).unwrap_err().to_string()
    };
    assert!(refused(path).contains("expected a new file"));
    assert!(refused(folder.path().join("x.zip")).contains(".tar.zst or .tar.gz"));
}
