//! Several gateways with common nodes and register.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::harness::{
    Child, Counted, Options, Sink, System, assert_has, free_address, is_full, output_of, quoted,
    run, vere, wait_for, wait_greeting, wait_until,
};
use crate::replicas::{states, wait_states};

/// Settings of another gateway with the nodes and the register of `first`.
pub(crate) fn beside(first: &System, options: Options, name: &str) -> Options {
    let data = first.directory.path().join("data");
    let elsewhere = "runs = \"elsewhere\"";
    options
        .node("a", first.nodes[0], elsewhere)
        .node("b", first.nodes[1], elsewhere)
        .set("spool.secret", &quoted(&data.join("spool.key")))
        .set("cluster.folder", &quoted(&data.join("register")))
        .set("gateway.name", &format!("\"{name}\""))
}

pub(crate) fn submit(system: &System, subject: &str) {
    system.submit_about("a@example.net", &["x@example.com"], subject);
}

#[test]
fn two_gateways_on_the_same_nodes_have_queues_of_their_own() {
    let next_hop = free_address();
    let first = System::start(&Options::to(next_hop));
    let second = System::start(&beside(&first, Options::to(next_hop), "second"));
    wait_states(&first, ["sync", "sync"]);
    wait_states(&second, ["sync", "sync"]);
    submit(&first, "one");
    submit(&second, "two");
    submit(&second, "three");
    assert_eq!((first.queued(), second.queued()), (1, 2));
    for (group, records) in [("gateway", 1), ("second", 2)] {
        let stat = first.json(&["spool", "stat", "--group", group]);
        let nodes = stat["nodes"].as_array().expect("nodes");
        assert_eq!(nodes.len(), 2);
        assert!(
            nodes.iter().all(|node| node["records"] == records),
            "{stat}"
        );
    }
    let groups = first.rows(&["spool", "groups"]);
    assert_eq!(groups.len(), 2, "{groups:?}");
    for (at, group, records) in [(0, "gateway", 1), (1, "second", 2)] {
        let line = &groups[at];
        assert_eq!(
            (&line["group"], &line["lease"]),
            (&group.into(), &"held".into())
        );
        assert_eq!(line["records"], records, "{line}");
        let members = line["members"].as_array().expect("members");
        assert!(members.len() == 2 && members.iter().all(|one| one["full"] == true));
    }
    let said = first.command(&["spool", "groups"]);
    assert_eq!(said.lines().count(), 3, "{said}");
    // Each gateway takes back its own queues, and no queue of the other gateway.
    second.kill_and_wait("gateway");
    wait_until("the second gateway's queues", || {
        second.queued_if_up() == Some(2)
    });
    submit(&first, "four");
    assert_eq!(first.queued(), 2);
    assert_eq!(states(&first).len(), 2);
    let sink = Sink::start_at(next_hop, &[]);
    wait_until("all four", || sink.mail().len() >= 4);
    let mut subjects: Vec<String> = sink.mail().iter().map(|text| subject(text)).collect();
    subjects.sort();
    assert_eq!(subjects, ["four", "one", "three", "two"]);
    second.stop();
    first.wait_empty();
}

fn subject(text: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix("Subject: "));
    line.unwrap_or_default().to_owned()
}

#[test]
fn a_gateway_of_a_name_that_lives_does_not_begin_and_the_first_goes_on() {
    let next_hop = free_address();
    let mut first = System::start(&Options::to(next_hop));
    wait_states(&first, ["sync", "sync"]);
    let (status, log) = System::failing_start(&beside(&first, Options::to(next_hop), "gateway"));
    assert!(!status.success(), "{status}");
    let text = "another gateway named gateway lives";
    assert!(log.contains(text), "{log}");
    submit(&first, "one");
    assert!(!first.log().contains("taken the group over"));
    // Stopped in order, killed, and both at once: the gateway delivers at once again, though its lease is long.
    first.configure(&Options::to(next_hop).set("cluster.lease", "\"10m\""));
    first.restart();
    first.kill_and_wait("gateway");
    wait_for("the gateway", || first.queued_if_up());
    first.crash();
    let sink = Sink::start_at(next_hop, &[]);
    sink.wait_mail(1);
    first.wait_empty();
}

/// Short times by which a gateway counts as dead.
pub(crate) fn soon(options: Options) -> Options {
    options
        .set("cluster.lease", "\"6s\"")
        .set("cluster.skew", "\"1s\"")
        .set("gateway.adopt_after", "\"10s\"")
}

/// Two systems with common nodes; the gateway of the second adopts the queues of the first, if `adopts` names it, soon
/// after its death.
pub(crate) fn dying_and_adopting(adopts: &str, options: impl Fn() -> Options) -> (System, System) {
    let first = System::start(&soon(options()));
    let second = beside(&first, soon(options()), "second");
    let second = System::start(&second.set("gateway.adopts", adopts));
    wait_states(&first, ["sync", "sync"]);
    (first, second)
}

/// Kills a gateway, and keeps its supervisor from starting another gateway.
pub(crate) fn kill_for_good(system: &System) {
    system.signal(Signal::SIGSTOP);
    assert_eq!(system.signal_role("gateway", Signal::SIGKILL), 1);
}

/// Messages of adopted groups in the queues of a gateway.
pub(crate) fn adopted(system: &System) -> u64 {
    let queues = system.queues();
    let of_another = queues.iter().filter(|queue| queue["group"].is_string());
    of_another
        .map(|queue| queue["messages"].as_u64().unwrap_or(0))
        .sum()
}

#[test]
fn a_live_gateway_delivers_what_a_dead_one_left_and_hands_back_when_it_returns() {
    let next_hop = free_address();
    let (first, second) = dying_and_adopting("[\"*\"]", || Options::to(next_hop));
    for number in 0..5 {
        submit(&first, &format!("left {number}"));
    }
    submit(&second, "own");
    kill_for_good(&first);
    wait_until("the adopted messages", || adopted(&second) == 5);
    // New mail goes to the gateway's own queues.
    submit(&second, "later");
    assert_eq!((adopted(&second), second.queued()), (5, 7));
    // Back before the delivery: the messages belong to their own gateway again, and the other gateway keeps its
    // messages.
    first.signal(Signal::SIGCONT);
    wait_until("the first gateway", || first.queued_if_up() == Some(5));
    wait_until("the adopted queues to be gone", || second.queued() == 2);
    submit(&first, "back");
    let sink = Sink::start_at(next_hop, &[]);
    let expected = [
        "back", "later", "left 0", "left 1", "left 2", "left 3", "left 4", "own",
    ];
    wait_until("all messages", || {
        let mut subjects: Vec<String> = sink.mail().iter().map(|text| subject(text)).collect();
        subjects.sort();
        subjects.dedup();
        subjects == expected
    });
    second.wait_empty();
    first.wait_empty();
}

/// The identity of messages: the details of attempts may change from answer to answer.
fn names(rows: &[Value]) -> Vec<(Value, Value)> {
    let name = |row: &Value| (row["group"].clone(), row["id"].clone());
    rows.iter().map(name).collect()
}

#[test]
fn what_operators_order_reaches_adopted_queues() {
    let next_hop = free_address();
    let (first, second) = dying_and_adopting("[\"*\"]", || Options::to(next_hop));
    for number in 0..4 {
        submit(&first, &format!("left {number}"));
    }
    submit(&second, "own");
    kill_for_good(&first);
    wait_until("the adopted messages", || adopted(&second) == 4);
    let destination = format!("relay:{next_hop}");
    let of_adopted = |key: &str| {
        let queues = second.queues();
        let adopted = queues.iter().find(|queue| queue["group"].is_string());
        adopted.map(|queue| queue[key].clone()).unwrap_or_default()
    };
    second.command(&["queue", "hold", &destination]);
    assert!(
        of_adopted("held_until").is_string(),
        "{:?}",
        second.queues()
    );
    let list = |words: &[&str]| second.rows(words);
    let groups = |rows: &[Value]| -> Vec<String> {
        let group = |row: &Value| row["group"].as_str().unwrap_or("own").to_owned();
        rows.iter().map(group).collect()
    };
    assert_eq!(groups(&list(&["queue", "orders"])), ["own", "gateway"]);
    let show = ["queue", "show", &destination];
    let all = list(&show);
    let mut of = groups(&all);
    of.sort();
    assert_eq!(of, ["gateway", "gateway", "gateway", "gateway", "own"]);
    assert!(all.iter().all(|row| row["recipients"][0].is_string()));
    assert_eq!(
        list(&[&show[..], &["--group", "gateway"]].concat()).len(),
        4
    );
    // The pages hold the same messages.
    let mut pages = Vec::new();
    while pages.len() < all.len() {
        let last = pages.last().map(|row: &Value| row["id"].clone());
        let after = last.and_then(|id| Some(id.as_str()?.to_owned()));
        let mut words = [&show[..], &["--limit", "2"]].concat();
        words.extend(after.iter().flat_map(|id| ["--after", id]));
        let page = list(&words);
        assert!(!page.is_empty(), "{pages:?} of {all:?}");
        pages.extend(page);
    }
    assert_eq!(names(&pages), names(&all));
    let one = list(&["queue", "show", all[0]["id"].as_str().expect("an id")]);
    assert_eq!(names(&one), names(&all[..1]));
    second.command(&["queue", "release", &destination]);
    assert!(of_adopted("held_until").is_null(), "{:?}", second.queues());
    let said = second.command(&["queue", "purge", "--all", "--older-than", "0s", "--yes"]);
    assert!(said.contains('5'), "own and adopted ones: {said}");
    assert_eq!(second.queued(), 0);
    first.signal(Signal::SIGCONT);
    wait_until("the first gateway", || first.queued_if_up() == Some(0));
}

#[test]
fn a_gateway_killed_under_load_loses_nothing_to_the_one_that_adopts_its_queues() {
    let sink = Counted::start();
    let (first, second) = dying_and_adopting("[\"gateway\"]", || sink.options());
    let rounds = if is_full() { 5 } else { 1 };
    sink.run(first.smtp, rounds, |_| {
        let lines = |text: &str| second.log().matches(text).count();
        let before = lines("everything in the adopted queues is delivered");
        kill_for_good(&first);
        wait_until("the queues to be adopted and empty", || {
            lines("everything in the adopted queues is delivered") > before
        });
        first.signal(Signal::SIGCONT);
        wait_greeting(first.smtp);
        wait_states(&first, ["sync", "sync"]);
    });
    first.wait_empty();
}

#[test]
fn an_operator_drains_the_queues_of_a_dead_gateway_and_of_a_live_one_only_by_force() {
    let next_hop = free_address();
    let first = System::start(&soon(Options::to(next_hop)));
    wait_states(&first, ["sync", "sync"]);
    for number in 0..3 {
        submit(&first, &format!("left {number}"));
    }
    // A machine with the same nodes and without a running gateway.
    let directory = tempfile::tempdir().expect("a temporary directory");
    let options = beside(&first, soon(Options::to(next_hop)), "second");
    let config = System::write_config(directory.path(), &options);
    let drain = |arguments: &[&str]| {
        let mut command = vere();
        command.args(["queue", "drain", "--here"]).args(arguments);
        command.arg("-c").arg(&config);
        command
    };
    let output = output_of(&mut drain(&["--group", "gateway"]), "");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && text.contains("gateway lives"),
        "{text}"
    );
    let text = run(&mut drain(&[]));
    assert_has(&text, &["gateway: its gateway lives, left alone"]);
    let output = output_of(&mut drain(&["--group", "nobody"]), "");
    assert!(!output.status.success());
    assert_eq!(first.queued(), 3);
    // By force: the gateway ends, and takes its queues back at its next start.
    let mut forced = Child::spawn(&mut drain(&["--group", "gateway", "--force"]));
    first.wait_log(&["another gateway has taken the queues over"]);
    let status = wait_for("the end of the drain", || forced.ended());
    assert!(!status.success(), "{status}");
    wait_until("the gateway", || first.queued_if_up() == Some(3));
    kill_for_good(&first);
    let sink = Sink::start_at(next_hop, &[]);
    let text = run(&mut drain(&["--group", "gateway"]));
    assert!(text.contains("gateway: nothing is left"), "{text}");
    sink.wait_mail(3);
    first.signal(Signal::SIGCONT);
    wait_until("the gateway", || first.queued_if_up() == Some(0));
    submit(&first, "back");
    sink.wait_mail(4);
}
