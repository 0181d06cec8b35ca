//! Lines about messages for other systems: a line for every end, whatever is killed, and no line is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::gateways::{adopted, beside, kill_for_good, soon, submit};
use crate::harness::{
    Hook, Options, Session, Sink, System, acked_under_kills, answer, free_address, is_full, quoted,
    read_post, say, wait_for, wait_until,
};
use crate::metrics;
use crate::replicas::wait_states;

/// Settings that write lines into a file, and the file.
fn to_file(options: Options, folder: &Path) -> Options {
    options.set("records.file", &quoted(&folder.join("records.jsonl")))
}

/// Every written line, in all files.
fn lines(folder: &Path) -> Vec<Value> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_string_lossy().contains("records.jsonl"))
        .collect();
    files.sort();
    let texts = files
        .iter()
        .map(|path| std::fs::read_to_string(path).expect("a file"));
    let text: String = texts.collect();
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| panic!("JSON: {line}"));
    // The last line may be incomplete.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(parse).collect()
}

/// The lines of a kind by id; lines with a common id are equal.
fn by_id(lines: &[Value], kind: &str) -> BTreeMap<String, Value> {
    let mut found: BTreeMap<String, Value> = BTreeMap::new();
    for line in lines.iter().filter(|line| line["kind"] == kind) {
        let id = line["id"].as_str().expect("an id").to_owned();
        if let Some(before) = found.insert(id, line.clone()) {
            assert_eq!(before, *line, "two lines of one id");
        }
    }
    found
}

/// Every written notice, once.
pub(crate) fn notices(folder: &Path) -> Vec<Value> {
    by_id(&lines(folder), "notice").into_values().collect()
}

/// The ids of the lines about each message's end.
fn ends(lines: &[Value]) -> BTreeMap<String, BTreeSet<String>> {
    let mut ends: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (id, line) in by_id(lines, "finished") {
        let message = line["message"].as_str().expect("a message").to_owned();
        ends.entry(message).or_default().insert(id);
    }
    ends
}

#[test]
fn every_acknowledged_message_has_one_line_though_everything_is_killed() {
    let (count, kills) = if is_full() { (4_000, 30) } else { (400, 8) };
    let folder = tempfile::tempdir().expect("a folder");
    let sink = Sink::start();
    let options = to_file(Options::to(sink.address), folder.path())
        .set("limits.connections_per_client_max", "1000")
        .set("log.level", "\"warn\"");
    let system = System::start(&options);
    let size = (count, kills);
    let acked = acked_under_kills(&system, size, "a@example.net", &["x@example.com"]);
    system.wait_empty();
    let ends = wait_for("a line for every message", || {
        let ends = ends(&lines(folder.path()));
        acked.iter().all(|id| ends.contains_key(id)).then_some(ends)
    });
    for id in &acked {
        assert_eq!(ends[id].len(), 1, "{id}: {:?}", ends[id]);
    }
    system.stop();
    // A line after the last view has an id that existed before.
    let all = lines(folder.path());
    for (id, line) in by_id(&all, "finished") {
        let last = &line["last"];
        assert!(id.starts_with(line["message"].as_str().expect("a message")) && *last == true);
        assert_eq!(line["recipients"][0]["result"], "relayed", "{line}");
    }
    say(&format!("{} messages, {} lines", acked.len(), all.len()));
}

#[test]
fn what_is_told_of_ends_and_notifications_follows_the_schema() {
    let folder = tempfile::tempdir().expect("a folder");
    let (away, sink) = (
        free_address(),
        Sink::with_faults(&["rcpt=550 5.1.1 nobody"]),
    );
    let options = to_file(Options::default(), folder.path())
        .route("refuses.test", sink.address, "")
        .route("away.test", away, "")
        .set("gateway.name", "\"mx1\"");
    let system = System::start(&options);
    let mut session = Session::greeted(system.smtp);
    let text = "Subject: a\r\nMessage-ID: <m@example.net>\r\n\r\nbody";
    let refused = session.submit("alice@example.org", &["x@refuses.test"], text);
    let local = session.submit("a@away.test", &["bob@example.org"], text);
    let purged = session.submit("a@away.test", &["y@away.test"], text);
    wait_until("the attempts", || system.queued() == 1);
    let queue = format!("relay:{away}");
    system.command(&["queue", "hold", &queue]);
    wait_until("an empty queue", || {
        system.command(&["queue", "purge", "--yes", &queue]);
        system.queued() == 0
    });
    system.command(&["queue", "release", &queue]);
    let found = wait_for("all lines", || {
        let lines = lines(folder.path());
        let count = |kind| by_id(&lines, kind).len();
        // The report itself ends as well.
        (count("finished") == 4 && count("notice") == 3).then_some(lines)
    });
    let finished = by_id(&found, "finished");
    for (message, destination, result) in [
        (&refused, format!("relay:{}", sink.address), "failed"),
        (&local, "local".to_owned(), "delivered"),
        (&purged, queue, "removed"),
    ] {
        let line = of(&finished, message);
        assert_eq!((&line["v"], &line["gateway"]), (&1.into(), &"mx1".into()));
        assert_eq!(line["recipients"][0]["result"], result, "{line}");
        assert_eq!(line["message_id"], "<m@example.net>");
        assert_eq!(line["destination"], destination);
    }
    check_notices(&by_id(&found, "notice"), &finished, &refused);
}

/// The line about a message.
fn of<'a>(lines: &'a BTreeMap<String, Value>, message: &str) -> &'a Value {
    let mut lines = lines.values();
    lines
        .find(|line| line["message"] == message)
        .expect("a line")
}

fn check_notices(
    notices: &BTreeMap<String, Value>,
    finished: &BTreeMap<String, Value>,
    refused: &str,
) {
    let words: BTreeSet<_> = notices
        .values()
        .map(|line| line["notice"].as_str())
        .collect();
    assert_eq!(
        words,
        [Some("failed"), Some("held"), Some("released")].into()
    );
    let mut lines = notices.values();
    let failed = lines.find(|line| line["notice"] == "failed").expect("it");
    let to = &failed["to"];
    assert_eq!(
        (&failed["message"], to),
        (&refused.into(), &"alice@example.org".into())
    );
    let report = of(
        finished,
        failed["report"].as_str().expect("the report's id"),
    );
    assert_eq!(
        (&report["from"], &report["last"]),
        (&"".into(), &true.into())
    );
}

/// How a server behaves.
const HANGS: u32 = 0;
const REDIRECTS: u32 = 1;
const FAILS: u32 = 2;
const CUTS: u32 = 3;
const TAKES: u32 = 4;

/// A web server that misbehaves on demand, and keeps the posts.
struct Moody {
    hook: Hook,
    mood: Arc<AtomicU32>,
    asked: Arc<AtomicU32>,
    taken: Arc<Mutex<Vec<Value>>>,
}

impl Moody {
    fn start() -> Self {
        let (mood, asked) = (Arc::<AtomicU32>::default(), Arc::<AtomicU32>::default());
        let taken = Arc::<Mutex<Vec<Value>>>::default();
        let (mooded, counted, kept) = (Arc::clone(&mood), Arc::clone(&asked), Arc::clone(&taken));
        let mut hung = Vec::new();
        let hook = Hook::start(move |stream| {
            counted.fetch_add(1, Ordering::Relaxed);
            match mooded.load(Ordering::Relaxed) {
                HANGS => hung.push(stream),
                mood => {
                    // A client killed meanwhile does not matter.
                    let _ = meet(&stream, mood, &kept);
                }
            }
        });
        Self {
            hook,
            mood,
            asked,
            taken,
        }
    }

    /// Behaves as told from now on; waits until a client has met the behaviour.
    fn behave(&self, mood: u32) {
        self.mood.store(mood, Ordering::Relaxed);
        let before = self.asked.load(Ordering::Relaxed);
        wait_until("a post", || self.asked.load(Ordering::Relaxed) > before);
    }

    fn taken(&self) -> Vec<Value> {
        self.taken.lock().expect("no panic").clone()
    }
}

fn meet(stream: &TcpStream, mood: u32, taken: &Mutex<Vec<Value>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let lines = read_post(&mut reader)?;
    let status = match mood {
        REDIRECTS => "302 Found\r\nlocation: /elsewhere",
        FAILS => "500 No",
        CUTS => return Ok(()),
        _ => "204 Yes",
    };
    if mood == TAKES {
        taken.lock().expect("no panic").extend(lines);
    }
    reader.get_mut().write_all(answer(status).as_bytes())
}

#[test]
fn a_web_server_that_fails_delays_lines_and_then_mail_and_loses_neither() {
    let (moody, sink, endpoint) = (Moody::start(), Sink::start(), free_address());
    let folder = tempfile::tempdir().expect("a folder");
    let secret = Hook::write_secret(folder.path());
    let options = Options::to(sink.address)
        .set(
            "records.webhook",
            &format!("\"http://{}/hook\"", moody.hook.address),
        )
        .set("records.webhook_secret", &quoted(&secret))
        .set("records.webhook_timeout", "\"1s\"")
        .set("records.waiting_max", "\"64 KiB\"")
        .set("metrics.listen", &format!("\"{endpoint}\""));
    let system = System::start(&options);
    let mut ids = BTreeSet::new();
    // Each line has many recipients: a few lines fill the queue of lines.
    let recipients: Vec<_> = (0..90)
        .map(|number| format!("{}{number}@{}.example.com", "r".repeat(50), "d".repeat(60)))
        .collect();
    let recipients: Vec<_> = recipients.iter().map(String::as_str).collect();
    let mut session = Session::greeted(system.smtp);
    wait_for("a refusal", || {
        session.send(b"MAIL FROM:<a@example.net>\r\n");
        let reply = session.reply();
        if reply.starts_with("452 4.3.1") {
            return Some(());
        }
        assert!(reply.starts_with("250"), "{reply}");
        session.command("RSET", "250");
        ids.insert(session.submit_about("a@example.net", &recipients, "a"));
        system.wait_empty();
        None
    });
    assert!(ids.len() > 2, "{}", ids.len());
    metrics::assert_lines(endpoint, &["vere_records_refused_total 1"]);
    for mood in [REDIRECTS, FAILS, CUTS] {
        moody.behave(mood);
    }
    assert_eq!(moody.taken(), [] as [Value; 0]);
    system.kill_and_wait("gateway");
    wait_for("the gateway", || system.queued_if_up());
    moody.behave(TAKES);
    wait_for("all lines", || {
        let ends = ends(&moody.taken());
        let found: BTreeSet<_> = ends.keys().cloned().collect();
        (found == ids).then(|| assert!(ends.values().all(|ids| ids.len() == 1)))
    });
    wait_until("mail to be taken again", || {
        let mut session = Session::greeted(system.smtp);
        session.send(b"MAIL FROM:<a@example.net>\r\n");
        session.reply().starts_with("250")
    });
}

#[test]
fn a_full_node_tells_of_ends_all_the_same() {
    let (next_hop, folder) = (free_address(), tempfile::tempdir().expect("a folder"));
    let options = to_file(Options::to(next_hop), folder.path())
        .set("spool.memory_max", "\"16 MiB\"")
        .set("spool.spill_max", "\"0 MiB\"")
        .set("spool.segment_size", "\"1 MiB\"")
        .set("limits.throttle_from", "100");
    let system = System::start(&options);
    let text = format!(
        "Subject: a\r\n\r\n{}",
        "A line of the body.\r\n".repeat(25_000)
    );
    let mut ids = BTreeSet::new();
    let mut session = Session::greeted(system.smtp);
    wait_for("a full node", || {
        let reply = session.offer("a@example.net", "x@example.com", &text);
        if reply.starts_with("452") {
            return Some(());
        }
        assert!(reply.starts_with("250"), "{reply}");
        ids.insert(reply.split_whitespace().last().expect("an id").to_owned());
        None
    });
    assert!(ids.len() > 10, "{}", ids.len());
    let _sink = Sink::start_at(next_hop, &[]);
    system.wait_empty();
    wait_until("all lines", || {
        let found: BTreeSet<_> = ends(&lines(folder.path())).into_keys().collect();
        found == ids
    });
}

#[test]
fn who_delivers_for_a_dead_gateway_tells_of_it() {
    let next_hop = free_address();
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let options = to_file(soon(Options::to(next_hop)), folders[0].path());
    let first = System::start(&options);
    let options = to_file(soon(Options::to(next_hop)), folders[1].path());
    let options = beside(&first, options, "second").set("gateway.adopts", "[\"*\"]");
    let second = System::start(&options);
    wait_states(&first, ["sync", "sync"]);
    for number in 0..5 {
        submit(&first, &format!("left {number}"));
    }
    kill_for_good(&first);
    wait_until("the adopted messages", || adopted(&second) == 5);
    let sink = Sink::start_at(next_hop, &[]);
    sink.wait_mail(5);
    let told = wait_for("a line of each", || {
        let lines = by_id(&lines(folders[1].path()), "finished");
        (lines.len() == 5).then_some(lines)
    });
    assert!(told.values().all(|line| line["gateway"] == "second"));
    // The group is empty: its own gateway finds no line to send again.
    wait_until("the group to be given back", || {
        second
            .log()
            .contains("everything in the adopted queues is delivered")
    });
    first.signal(Signal::SIGCONT);
    wait_until("the first gateway", || first.queued_if_up() == Some(0));
    submit(&first, "own");
    wait_until("the line of it", || {
        ends(&lines(folders[0].path())).len() == 1
    });
}
