//! Calls to next hops over sockets: what is asked, how often, and what is kept.

use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{LocalSet, spawn_local};
use vere_handoff::question::Figures;
use vere_net::resolver::Zone;

use super::ground::{CONNECTIONS_MAX, WAITING_MAX};
use super::hop::{CONNECTIONS_PER_HOP_MAX, QUEUE_MAX};
use super::*;

mod many;
mod slow;

/// What a next hop does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Knows ann, defers late, says nothing about slow, refuses everybody else.
    Knows,
    /// Accepts everybody.
    AcceptsAll,
    /// Refuses the null reverse-path.
    RefusesReports,
    /// Says nothing from this command on; the empty one is the greeting.
    Silent(&'static str),
    /// Closes behind each transaction.
    Closes,
    /// As `Knows`, and refuses after a pause alone.
    Tarpits,
}

/// A next hop, and what it has heard.
#[derive(Debug)]
struct NextHop {
    address: SocketAddr,
    heard: Rc<RefCell<Vec<String>>>,
    connections: Rc<Cell<usize>>,
    /// One for each recipient named slow that may be answered.
    released: Rc<Semaphore>,
}

impl NextHop {
    async fn start(manner: Manner) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), manner).await
    }

    async fn start_at(address: SocketAddr, manner: Manner) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let hop = Self {
            address: listener.local_addr().unwrap(),
            heard: Rc::default(),
            connections: Rc::default(),
            released: Rc::new(Semaphore::new(0)),
        };
        let (heard, released) = (Rc::clone(&hop.heard), Rc::clone(&hop.released));
        let connections = Rc::clone(&hop.connections);
        spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                connections.set(connections.get() + 1);
                let (heard, released) = (Rc::clone(&heard), Rc::clone(&released));
                spawn_local(async move {
                    // A client that is gone is no failure of the test.
                    let _ = serve(stream, manner, &heard, &released).await;
                });
            }
        });
        hop
    }

    /// The recipients of the questions, without recipients made up for the test of the next hop.
    fn asked(&self) -> Vec<String> {
        let heard = self.heard.borrow();
        let rcpt = heard
            .iter()
            .filter_map(|line| line.strip_prefix("RCPT TO:<"));
        let own = rcpt.filter(|address| !address.starts_with("vere-call-ahead-"));
        own.map(|address| address.trim_end_matches('>').to_owned())
            .collect()
    }

    fn count(&self, beginning: &str) -> usize {
        let heard = self.heard.borrow();
        heard
            .iter()
            .filter(|line| line.starts_with(beginning))
            .count()
    }
}

async fn serve(
    stream: TcpStream,
    manner: Manner,
    heard: &RefCell<Vec<String>>,
    released: &Semaphore,
) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    if manner == Manner::Silent("") {
        std::future::pending::<()>().await;
    }
    stream.write_all(b"220 hop.example ESMTP\r\n").await?;
    let mut line = String::new();
    while stream.read_line(&mut line).await? > 0 {
        let command = line.trim_end().to_owned();
        line.clear();
        heard.borrow_mut().push(command.clone());
        if matches!(manner, Manner::Silent(from) if command.starts_with(from)) {
            std::future::pending::<()>().await;
        }
        if command.starts_with("RCPT TO:<slow") {
            released.acquire().await.unwrap().forget();
        }
        let reply = match command.split_at(4).0 {
            "EHLO" => "250-hop.example\r\n250-PIPELINING\r\n250 SIZE 1000",
            "MAIL" if manner == Manner::RefusesReports => "550 5.7.1 no reports",
            "RCPT" if manner == Manner::AcceptsAll => "250 2.1.5 ok",
            "RCPT" if command.starts_with("RCPT TO:<ann@") => "250 2.1.5 ok",
            "RCPT" if command.starts_with("RCPT TO:<slow") => "250 2.1.5 ok",
            "RCPT" if command.starts_with("RCPT TO:<late@") => "450 4.2.0 later",
            "RCPT" => {
                if manner == Manner::Tarpits {
                    tokio::time::sleep(slow::TARPIT).await;
                }
                "550 5.1.1 nobody"
            }
            "QUIT" => "221 bye",
            _ => "250 ok",
        };
        stream.write_all(format!("{reply}\r\n").as_bytes()).await?;
        let is_over = command == "QUIT" || (manner == Manner::Closes && command == "RSET");
        if is_over {
            return Ok(());
        }
    }
    Ok(())
}

fn settings(hops: &[&NextHop], rest: &str) -> Settings {
    let mut text = format!(
        "version = 1\nhostname = \"mx.example.org\"\ndata = \"/var/lib/vere\"\n[delivery]\ntls = \"off\"\n{rest}"
    );
    for (number, hop) in hops.iter().enumerate() {
        text += &format!(
            "[[route]]\ndomain = \"d{number}.example\"\nnext_hop = \"{}\"\ncall_ahead = \"yes\"\n",
            hop.address
        );
    }
    let path = Path::new("/etc/vere/vere.toml");
    Settings::parse(&text, &path.display().to_string()).unwrap()
}

const FRONT: &str = "[smtp]\nlisten = [\"127.0.0.1:25\"]\n[front]\ncall_ahead_timeout = \"1s\"\n";

fn calls(hops: &[&NextHop]) -> CallAhead {
    let resolver = Resolver::from_zone(Zone::default());
    CallAhead::new(&settings(hops, FRONT), &resolver).unwrap()
}

/// The place of the domain of a next hop.
fn place(hop: &NextHop) -> Place {
    Place::relay(&hop.address.ip().to_string(), hop.address.port())
}

/// A client of the network of this number.
fn client(number: u8) -> IpAddr {
    [192, 0, number, 1].into()
}

fn begun(calls: &CallAhead, hop: &NextHop, address: &str, of: IpAddr) -> Result<Answer, Later> {
    calls.ask(7, (&place(hop), address), (of, &Places::default()))
}

/// Asks and waits for the answer.
async fn ask(calls: &CallAhead, hop: &NextHop, address: &str) -> Answer {
    match begun(calls, hop, address, client(1)) {
        Ok(answer) => answer,
        Err(later) => {
            let (id, answer) = later.await;
            assert_eq!(id, 7);
            answer
        }
    }
}

/// The answer that was there at once.
fn at_once(asked: Result<Answer, Later>) -> Answer {
    asked.unwrap_or_else(|_| panic!("a call"))
}

fn unknown() -> Answer {
    refused(&Refusal::MailboxUnknown)
}

fn unverified() -> Answer {
    refused(&Refusal::RecipientUnverified)
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(LocalSet::new().run_until(test));
}

#[test]
fn a_next_hop_decides_and_is_asked_once() {
    run(async {
        let hop = NextHop::start(Manner::Knows).await;
        let calls = calls(&[&hop]);
        assert_eq!(ask(&calls, &hop, "ann@d0.example").await, Answer::Accepted);
        assert_eq!(ask(&calls, &hop, "bob@d0.example").await, unknown());
        assert_eq!(ask(&calls, &hop, "late@d0.example").await, unverified());
        // The calls have been made; the case of a domain makes no other recipient.
        for (address, expected) in [
            ("ann@D0.example", Answer::Accepted),
            ("bob@d0.example", unknown()),
            ("late@d0.example", unverified()),
        ] {
            assert_eq!(at_once(begun(&calls, &hop, address, client(1))), expected);
        }
        assert_eq!(
            hop.asked(),
            ["ann@d0.example", "bob@d0.example", "late@d0.example"]
        );
        // The recipient that nobody can have is asked about once for the domain.
        assert_eq!(hop.count("RCPT"), 4);
        assert_eq!(hop.count("MAIL FROM:<>"), 3);
        assert_eq!(hop.count("DATA") + hop.count("BDAT"), 0);
        assert_eq!(hop.connections.get(), 1);
        let expected = Figures {
            calls_accepted: 1,
            calls_refused: 1,
            calls_unavailable: 1,
            answers_kept: 3,
            answers_called: 3,
            connections: 1,
            ..Figures::default()
        };
        assert_eq!(calls.figures(), expected);
    });
}

#[test]
fn questions_about_one_recipient_share_a_call() {
    run(async {
        let hop = NextHop::start(Manner::Knows).await;
        let calls = calls(&[&hop]);
        let ask = |number| begun(&calls, &hop, "slow@d0.example", client(number));
        let waiting: Vec<Later> = (0..20).map(|number| ask(number).unwrap_err()).collect();
        hop.released.add_permits(1);
        for later in waiting {
            assert_eq!(later.await.1, Answer::Accepted);
        }
        assert_eq!(hop.asked(), ["slow@d0.example"]);
        let figures = calls.figures();
        assert_eq!((figures.answers_called, figures.answers_shared), (1, 19));
    });
}

/// The one who asks first may be gone before the answer.
#[test]
fn a_call_outlives_the_question_that_began_it() {
    run(async {
        let hop = NextHop::start(Manner::Knows).await;
        let calls = calls(&[&hop]);
        drop(begun(&calls, &hop, "slow@d0.example", client(1)).unwrap_err());
        let second = begun(&calls, &hop, "slow@d0.example", client(2)).unwrap_err();
        hop.released.add_permits(1);
        assert_eq!(second.await.1, Answer::Accepted);
        assert_eq!(hop.asked(), ["slow@d0.example"]);
    });
}

#[test]
fn a_next_hop_that_accepts_everybody_is_not_asked_about_each() {
    run(async {
        let hop = NextHop::start(Manner::AcceptsAll).await;
        let calls = calls(&[&hop]);
        assert_eq!(ask(&calls, &hop, "ann@d0.example").await, Answer::Accepted);
        for number in 0..50 {
            let asked = begun(&calls, &hop, &format!("u{number}@d0.example"), client(1));
            assert_eq!(at_once(asked), Answer::Accepted);
        }
        assert_eq!(hop.asked(), ["ann@d0.example"]);
    });
}

/// Without SMTPUTF8, the recipient is refused here, and the next hop hears of the probe alone.
#[test]
fn a_recipient_that_needs_smtputf8_leaves_the_probe_its_result() {
    run(async {
        let hop = NextHop::start(Manner::AcceptsAll).await;
        let calls = calls(&[&hop]);
        let address = "j\u{fc}rgen@d0.example";
        assert_eq!(ask(&calls, &hop, address).await, unknown());
        let asked = begun(&calls, &hop, "ann@d0.example", client(1));
        assert_eq!(at_once(asked), Answer::Accepted);
        assert_eq!(hop.asked(), [""; 0]);
        assert_eq!(hop.count("RCPT TO:<vere-call-ahead-"), 1);
    });
}

#[test]
fn a_next_hop_that_holds_still_is_given_up_at_every_stage_up_to_mail() {
    run(async {
        for from in ["", "EHLO", "MAIL"] {
            let hop = NextHop::start(Manner::Silent(from)).await;
            let calls = calls(&[&hop]);
            let answer = ask(&calls, &hop, "ann@d0.example").await;
            assert_eq!(answer, unverified(), "from {from:?}");
            // Nobody else waits for it.
            let asked = begun(&calls, &hop, "bob@d0.example", client(1));
            assert_eq!(at_once(asked), unverified(), "from {from:?}");
            let figures = calls.figures();
            assert_eq!((figures.calls_unavailable, figures.answers_denied), (1, 1));
            assert_eq!(calls.shared.waiting.available_permits(), WAITING_MAX);
            assert!(calls.shared.shares.borrow().is_empty());
        }
    });
}

#[test]
fn a_next_hop_that_cannot_be_asked_is_treated_by_the_settings() {
    run(async {
        let reports = NextHop::start(Manner::RefusesReports).await;
        let away = NextHop {
            address: "127.0.0.1:1".parse().unwrap(),
            ..NextHop::start(Manner::Knows).await
        };
        let hops = [&reports, &away];
        let resolver = Resolver::from_zone(Zone::default());
        let calls = CallAhead::new(&settings(&hops, FRONT), &resolver).unwrap();
        for hop in hops {
            assert_eq!(ask(&calls, hop, "ann@d0.example").await, unverified());
        }
        let accepting = format!("{FRONT}call_ahead_unavailable = \"accept\"\n");
        let other = settings(&hops, &accepting);
        calls.set_settings(&other, &resolver).unwrap();
        for hop in hops {
            assert_eq!(ask(&calls, hop, "ann@d0.example").await, Answer::Accepted);
        }
        // No route wants calls any more; a question that was read before the reload is no reason to accept.
        let without = settings(&[], FRONT);
        calls.set_settings(&without, &resolver).unwrap();
        let asked = begun(&calls, &reports, "ann@d0.example", client(1));
        assert_eq!(at_once(asked), refused(&Refusal::LocalError));
    });
}

#[test]
fn a_slow_next_hop_has_its_bounds_and_delays_no_other() {
    run(async {
        let (slow, other) = (
            NextHop::start(Manner::Silent("MAIL")).await,
            NextHop::start(Manner::Knows).await,
        );
        let calls = calls(&[&slow, &other]);
        let mut waiting = Vec::new();
        let mut denied = 0;
        for network in 0..40 {
            for number in 0..SHARE_MAX {
                let address = format!("u{network}-{number}@d0.example");
                match begun(&calls, &slow, &address, client(network)) {
                    Ok(answer) => {
                        assert_eq!(answer, unverified());
                        denied += 1;
                    }
                    Err(later) => waiting.push(later),
                }
            }
        }
        // The tasks have not run yet, so that every call stands in the queue.
        assert_eq!(waiting.len(), QUEUE_MAX);
        assert_eq!(denied, 40 * SHARE_MAX as usize - QUEUE_MAX);
        let asked = begun(&calls, &other, "ann@d1.example", client(200));
        assert_eq!(asked.unwrap_err().await.1, Answer::Accepted);
        assert!(slow.connections.get() <= CONNECTIONS_PER_HOP_MAX);
        for later in waiting {
            assert_eq!(later.await.1, unverified());
        }
        assert_eq!(slow.connections.get(), CONNECTIONS_PER_HOP_MAX);
        assert_eq!(slow.asked().len(), 0);
    });
}

#[test]
fn the_clients_of_a_network_have_a_share() {
    run(async {
        let hop = NextHop::start(Manner::Knows).await;
        let calls = calls(&[&hop]);
        let ask =
            |number: u32, of: IpAddr| begun(&calls, &hop, &format!("slow{number}@d0.example"), of);
        let mut waiting: Vec<Later> = (0..SHARE_MAX)
            .map(|number| ask(number, client(1)).unwrap_err())
            .collect();
        let neighbour = [192, 0, 1, 200].into();
        assert_eq!(at_once(ask(99, neighbour)), unverified());
        waiting.push(ask(98, client(2)).unwrap_err());
        hop.released.add_permits(100);
        for later in waiting {
            assert_eq!(later.await.1, Answer::Accepted);
        }
        assert!(ask(99, neighbour).is_err(), "the share has come back");
    });
}

#[test]
fn connections_in_all_are_bounded() {
    run(async {
        let hop = NextHop::start(Manner::Knows).await;
        let calls = calls(&[&hop]);
        let all = Arc::clone(&calls.shared.connections);
        let taken = all.acquire_many(CONNECTIONS_MAX as u32).await.unwrap();
        let asked = begun(&calls, &hop, "ann@d0.example", client(1));
        assert_eq!(at_once(asked), unverified());
        drop(taken);
        assert_eq!(ask(&calls, &hop, "ann@d0.example").await, Answer::Accepted);
        assert_eq!(all.available_permits(), CONNECTIONS_MAX - 1);
    });
}

#[test]
fn a_connection_that_the_next_hop_has_closed_is_made_again() {
    run(async {
        let hop = NextHop::start(Manner::Closes).await;
        let calls = calls(&[&hop]);
        for address in ["ann@d0.example", "bob@d0.example", "eve@d0.example"] {
            let expected = match address {
                "ann@d0.example" => Answer::Accepted,
                _ => unknown(),
            };
            assert_eq!(ask(&calls, &hop, address).await, expected);
        }
        assert_eq!(hop.connections.get(), 3);
    });
}

/// Servers end a session after some errors.
#[test]
fn a_connection_ends_after_some_refused_recipients() {
    run(async {
        let hop = NextHop::start(Manner::Knows).await;
        let calls = calls(&[&hop]);
        for number in 0..20 {
            let answer = ask(&calls, &hop, &format!("u{number}@d0.example")).await;
            assert_eq!(answer, unknown());
        }
        // 7 calls with the recipient that nobody can have, then 8, then the rest.
        assert_eq!(hop.connections.get(), 3);
    });
}

/// A next hop whose name leads to a listener of this system would ask itself.
#[test]
fn this_system_is_never_asked() {
    run(async {
        let hop = NextHop::start(Manner::AcceptsAll).await;
        let zone = Zone::parse("me.example A 127.0.0.1\n").unwrap();
        let port = hop.address.port();
        let text = format!(
            "version = 1\nhostname = \"mx.example.org\"\n[smtp]\nlisten = [\"127.0.0.1:{port}\"]\n[front]\n\
             [[route]]\ndomain = \"d0.example\"\nnext_hop = \"me.example:{port}\"\ncall_ahead = \"yes\"\n"
        );
        let settings = Settings::parse(&text, "/etc/vere/vere.toml").unwrap();
        let calls = CallAhead::new(&settings, &Resolver::from_zone(zone)).unwrap();
        let place = Place::relay("me.example", port);
        let asked = calls.ask(
            7,
            (&place, "ann@d0.example"),
            (client(1), &Places::default()),
        );
        assert_eq!(asked.unwrap_err().await.1, unverified());
        assert_eq!(hop.connections.get(), 0);
    });
}

/// Two systems whose routes lead to each other: the recipient comes back while the call is under way.
#[test]
fn a_loop_of_calls_ends_with_the_first() {
    run(async {
        let hop = NextHop::start(Manner::Knows).await;
        let calls = calls(&[&hop]);
        let first = begun(&calls, &hop, "slow@d0.example", client(1)).unwrap_err();
        let back = begun(&calls, &hop, "slow@d0.example", hop.address.ip()).unwrap_err();
        // The next hop answers the first only when it has its own answer.
        assert_eq!(back.await.1, unverified());
        assert_eq!(first.await.1, unverified());
        assert_eq!(hop.asked(), ["slow@d0.example"]);
        assert_eq!(hop.connections.get(), 1);
    });
}
