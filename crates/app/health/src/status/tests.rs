use vere_control::supervision::{RefusedReload, RoleEnd};
use vere_control::{OrderRow, TopTotals};
use vere_settings::Settings;

use super::super::facts::Edited;
use super::super::orders::Ordered;
use super::super::show;
use super::*;

fn role(name: &str) -> RoleState {
    RoleState {
        name: name.to_owned(),
        state: ProcessState::Ready,
        pid: Some(11),
        uptime_seconds: Some(7_300),
        restarts: 0,
        last_end: None,
        settings: 1,
        complaint: None,
    }
}

fn replica(node: &str, sync: &str) -> ReplicaLine {
    ReplicaLine {
        node: node.to_owned(),
        active: "run".to_owned(),
        standby: "down".to_owned(),
        sync: sync.to_owned(),
        transactions: 0,
        in_flight: 0,
        alone: false,
        copied: None,
        trouble: None,
    }
}

fn healthy() -> Facts {
    Facts {
        version: "0.1.0",
        system: Some(SystemState {
            version: "0.1.0".to_owned(),
            pid: 10,
            phase: SystemPhase::Running,
            uptime_seconds: 7_300,
            settings: 1,
            refused: None,
            roles: vec![role("spool-a"), role("gateway")],
        }),
        file: None,
        nodes: Vec::new(),
        edited: Edited::default(),
        queues: Some(TopSample {
            gateway: "mx".to_owned(),
            time: String::new(),
            millis: 0,
            closed: None,
            delivers: Some(true),
            totals: TopTotals::default(),
            budgets: Vec::new(),
            heaviest: None,
            heaviest_on_disk: None,
            replicas: vec![replica("a", "sync"), replica("b", "sync")],
            queues: Vec::new(),
            matching: 0,
        }),
        queues_error: None,
        orders: Vec::new(),
        certificates: vec![Certificate {
            file: "/etc/vere/tls.pem".into(),
            remaining_seconds: Some(40 * 86_400),
            error: None,
        }],
        disks: vec![Disk {
            directory: "/var/lib/vere".into(),
            free_bytes: 50 << 30,
            size_bytes: 100 << 30,
        }],
        backup: None,
    }
}

/// The findings after one change of a healthy system, as level and text.
fn after(change: impl FnOnce(&mut Facts)) -> Vec<(Level, String)> {
    let mut facts = healthy();
    change(&mut facts);
    let all = of(&facts).into_iter();
    all.map(|one| (one.level, one.text)).collect()
}

fn one(change: impl FnOnce(&mut Facts)) -> (Level, String) {
    let mut all = after(change);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn system(facts: &mut Facts) -> &mut SystemState {
    facts.system.as_mut().unwrap()
}

fn sample(facts: &mut Facts) -> &mut TopSample {
    facts.queues.as_mut().unwrap()
}

#[test]
fn a_healthy_system_has_no_finding_and_a_short_summary() {
    let facts = healthy();
    assert_eq!(of(&facts), []);
    let summary = show::summary(&facts, &[], Level::Ok);
    assert_eq!(summary, "OK: 2 roles ready, 0 messages queued\n");
    let text = show::in_text(&facts, &[], Level::Ok);
    assert!(text.contains("replicas     a sync, b sync\n"), "{text}");
    assert!(text.contains("/etc/vere/tls.pem: 40 days left"), "{text}");
    assert!(text.contains("50.0 GiB of 100 GiB free"), "{text}");
}

#[test]
fn every_trouble_of_a_process_is_found() {
    let (level, text) = one(|facts| facts.system = None);
    assert_eq!(
        (level, text.as_str()),
        (Level::Critical, "the system is not running")
    );
    let (level, text) = one(|facts| {
        system(facts).roles[1].state = ProcessState::Down;
        system(facts).roles[1].last_end = Some(RoleEnd {
            seconds_ago: 1,
            status: "exit status: 1".to_owned(),
        });
    });
    let expected = "role gateway is down: exit status: 1";
    assert_eq!((level, text.as_str()), (Level::Critical, expected));
    let ended = |seconds_ago| {
        after(|facts| {
            system(facts).roles[1].restarts = 1;
            system(facts).roles[1].last_end = Some(RoleEnd {
                seconds_ago,
                status: "signal: 9 (SIGKILL)".to_owned(),
            });
        })
    };
    assert_eq!(ended(RECENT), []);
    let [(level, text)] = &ended(RECENT - 1)[..] else {
        panic!("no finding");
    };
    assert_eq!(*level, Level::Warning);
    assert!(
        text.contains("59m ago (signal: 9 (SIGKILL)), 1 time"),
        "{text}"
    );
    assert_eq!(
        one(|facts| system(facts).phase = SystemPhase::Starting).0,
        Level::Warning
    );
    assert_eq!(
        one(|facts| system(facts).phase = SystemPhase::Stopping).0,
        Level::Critical
    );
}

/// The remedy was to start a mail system beside the node.
#[test]
fn a_machine_with_a_node_alone_needs_no_system() {
    let node = |error: Option<&str>| NodeHere {
        name: "mail2".to_owned(),
        address: "192.0.2.2:2600".parse().unwrap(),
        error: error.map(str::to_owned),
    };
    let mut facts = healthy();
    (facts.system, facts.queues) = (None, None);
    facts.nodes = vec![node(None)];
    assert_eq!(of(&facts), []);
    let text = show::in_text(&facts, &[], Level::Ok);
    let first = "OK: the spool node mail2 answers; its gateway runs on another machine\n";
    assert!(text.starts_with(first), "{text}");
    assert!(
        text.contains("node         mail2 at 192.0.2.2:2600 answers\n"),
        "{text}"
    );
    assert!(!text.contains("vere backup"), "{text}");
    facts.nodes = vec![node(Some("Connection refused"))];
    let found = of(&facts);
    assert_eq!(found.len(), 1, "{found:?}");
    let text = "the spool node mail2 does not answer at 192.0.2.2:2600: Connection refused";
    assert_eq!(
        (found[0].level, found[0].text.as_str()),
        (Level::Critical, text)
    );
    let remedy =
        "start it with: systemctl start vere-node@mail2, or: vere spool serve --node mail2";
    assert_eq!(found[0].remedy, remedy);
}

#[test]
fn settings_that_are_not_in_force_are_named() {
    let (level, text) = one(|facts| system(facts).version = "0.0.9".to_owned());
    let expected = "version 0.0.9 runs; version 0.1.0 is installed";
    assert_eq!((level, text.as_str()), (Level::Warning, expected));
    let (_, text) = one(|facts| {
        system(facts).refused = Some(RefusedReload {
            seconds_ago: 120,
            reason: "vere.toml:2: x".to_owned(),
        });
    });
    assert_eq!(text, "the reload 2m ago was refused: vere.toml:2: x");
    let (_, text) = one(|facts| facts.edited.reload = vec!["limits.recipients_max".to_owned()]);
    assert!(text.ends_with("limits.recipients_max"), "{text}");
    let (_, text) = one(|facts| {
        facts.edited.reload = vec!["limits.recipients_max".to_owned()];
        facts.edited.restart = vec!["smtp.listen".to_owned()];
    });
    assert!(text.ends_with(": smtp.listen"), "{text}");
    let (_, text) = one(|facts| {
        let role = &mut system(facts).roles[0];
        role.state = ProcessState::Starting;
        role.complaint = Some("reading the log: 1 MiB, 1 MiB/s".to_owned());
    });
    assert!(
        text.contains("is starting: reading the log: 1 MiB"),
        "{text}"
    );
    let (_, text) = one(|facts| system(facts).roles[0].complaint = Some("no key".to_owned()));
    assert_eq!(text, "role spool-a keeps its earlier settings: no key");
}

#[test]
fn every_trouble_of_the_queues_is_found() {
    let (level, text) = one(|facts| sample(facts).closed = Some("queues are full".to_owned()));
    assert_eq!(
        (level, text.as_str()),
        (Level::Critical, "new mail is refused: queues are full")
    );
    assert_eq!(
        one(|facts| sample(facts).delivers = Some(false)).0,
        Level::Critical
    );
    assert_eq!(
        one(|facts| facts.queues_error = Some("x".to_owned())).0,
        Level::Critical
    );
    let aged = |seconds| after(|facts| sample(facts).totals.oldest_seconds = Some(seconds));
    assert_eq!(aged(OLD - 1), []);
    assert_eq!(aged(OLD)[0].1, "the oldest message waits since 1d");
    let (level, text) = one(|facts| sample(facts).replicas[1].sync = "out".to_owned());
    assert_eq!(
        (level, text.as_str()),
        (Level::Warning, "no replica in sync on: b")
    );
    let (level, _) = one(|facts| {
        let replicas = &mut sample(facts).replicas;
        replicas
            .iter_mut()
            .for_each(|line| line.sync = "down".to_owned());
    });
    assert_eq!(level, Level::Critical);
    assert_eq!(
        one(|facts| sample(facts).replicas[0].alone = true).0,
        Level::Critical
    );
}

/// The state was OK and "0 held" while a destination was held without end.
#[test]
fn mail_in_a_held_destination_is_a_warning() {
    let order = |destination: &str, until: &str, messages| Ordered {
        order: OrderRow {
            destination: destination.to_owned(),
            group: None,
            id: None,
            held_since: None,
            held_for: None,
            held_until: Some(until.to_owned()),
            refused_until: None,
            way: None,
            way_until: None,
        },
        messages,
    };
    let mut facts = healthy();
    // A hold with an end is meant, and a hold without mail stops no mail: a line has both.
    facts.orders = vec![
        order("a.example", "2030-01-01T00:00:00Z", Some(2)),
        order("b.example", "taken back", None),
    ];
    facts.orders[1].order.refused_until = Some("taken back".to_owned());
    assert_eq!(of(&facts), []);
    let text = show::in_text(&facts, &[], Level::Ok);
    let line = "orders       held: a.example, b.example; refused: b.example\n";
    assert!(text.contains(line), "{text}");
    facts.orders.push(order("c.example", "taken back", Some(3)));
    let found = of(&facts);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].level, Level::Warning);
    assert_eq!(found[0].text, "3 messages held without end, for c.example");
    assert_eq!(
        found[0].remedy,
        "deliver with: vere queue release c.example"
    );
    facts.orders.push(order("d.example", "taken back", Some(1)));
    let found = of(&facts);
    assert_eq!(
        found[0].text,
        "4 messages held without end, for c.example, d.example"
    );
    assert!(found[0].remedy.ends_with("see: vere queue orders"));
    let json: serde_json::Value =
        serde_json::from_str(&show::in_json(&facts, &found, Level::Warning).unwrap()).unwrap();
    assert_eq!(json["orders"][2]["destination"], "c.example");
    assert_eq!(json["orders"][2]["messages"], 3);
}

#[test]
fn certificates_and_disks_have_two_thresholds() {
    let days = |days: u64| {
        let found = after(|facts| facts.certificates[0].remaining_seconds = Some(days * 86_400));
        found.first().map(|(level, _)| *level)
    };
    assert_eq!(days(14), None);
    assert_eq!(days(13), Some(Level::Warning));
    assert_eq!(days(3), Some(Level::Warning));
    assert_eq!(days(2), Some(Level::Critical));
    let free = |percent: u64| {
        let found = after(|facts| facts.disks[0].free_bytes = percent << 30);
        found.first().map(|(level, _)| *level)
    };
    assert_eq!(free(10), None);
    assert_eq!(free(9), Some(Level::Warning));
    assert_eq!(free(2), Some(Level::Critical));
    let (level, _) = one(|facts| facts.certificates[0].error = Some("gone".to_owned()));
    assert_eq!(level, Level::Critical);
}

#[test]
fn the_severest_finding_comes_first_and_the_line_counts_the_others() {
    let mut facts = healthy();
    sample(&mut facts).totals.oldest_seconds = Some(OLD);
    facts.disks[0].free_bytes = 0;
    let findings = of(&facts);
    assert_eq!(findings[0].level, Level::Critical);
    let summary = show::summary(&facts, &findings, Level::Critical);
    assert_eq!(
        summary,
        "CRITICAL: 0 B free below /var/lib/vere, 0 % (and 1 more)\n"
    );
    let json: serde_json::Value =
        serde_json::from_str(&show::in_json(&facts, &findings, Level::Critical).unwrap()).unwrap();
    assert_eq!(json["level"], "critical");
    assert_eq!(json["findings"][1]["level"], "warning");
    assert_eq!(json["system"]["roles"][1]["name"], "gateway");
}

#[test]
fn an_old_backup_is_a_warning_and_no_backup_is_none() {
    let backup = |age_seconds, warn_after_seconds| {
        after(|facts| {
            facts.backup = Some(Backup {
                place: "/mnt/backup".to_owned(),
                number: 7,
                age_seconds,
                warn_after_seconds,
            });
        })
    };
    assert_eq!(backup(86_400, Some(2 * 86_400)), []);
    assert_eq!(backup(90 * 86_400, None), []);
    let text = "the last backup is 3d old (number 7 in /mnt/backup)".to_owned();
    assert_eq!(
        backup(3 * 86_400, Some(2 * 86_400)),
        [(Level::Warning, text)]
    );
    let text = show::in_text(&healthy(), &[], Level::Ok);
    assert!(text.contains("backup       none known"), "{text}");
}

/// The remedy did not start the system of these settings.
#[test]
fn the_remedy_names_the_file_of_the_settings() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("vere.toml");
    let text = "version = 1\nhostname = \"mx.example.org\"\ndata = \".\"\n";
    let settings = Settings::parse(text, &file.to_string_lossy()).unwrap();
    let facts = super::super::facts::gather(&settings, Some(&file)).unwrap();
    let found = of(&facts);
    assert_eq!(found[0].text, "the system is not running");
    let remedy = format!("start it with: vere serve -c {}", file.display());
    assert_eq!(found[0].remedy, remedy);
}
