//! Accounts with access to a single queue of a gateway, with real processes.

use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::gateways::{beside, kill_for_good, soon};
use crate::harness::{
    Hook, Options, Session, Sink, System, free_address, output_of, quoted, vere, wait_for,
    wait_within,
};
use crate::replicas::wait_states;
use crate::spool_access::speaking_as;

/// A client of a system's nodes on another machine.
struct Elsewhere<'a> {
    first: &'a System,
    keys: &'a Path,
}

impl Elsewhere<'_> {
    fn options(&self, account: &str) -> Options {
        let options = speaking_as(soon(Options::default()), self.keys, account);
        beside(self.first, options, "second")
    }

    /// The output of a command as an account, or its error text.
    fn says(&self, account: &str, arguments: &[&str]) -> Result<String, String> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let config = System::write_config(directory.path(), &self.options(account));
        let mut command = vere();
        command.args(arguments).args(["--group", "gateway", "-c"]);
        let output = output_of(command.arg(&config), "");
        let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
        if output.status.success() {
            Ok(text(&output.stdout))
        } else {
            Err(text(&output.stderr))
        }
    }

    /// The queues of each node visible to an account.
    fn shown(&self, account: &str) -> [Vec<Value>; 2] {
        let text = self.says(account, &["spool", "stat", "--queues", "--json"]);
        let text = text.expect("figures");
        let stat: Value = serde_json::from_str(&text).expect("JSON");
        [0, 1].map(|node| {
            let node = &stat["nodes"][node];
            let queues = node["queues"].as_array().expect("queues").clone();
            // The account sees the group's figures as the sum of these queues, unless the account may read the group.
            let counted = account != "bill" || node["queues_count"] == queues.len();
            assert!(counted, "{node}");
            queues
        })
    }

    /// `bill` reads the queue of lines and no other, `watch` every other queue.
    fn check(&self, lines: usize) {
        for queues in self.shown("bill") {
            let [queue] = queues.as_slice() else {
                panic!("{queues:?}");
            };
            assert_eq!(queue["name"], "@finished");
            assert_eq!(queue["records"], lines);
            assert_eq!(queue["readers"][0], "bill");
        }
        let read = self.says("bill", &["spool", "read", "@finished"]);
        let read = read.expect("lines");
        assert_eq!(read.lines().count(), lines, "{read}");
        for line in read.lines() {
            let (number, line) = line.split_once('\t').expect("a number and a line");
            assert!(number.parse::<u64>().is_ok_and(|number| number > 0));
            let line: Value = serde_json::from_str(line).expect("JSON");
            assert_eq!(line["kind"], "finished", "{line}");
        }
        for queues in self.shown("watch") {
            let names: Vec<_> = queues.iter().map(|queue| &queue["name"]).collect();
            assert!(names.contains(&&Value::from("@notices")), "{names:?}");
            assert!(!names.contains(&&Value::from("@finished")), "{names:?}");
        }
        for (account, queue) in [("bill", "@notices"), ("watch", "@finished")] {
            let denied = self.says(account, &["spool", "read", queue]);
            let error = denied.expect_err("a refusal");
            let words = format!("account {account:?} may not read queue {queue:?}");
            assert!(error.contains(&words), "{error}");
        }
        let denied = self.says("other", &["spool", "read", "@finished"]);
        let error = denied.expect_err("a refusal");
        assert!(error.contains("may not read the group"), "{error}");
    }
}

/// Settings of a gateway whose lines have no consumer, and which `accounts` may read.
fn with_lines(options: Options, keys: &Path, accounts: &str) -> Options {
    let queue = format!("[[spool.queue]]\nname = \"@finished\"\nreaders = [{accounts}]\n");
    speaking_as(soon(options), keys, "east")
        .table(&queue)
        .set(
            "records.webhook",
            &format!("\"http://{}/hook\"", free_address()),
        )
        .set("records.webhook_secret", &quoted(&Hook::write_secret(keys)))
}

#[test]
fn who_may_read_the_lines_reads_nothing_else_whatever_becomes_of_the_nodes() {
    let keys = tempfile::tempdir().expect("a temporary directory");
    let (sink, away) = (Sink::start(), free_address());
    let route = || {
        let options = Options::default().route("example.com", sink.address, "");
        options.route("away.test", away, "")
    };
    let options = |accounts| with_lines(route(), keys.path(), accounts);
    let mut first = System::start(&options("\"bill\""));
    wait_states(&first, ["sync", "sync"]);
    let mut session = Session::greeted(first.smtp);
    for to in ["x@example.com", "y@away.test"] {
        session.submit_about("a@example.net", &[to], "a");
    }
    drop(session);
    let ask = |first: &System, what: &dyn Fn(&Elsewhere<'_>)| {
        let keys = keys.path();
        what(&Elsewhere { first, keys });
    };
    ask(&first, &|elsewhere| {
        wait_for("a line", || {
            let read = elsewhere.says("bill", &["spool", "read", "@finished"]);
            read.ok().filter(|lines| !lines.is_empty())
        });
        elsewhere.check(1);
    });
    // Everything begins again from the logs.
    first.crash();
    wait_states(&first, ["sync", "sync"]);
    ask(&first, &|elsewhere| elsewhere.check(1));
    // A node is filled from the other node.
    let folder = first.directory.path().join("data/spool/a");
    std::fs::remove_dir_all(&folder).expect("the node's folder");
    first.signal_role("spool a", Signal::SIGKILL);
    wait_within(Duration::from_secs(60), "a node that is filled", || {
        let node = &first.json(&["spool", "stat"])["nodes"][0];
        (node["rebuilding"] == false && node["records"] == 2).then_some(())
    });
    wait_states(&first, ["sync", "sync"]);
    ask(&first, &|elsewhere| elsewhere.check(1));
    // A gateway without a reader in its settings delivers the mail and leaves the lines to their readers.
    kill_for_good(&first);
    let hop = Sink::start_at(away, &[]);
    ask(&first, &|elsewhere| {
        let drained = elsewhere.says("west", &["queue", "drain", "--here"]);
        let drained = drained.expect("what it did");
        assert!(drained.contains("nothing is left"), "{drained}");
        hop.wait_mail(1);
        elsewhere.check(1);
    });
    first.signal(Signal::SIGCONT);
    wait_for("the gateway", || first.queued_if_up());
    wait_states(&first, ["sync", "sync"]);
    // The gateway itself may name other accounts at any start.
    first.configure(&options("\"other\""));
    first.restart();
    wait_states(&first, ["sync", "sync"]);
    ask(&first, &|elsewhere| {
        let read = elsewhere.says("other", &["spool", "read", "@finished"]);
        assert_eq!(read.expect("a line").lines().count(), 1);
        let denied = elsewhere.says("bill", &["spool", "read", "@finished"]);
        let error = denied.expect_err("a refusal");
        assert!(error.contains("may not read the group"), "{error}");
    });
}
