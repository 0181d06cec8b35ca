//! Mail under load while processes are killed: what was acknowledged arrives, counted by id.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::signal::Signal;
use vere_bench::Corpus;
use vere_bench::kill::{KillPlan, KillReport, run};
use vere_bench::load::{LoadEnd, LoadOptions, Messages};
use vere_bench::sink::{RunningSink, SinkOptions};

use crate::harness::{Options, System, is_full, say, skip, wait_until};

/// Where the corpus lies beside the repository.
const CORPUS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../../shared/corpus/mail.mbox.zst"
);

/// Connections to the destination at once.
const CONNECTIONS: usize = 20;

#[test]
fn every_acknowledged_message_arrives_though_gateway_and_node_are_killed() {
    let (count, kills) = if is_full() { (10_000, 20) } else { (2_000, 6) };
    let sink = RunningSink::start(SinkOptions {
        remember: true,
        ..SinkOptions::default()
    })
    .expect("a sink");
    let options = Options::to(sink.handle().address())
        .set(
            "delivery.connections_per_destination_max",
            &CONNECTIONS.to_string(),
        )
        .set("limits.connections_per_client_max", "1000")
        .set("limits.messages_per_connection_max", "100000")
        .set("log.level", "\"warn\"");
    let system = System::start(&options);
    let load = LoadOptions {
        messages: messages(count),
        reply_timeout: Duration::from_secs(60),
        duration_max: Duration::from_secs(600),
        ..LoadOptions::new(system.smtp, LoadEnd::Count(count))
    };
    let plan = KillPlan {
        count,
        kills,
        ..KillPlan::new(load, seed())
    };
    let report = run(&plan, sink.handle(), |moment| {
        // Both nodes at once as well: only their logs are left then.
        let roles = ["gateway", "spool a", "spool b", "spool"];
        let role = roles[(moment.random % 4) as usize];
        // The process may be away since the kill before.
        wait_until("a process to kill", || {
            system.signal_role(role, Signal::SIGKILL) > 0
        });
    })
    .expect("the load runs");
    say(&report.line());
    assert!(
        report.is_clean(&plan),
        "{}\n{}",
        report.line(),
        ids(&report)
    );
    system.wait_empty();
}

/// Real mail where there is some, else the mix of the benchmark.
fn messages(count: u32) -> Messages {
    let path = std::env::var_os("VERE_CORPUS").map_or_else(|| CORPUS.into(), PathBuf::from);
    if !path.is_file() {
        skip(
            "real mail in the kill test",
            &format!("no corpus at {}; set VERE_CORPUS", path.display()),
        );
        return Messages::mix();
    }
    let corpus = Corpus::read(&path, count as usize).expect("the corpus");
    Messages::Corpus(Arc::new(corpus))
}

fn seed() -> u64 {
    if let Ok(text) = std::env::var("VERE_SEED") {
        return text.parse().expect("VERE_SEED is a number");
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("after 1970").as_secs()
}

/// The ids with a broken promise, the first few of each.
fn ids(report: &KillReport) -> String {
    let list = |label: &str, ids: &[vere_bench::MessageId]| {
        let some: Vec<_> = ids.iter().take(20).map(ToString::to_string).collect();
        format!("{label}: {}\n", some.join(" "))
    };
    let refused: Vec<_> = report.refused.iter().map(|(id, _)| *id).collect();
    list("missing", &report.missing)
        + &list("doubled without cause", &report.doubled_without_cause)
        + &list("unresolved", &report.unresolved)
        + &list("refused", &refused)
}
