use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use vere_directory::Login;
use vere_net::tls::Leaf;
use vere_smtp::address::AddrSpec;
use vere_supervisor::roles::memory_bounds;

use super::*;

fn args(dir: &Path, address: &str) -> QuickstartArgs {
    QuickstartArgs {
        address: address.to_owned(),
        dir: Some(dir.to_owned()),
        hostname: None,
        addresses: vec!["198.51.100.7".parse().unwrap()],
        acme: false,
        self_signed: true,
        force: false,
        json: true,
    }
}

fn started(args: &QuickstartArgs) -> serde_json::Value {
    serde_json::from_str(&run(args).unwrap()).unwrap()
}

fn settings(dir: &Path) -> Settings {
    let path = dir.join("vere.toml");
    Settings::parse(
        &std::fs::read_to_string(&path).unwrap(),
        path.to_str().unwrap(),
    )
    .unwrap()
}

fn login(dir: &Path, value: &serde_json::Value) -> Login {
    let directory = vere_login::directory::open(&settings(dir)).unwrap();
    let password = Secret::new(value["password"].as_str().unwrap().to_owned());
    directory
        .verify_password(value["account"].as_str().unwrap(), &password)
        .unwrap()
}

#[test]
fn makes_a_system_that_the_printed_password_opens() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("new/vere");
    let value = started(&args(&dir, "You@Example.org"));
    assert_eq!(value["account"], "you@example.org");
    assert_eq!(value["hostname"], "mail.example.org");
    let settings = settings(&dir);
    assert_eq!(settings.hostname, "mail.example.org");
    assert_eq!(settings.data, dir.join("data"));
    assert!(
        settings.relay.networks.is_empty() && settings.auth.plaintext_networks.networks.is_empty()
    );
    let text = std::fs::read_to_string(dir.join("vere.toml")).unwrap();
    assert!(text.lines().count() < 48, "{text}");
    let metrics = &settings.metrics;
    let port = u16::try_from(value["ports"]["metrics"].as_u64().unwrap()).unwrap();
    for (own, after) in [metrics.listen, metrics.store, metrics.front]
        .into_iter()
        .zip(0..)
    {
        let expected = std::net::SocketAddr::from(([127, 0, 0, 1], port + after));
        assert_eq!(own, Some(expected), "on loopback and nowhere else");
    }
    let you = AccountName::parse("you@example.org").unwrap();
    assert_eq!(login(&dir, &value), Login::Accepted(you.clone()));
    let directory = vere_login::directory::open(&settings).unwrap();
    for role in ROLES {
        let address = AddrSpec::parse(&format!("{role}@example.org")).unwrap();
        assert!(directory.is_address_of(&you, &address).unwrap(), "{role}");
    }
    let files = settings.tls.default.unwrap();
    let mode = std::fs::metadata(&files.key).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "the key is nobody else's");
    assert!(
        std::fs::read_to_string(&files.certificate)
            .unwrap()
            .contains("BEGIN CERTIFICATE")
    );
}

#[test]
fn the_unit_of_this_machine_is_no_business_of_a_system_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let account = AccountName::parse("you@example.org").unwrap();
    let hostname = DomainName::parse("mail.example.org").unwrap();
    let plan = Plan::new(Some(folder.path()), &account, &hostname).unwrap();
    assert_eq!(plan.drop_in(), None);
}

#[test]
fn dns_records_are_complete() {
    let folder = tempfile::tempdir().unwrap();
    let value = started(&args(folder.path(), "you@example.org"));
    let rows: Vec<String> = value["dns"]
        .as_array()
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    let all = rows.join("\n");
    for words in [
        "10 mail.example.org.",
        "v=spf1 mx -all",
        "_dmarc.example.org.",
        "v=TLSRPTv1; rua=mailto:reports@example.org",
        "198.51.100.7",
        "v=DKIM1; k=rsa",
        "v=DKIM1; k=ed25519",
        "_submissions._tcp",
        "_imaps._tcp",
    ] {
        assert!(all.contains(words), "{words} in {all}");
    }
    let notes = value["notes"].to_string();
    assert!(
        notes.contains("PTR") && notes.contains("vere dns check example.org"),
        "{notes}"
    );
    let mut plain = args(&folder.path().join("b"), "you@example.org");
    plain.json = false;
    let text = run(&plain).unwrap();
    assert!(
        text.contains("\npassword  ") && text.contains("IN MX    10 mail.example.org."),
        "{text}"
    );
    assert!(text.ends_with(&format!(
        "next: vere serve -c {}/b/vere.toml\n",
        folder.path().display()
    )));
}

#[test]
fn nothing_is_overwritten_without_force() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let mut args = args(dir, "you@example.org");
    let first = started(&args);
    let config = dir.join("vere.toml");
    std::fs::write(&config, "# mine\nversion = 1\nhostname = \"a.b\"\n").unwrap();
    let before = std::fs::read(dir.join("data/directory.toml")).unwrap();
    let failure = run(&args).unwrap_err().to_string();
    assert!(
        failure.contains("--force") && failure.contains("vere.toml.old"),
        "{failure}"
    );
    assert_eq!(
        std::fs::read(dir.join("data/directory.toml")).unwrap(),
        before
    );
    assert!(
        std::fs::read_to_string(&config)
            .unwrap()
            .starts_with("# mine")
    );

    let certificate = std::fs::read(dir.join("tls/cert.pem")).unwrap();
    args.force = true;
    let second = started(&args);
    // Somebody uses the password.
    assert!(second["password"].is_null(), "{second}");
    assert!(matches!(login(dir, &first), Login::Accepted(_)));
    assert!(
        std::fs::read_to_string(dir.join("vere.toml.old"))
            .unwrap()
            .starts_with("# mine")
    );
    assert_eq!(
        std::fs::read(dir.join("tls/cert.pem")).unwrap(),
        certificate
    );
}

/// The second run overwrote the settings that the first run had kept.
#[test]
fn settings_that_were_kept_are_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let mut args = args(dir, "you@example.org");
    let first = started(&args);
    assert!(!first["notes"].to_string().contains("earlier"), "{first}");
    let config = dir.join("vere.toml");
    args.force = true;
    let names = ["vere.toml.old", "vere.toml.old.2", "vere.toml.old.3"];
    for name in names {
        std::fs::write(&config, format!("# before {name}\n")).unwrap();
        args.force = false;
        let refused = run(&args).unwrap_err().to_string();
        let kept = dir.join(name).display().to_string();
        assert!(refused.ends_with(&kept), "{refused}");
        args.force = true;
        let notes = started(&args)["notes"].to_string();
        let said = format!("\"the earlier settings are in {kept}\"");
        assert!(notes.contains(&said), "{notes}");
    }
    for name in names {
        let kept = std::fs::read_to_string(dir.join(name)).unwrap();
        assert_eq!(kept, format!("# before {name}\n"));
    }
    args.json = false;
    let text = run(&args).unwrap();
    let kept = dir.join("vere.toml.old.4");
    let said = format!("\n- the earlier settings are in {}\n", kept.display());
    assert!(text.contains(&said) && kept.exists(), "{text}");
}

/// A key without its certificate was overwritten.
#[test]
fn half_a_pair_of_certificate_and_key_is_refused() {
    for (there, missing) in [("key.pem", "cert.pem"), ("cert.pem", "key.pem")] {
        let folder = tempfile::tempdir().unwrap();
        let tls = folder.path().join("tls");
        std::fs::create_dir(&tls).unwrap();
        std::fs::write(tls.join(there), "mine").unwrap();
        let mut args = args(folder.path(), "you@example.org");
        for force in [false, true] {
            args.force = force;
            let failure = run(&args).unwrap_err().to_string();
            let [there, missing] = [there, missing].map(|name| tls.join(name));
            assert!(
                failure.contains(&format!("{}; found none", there.display()))
                    && failure.contains(&format!("put it at {}", missing.display()))
                    && failure.contains("away"),
                "{failure}"
            );
        }
        for folder in [folder.path(), tls.as_path()] {
            assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1);
        }
        assert_eq!(std::fs::read_to_string(tls.join(there)).unwrap(), "mine");
        std::fs::remove_file(tls.join(there)).unwrap();
        started(&args);
    }
}

/// The certificate of the old name stayed.
#[test]
fn a_new_host_name_gets_a_new_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let tls = folder.path().join("tls");
    let names = |file: &str| Leaf::of_file(&tls.join(file)).unwrap().names;
    let mut args = args(folder.path(), "you@example.org");
    started(&args);
    assert_eq!(names("cert.pem"), ["mail.example.org"]);
    let key = std::fs::read(tls.join("key.pem")).unwrap();
    args.force = true;
    args.hostname = Some("MX.example.net".to_owned());
    let value = started(&args);
    assert_eq!(names("cert.pem"), ["mx.example.net"]);
    assert_eq!(names("cert.pem.old"), ["mail.example.org"]);
    assert_eq!(std::fs::read(tls.join("key.pem.old")).unwrap(), key);
    let notes = value["notes"].to_string();
    for words in ["did not name mx.example.net", "cert.pem.old", "key.pem.old"] {
        assert!(notes.contains(words), "{notes}");
    }
    let file = std::fs::metadata(tls.join("key.pem")).unwrap();
    assert_eq!(file.permissions().mode() & 0o077, 0);
    started(&args);
    assert!(!tls.join("cert.pem.old.2").exists(), "the name is the same");
}

#[test]
fn a_certificate_from_elsewhere_stays_with_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let tls = folder.path().join("tls");
    std::fs::create_dir(&tls).unwrap();
    let made = rcgen::generate_simple_self_signed(["mx.example.net".to_owned()]).unwrap();
    let certificate = made.cert.pem();
    std::fs::write(tls.join("cert.pem"), &certificate).unwrap();
    std::fs::write(tls.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let mut args = args(folder.path(), "you@example.org");
    let notes = started(&args)["notes"].to_string();
    for words in [
        "was there and remains in use, but it does not name mail.example.org",
        "vere reload",
    ] {
        assert!(notes.contains(words), "{notes}");
    }
    args.force = true;
    args.hostname = Some("mx.example.net".to_owned());
    let notes = started(&args)["notes"].to_string();
    assert!(notes.contains("was there and remains in use\""), "{notes}");
    let found = std::fs::read_to_string(tls.join("cert.pem")).unwrap();
    assert_eq!(found, certificate);
    assert_eq!(std::fs::read_dir(&tls).unwrap().count(), 2);
}

/// The commands of the notes found no configuration, or that of another system.
#[test]
fn printed_commands_name_the_settings() {
    let folder = tempfile::tempdir().unwrap();
    let mut args = args(folder.path(), "you@example.org");
    started(&args);
    (args.force, args.json) = (true, false);
    let text = run(&args).unwrap();
    let config = folder.path().join("vere.toml").display().to_string();
    for words in [
        "dkim list example.org",
        "dns check example.org",
        "dns records example.org",
        "reports --account reports@example.org",
        "account passwd you@example.org",
        "reload",
        "serve",
    ] {
        let command = format!("vere {words} -c {config}");
        assert!(text.contains(&command), "{command} in {text}");
    }
    assert!(!text.contains("--acme --force"), "{text}");
}

#[test]
fn acme_instead_of_a_certificate_of_ones_own() {
    let folder = tempfile::tempdir().unwrap();
    let mut args = args(folder.path(), "you@b\u{fc}cher.example");
    (args.acme, args.self_signed) = (true, false);
    args.hostname = Some("MX.b\u{fc}cher.example".to_owned());
    started(&args);
    let settings = settings(folder.path());
    let acme = settings.acme.unwrap();
    assert_eq!(acme.domains, ["mx.xn--bcher-kva.example"]);
    assert_eq!(acme.contact, ["mailto:you@xn--bcher-kva.example"]);
    assert!(!folder.path().join("tls").exists());
}

#[test]
fn hostile_addresses_and_folders() {
    let folder = tempfile::tempdir().unwrap();
    for address in [
        "you",
        "",
        "@example.org",
        "../x@example.org",
        "a b@example.org",
        "you@../../etc",
        "you@\"\n",
    ] {
        assert!(
            run(&args(&folder.path().join("x"), address)).is_err(),
            "{address:?}"
        );
        assert!(!folder.path().join("x").exists());
    }
    assert!(run(&args(&folder.path().join("a\nb"), "you@example.org")).is_err());
    let odd = folder.path().join("it's \"odd\" \\ here");
    let value = started(&args(&odd, "you@example.org"));
    assert_eq!(settings(&odd).data, odd.join("data"));
    assert!(value["next"].as_str().unwrap().contains("'\\''"), "{value}");
}

#[test]
fn a_file_in_the_place_of_the_directory_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let taken = folder.path().join("vere");
    std::fs::write(&taken, "a program").unwrap();
    for dir in [taken.clone(), taken.join("below")] {
        let failure = run(&args(&dir, "you@example.org")).unwrap_err().to_string();
        assert!(
            failure.contains("found a file") && failure.contains("--dir"),
            "{failure}"
        );
    }
    assert_eq!(std::fs::read_to_string(&taken).unwrap(), "a program");
}

#[test]
fn without_root_the_first_words_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut args = args(folder.path(), "you@example.org");
    args.json = false;
    let text = run(&args).unwrap();
    let is_root = nix::unistd::geteuid().is_root();
    assert_eq!(text.starts_with("not root: "), !is_root, "{text}");
    assert_eq!(
        text.contains("sudo vere quickstart you@example.org"),
        !is_root
    );
    args.force = true;
    let again = run(&args).unwrap();
    assert!(again.contains("password  as before"), "{again}");
}

/// The bounds of the roles added up to 6.7 GB on every machine, and `vere doctor` warned on all small ones.
#[test]
fn the_bounds_fit_into_the_memory_of_the_machine() {
    const GIB: u64 = 1 << 30;
    let account = AccountName::parse("you@example.org").unwrap();
    let hostname = DomainName::parse("mail.example.org").unwrap();
    let fitted = |all: u64, swap: u64, web: bool| {
        let mut plan = Plan::new(Some(Path::new("/v")), &account, &hostname).unwrap();
        (plan.acme, plan.web) = (web, web);
        let memory = Memory {
            all,
            available: all / 8 * 7,
            swap,
        };
        plan.fit(&memory).unwrap();
        let settings = Settings::parse(&plan.text(), "/v/vere.toml").unwrap();
        let sum = memory_bounds(&settings).max().as_u64();
        assert!(
            memory.holds(sum) && memory.has_room_for(sum),
            "{all}: {sum}"
        );
        assert_eq!(plan.note_on_memory(), None);
        settings
    };
    for web in [false, true] {
        let limits = |all, swap| {
            let settings = fitted(all, swap, web);
            let limits = settings.limits;
            (
                settings.spool.memory_max.as_u64() >> 20,
                limits.message_size_max.as_u64() >> 20,
                limits.connections_max,
            )
        };
        assert_eq!(limits(GIB, GIB), (32, 25, 1_000));
        let (two, four) = (limits(2 * GIB, 0), limits(4 * GIB, 0));
        assert!((32, 25, 1_000) < two && two < four && four < (1_024, 50, 20_000));
        // The defaults, without a line.
        assert_eq!(limits(16 * GIB, 0), (1_024, 50, 20_000));
    }
}

#[test]
fn a_machine_without_enough_memory_is_told_so() {
    let account = AccountName::parse("you@example.org").unwrap();
    let hostname = DomainName::parse("mail.example.org").unwrap();
    let mut plan = Plan::new(Some(Path::new("/v")), &account, &hostname).unwrap();
    let memory = Memory {
        all: 1 << 30,
        available: 1 << 30,
        swap: 0,
    };
    plan.fit(&memory).unwrap();
    let note = plan.note_on_memory().unwrap();
    assert!(
        note.contains("has 1.0 GiB of memory") && note.contains("at least 1.0 GiB"),
        "{note}"
    );
    assert!(plan.text().contains("[spool]\nmemory_max = \"32 MiB\"\n"));
}
