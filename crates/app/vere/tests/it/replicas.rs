//! Two spool nodes: mail when a node hangs, loses its records, or both seem to.

use std::net::TcpListener;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::gateways::submit;
use crate::harness::{
    Counted, Options, Session, Sink, System, assert_has, free_address, quoted, run, vere, wait_for,
    wait_until, wait_within,
};

/// The state of the replicas in `vere spool stat`: node and content.
pub(crate) fn states(system: &System) -> Vec<(String, String)> {
    let stat = system.json(&["spool", "stat"]);
    // `None` while no gateway answers.
    let rows = stat["replicas"].as_array().cloned().unwrap_or_default();
    let field = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    rows.iter()
        .map(|row| (field(row, "node"), field(row, "sync")))
        .collect()
}

/// Waits until nodes a and b are so.
pub(crate) fn wait_states(system: &System, expected: [&str; 2]) {
    let expected = ["a", "b"]
        .map(str::to_owned)
        .into_iter()
        .zip(expected.map(str::to_owned));
    let expected: Vec<_> = expected.collect();
    wait_within(
        Duration::from_secs(60),
        "these states of the replicas",
        || (states(system) == expected).then_some(()),
    );
}

/// Sends mail through a system of two nodes to the sink, and causes one fault after the other meanwhile. Every
/// acknowledged message arrives.
pub(crate) fn under_faults(
    sink: &Counted,
    options: &Options,
    faults: u32,
    mut fault: impl FnMut(&System, u32),
) {
    let system = System::start(options);
    wait_states(&system, ["sync", "sync"]);
    sink.run(system.smtp, faults, |number| fault(&system, number));
    system.wait_empty();
}

/// Subjects at the sink, each once, in order.
fn subjects(sink: &Sink) -> Vec<String> {
    let subject = |text: &String| {
        let line = text.lines().find_map(|line| line.strip_prefix("Subject: "));
        line.unwrap_or_default().to_owned()
    };
    let mut subjects: Vec<String> = sink.mail().iter().map(subject).collect();
    subjects.sort();
    subjects.dedup();
    subjects
}

/// The nodes with complete logs.
pub(crate) fn keepers(system: &System) -> Vec<String> {
    let stat = system.json(&["spool", "stat"]);
    let nodes = stat["nodes"].as_array().cloned().unwrap_or_default();
    let keeps = nodes.iter().filter(|node| node["synced"] == true);
    keeps
        .map(|node| node["node"].as_str().unwrap_or_default().to_owned())
        .collect()
}

fn wait_keepers(system: &System, expected: &[&str]) {
    wait_within(Duration::from_secs(60), "these nodes to keep logs", || {
        (keepers(system) == expected).then_some(())
    });
}

/// Both nodes hold the waiting messages, and one node has the messages in its log: the other node writes its log as
/// soon as it is alone.
#[test]
fn one_node_of_a_machine_keeps_the_log() {
    let next_hop = free_address();
    let mut system = System::start(&Options::to(next_hop));
    wait_states(&system, ["sync", "sync"]);
    wait_keepers(&system, &["a"]);
    submit(&system, "first");
    system.halt("spool a");
    wait_keepers(&system, &["b"]);
    submit(&system, "second");
    system.go_on("spool a");
    wait_states(&system, ["sync", "sync"]);
    wait_keepers(&system, &["b"]);
    submit(&system, "third");
    // All processes at once: acknowledged messages come back from the log.
    system.crash();
    wait_states(&system, ["sync", "sync"]);
    wait_keepers(&system, &["b"]);
    let sink = Sink::start_at(next_hop, &[]);
    wait_until("all three", || {
        subjects(&sink) == ["first", "second", "third"]
    });
}

#[test]
fn both_nodes_hold_what_waits() {
    let options = Options::to(free_address()).set("spool.log", "\"node\"");
    let system = System::start(&options);
    wait_states(&system, ["sync", "sync"]);
    for number in 0..5 {
        submit(&system, &number.to_string());
    }
    let stat = system.json(&["spool", "stat", "--queues"]);
    for node in stat["nodes"].as_array().expect("nodes") {
        assert_eq!(node["records"], 5, "{node}");
        assert_eq!(node["synced"], true, "{node}");
        let queues = node["queues"].as_array().expect("queues");
        assert!(queues.iter().any(|queue| queue["records"] == 5), "{node}");
    }
    let table = system.command(&["spool", "stat"]);
    assert_has(
        &table,
        &["TRANSACTIONS", "a ", "b ", "run", "sync", "synced"],
    );
}

#[test]
fn figures_come_from_the_address_that_answers() {
    let system = System::start(&Options::default());
    wait_states(&system, ["sync", "sync"]);
    let silent = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let silent_address = silent.local_addr().expect("its address");
    let standby =
        |node: usize| format!("runs = \"elsewhere\"\nstandby = \"{}\"", system.nodes[node]);
    let key = system.directory.path().join("data/spool.key");
    // One address refuses connections, another accepts connections and stays silent.
    let options = Options::default()
        .node("a", free_address(), &standby(0))
        .node("b", silent_address, &standby(1))
        .set("spool.secret", &quoted(&key));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = System::write_config(directory.path(), &options);
    let text = run(vere().args(["spool", "stat", "--json", "-c"]).arg(&config));
    let stat: Value = serde_json::from_str(&text).expect("JSON");
    for node in 0..2 {
        let answered = stat["nodes"][node]["address"].as_str();
        assert_eq!(answered, Some(&*system.nodes[node].to_string()), "{text}");
        assert_eq!(stat["nodes"][node]["spilled_octets"], 0, "{text}");
    }
    // When no address answers, the error names each address.
    let options = options.node(
        "a",
        free_address(),
        &format!("runs = \"elsewhere\"\nstandby = \"{}\"", free_address()),
    );
    let config = System::write_config(directory.path(), &options);
    let text = run(vere().args(["spool", "stat", "--json", "-c"]).arg(&config));
    let stat: Value = serde_json::from_str(&text).expect("JSON");
    let error = stat["nodes"][0]["error"].as_str().expect("an error");
    assert_eq!(error.matches("cannot connect").count(), 2, "{error}");
}

#[test]
fn mail_goes_on_without_a_node_that_hangs_and_it_is_rebuilt_after() {
    let next_hop = free_address();
    let system = System::start(&Options::to(next_hop));
    wait_states(&system, ["sync", "sync"]);
    submit(&system, "before");
    system.halt("spool b");
    submit(&system, "meanwhile");
    assert_eq!(states(&system)[1].1, "out");
    system.go_on("spool b");
    wait_states(&system, ["sync", "sync"]);
    // The node counts: the other node may hang now.
    system.halt("spool a");
    submit(&system, "after");
    let sink = Sink::start_at(next_hop, &[]);
    wait_until("all three", || {
        subjects(&sink) == ["after", "before", "meanwhile"]
    });
    system.go_on("spool a");
    wait_states(&system, ["sync", "sync"]);
}

#[test]
fn below_the_least_number_of_replicas_connections_are_turned_away() {
    let options = Options::to(free_address()).set("spool.replicas_min", "2");
    let system = System::start(&options);
    wait_states(&system, ["sync", "sync"]);
    let mut session = Session::greeted(system.smtp);
    system.halt("spool b");
    wait_for("the port to be shut", || {
        let greeting = Session::try_connect(system.smtp).err()?.to_string();
        greeting.starts_with("421 4.3.2").then_some(())
    });
    session.command("MAIL FROM:<a@example.net>", "451 4.3.");
    system.go_on("spool b");
    wait_for("the port to be open", || {
        Session::try_connect(system.smtp).ok().map(drop)
    });
    submit(&system, "after");
}

#[test]
fn a_node_that_lost_its_disk_gets_everything_back_from_the_other() {
    let next_hop = free_address();
    // All processes die as well, so memory is lost with the disk.
    let mut system = System::start(&Options::to(next_hop).set("spool.log", "\"node\""));
    for number in 0..50 {
        submit(&system, &format!("{number:02}"));
    }
    for node in ["b", "a"] {
        wait_states(&system, ["sync", "sync"]);
        let folder = system.directory.path().join("data/spool").join(node);
        std::fs::remove_dir_all(&folder).expect("the node's folder");
        system.crash();
    }
    wait_states(&system, ["sync", "sync"]);
    let sink = Sink::start_at(next_hop, &[]);
    wait_until("all fifty", || subjects(&sink).len() == 50);
}

/// The segments of a node's log with a text, and the offsets of the text.
fn found(folder: &Path, text: &str) -> Vec<(PathBuf, u64)> {
    let names = std::fs::read_dir(folder).expect("a folder");
    let files = names.map(|entry| entry.expect("an entry").path());
    let place = |file: PathBuf| {
        let octets = std::fs::read(&file).expect("a file");
        let at = octets
            .windows(text.len())
            .position(|part| part == text.as_bytes());
        at.map(|at| (file, at as u64))
    };
    files.filter_map(place).collect()
}

/// All processes die, and octets in the middle of a node's log flip before the restart. Once the log is whole again
/// the other node dies for good.
#[test]
fn damage_in_a_log_is_repaired_from_the_other_node() {
    let next_hop = free_address();
    let mut system = System::start(&Options::to(next_hop).set("spool.log", "\"node\""));
    wait_states(&system, ["sync", "sync"]);
    for number in 0..20 {
        submit(&system, &format!("{number:02}"));
    }
    let incarnation = node_stat(&system, "b").expect("its figures")["incarnation"].clone();
    let folder = system.directory.path().join("data/spool/b");
    system.kill();
    let places = found(&folder.join("group-0001"), "Subject: 07");
    let [(segment, at)] = &places[..] else {
        panic!("{places:?}");
    };
    let file = std::fs::File::options().write(true).open(segment);
    let file = file.expect("the segment");
    file.write_all_at(b"subject", *at).expect("other octets");
    system.start_again();
    wait_within(Duration::from_secs(60), "everything in another log", || {
        let node = node_stat(&system, "b")?;
        let whole = node["rebuilding"] == false && node["damaged"] == false;
        let aside = folder.join("damaged-0001").exists();
        (whole && node["records"].as_u64()? >= 20 && !aside).then_some(())
    });
    wait_states(&system, ["sync", "sync"]);
    let node = node_stat(&system, "b").expect("its figures");
    assert_eq!(node["incarnation"], incarnation, "the same node");
    assert_eq!(found(&folder.join("group-0001"), "Subject: 07").len(), 1);
    submit(&system, "20");
    // No process starts the node again.
    system.signal(Signal::SIGSTOP);
    assert_eq!(system.signal_role("spool a", Signal::SIGKILL), 1);
    let sink = Sink::start_at(next_hop, &[]);
    wait_until("all of it", || subjects(&sink).len() == 21);
    system.signal(Signal::SIGCONT);
}

/// The node's own status, if the node answers.
fn node_stat(system: &System, name: &str) -> Option<Value> {
    let stat = system.json(&["spool", "stat"]);
    let node = stat["nodes"]
        .as_array()?
        .iter()
        .find(|node| node["node"] == name)?;
    node["incarnation"].is_u64().then(|| node.clone())
}

/// The other node has all records in memory. The keeper of the log afterwards is the node that is ready first.
#[test]
fn a_keeper_that_lost_its_disk_gets_everything_back_from_the_other() {
    const RECORDS: u64 = 20;
    let next_hop = free_address();
    let system = System::start(&Options::to(next_hop));
    wait_states(&system, ["sync", "sync"]);
    for number in 0..RECORDS {
        submit(&system, &format!("{number:02}"));
    }
    for _ in 0..3 {
        let keeper = wait_for("one keeper", || {
            <[String; 1]>::try_from(keepers(&system)).ok()
        });
        let [keeper] = keeper;
        let before =
            node_stat(&system, &keeper).expect("a keeper's figures")["incarnation"].clone();
        let folder = system.directory.path().join("data/spool").join(&keeper);
        std::fs::remove_dir_all(&folder).expect("the node's folder");
        system.signal_role(&format!("spool {keeper}"), Signal::SIGKILL);
        wait_within(Duration::from_secs(60), "everything in a new life", || {
            let node = node_stat(&system, &keeper)?;
            let is_new = node["incarnation"] != before && node["rebuilding"] == false;
            (is_new && node["records"].as_u64()? >= RECORDS).then_some(())
        });
        wait_states(&system, ["sync", "sync"]);
    }
    let sink = Sink::start_at(next_hop, &[]);
    wait_until("all twenty", || subjects(&sink).len() == 20);
}

#[test]
fn a_lost_register_is_never_taken_for_empty_queues_and_salvage_ends_it() {
    let next_hop = free_address();
    let mut system = System::start(&Options::to(next_hop).set("spool.log", "\"node\""));
    submit(&system, "kept");
    wait_states(&system, ["sync", "sync"]);
    let (_, error) = system.failing_command(&["spool", "salvage", "--take", "b"]);
    assert!(error.contains("a gateway runs"), "{error}");
    let register = system.directory.path().join("data/register");
    std::fs::remove_dir_all(&register).expect("the register");
    system.crash_without_waiting();
    wait_until("both nodes", || {
        let text = system.command(&["spool", "salvage"]);
        text.contains("node a: life") && text.contains("node b: life")
    });
    // No node counts, so no mail is accepted.
    wait_states(&system, ["out", "out"]);
    let (_, error) = system.failing_command(&["spool", "salvage", "--take", "c"]);
    assert!(error.contains("node c"), "{error}");
    let text = system.command(&["spool", "salvage", "--take", "b"]);
    assert!(text.contains("restart the gateway"), "{text}");
    system.crash();
    wait_states(&system, ["sync", "sync"]);
    let sink = Sink::start_at(next_hop, &[]);
    sink.wait_mail(1);
}

/// The nodes still have their identity, but their records are gone.
#[test]
fn groups_that_are_gone_are_never_taken_for_empty_and_salvage_begins_anew() {
    let next_hop = free_address();
    let mut system = System::start(&Options::to(next_hop).set("spool.log", "\"node\""));
    submit(&system, "gone");
    wait_states(&system, ["sync", "sync"]);
    for node in ["a", "b"] {
        let folder = system.directory.path().join("data/spool").join(node);
        let entries = std::fs::read_dir(&folder).expect("the node's folder");
        let group = entries
            .filter_map(Result::ok)
            .map(|entry| entry.path())
            .find(|path| path.is_dir())
            .expect("the group's folder");
        std::fs::remove_dir_all(group).expect("it goes");
    }
    system.crash_without_waiting();
    wait_states(&system, ["memory lost", "memory lost"]);
    let text = system.command(&["spool", "salvage"]);
    assert_eq!(
        text.matches("transaction 0, incomplete").count(),
        2,
        "{text}"
    );
    let text = system.command(&["spool", "salvage", "--take", "b"]);
    assert!(text.contains("restart the gateway"), "{text}");
    system.crash();
    wait_states(&system, ["sync", "sync"]);
    submit(&system, "new");
    let sink = Sink::start_at(next_hop, &[]);
    sink.wait_mail(1);
    assert_eq!(subjects(&sink), ["new"]);
}
