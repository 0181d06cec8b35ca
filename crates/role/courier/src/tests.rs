//! A courier between a gateway and a next hop of the tests.

use std::error::Error;
use std::fmt;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{LocalSet, spawn_local};
use vere_handoff::delivery::{Answer, Extent, Message, Outcomes, Request, answer_length};
use vere_net::resolver::{Resolver, Zone};
use vere_outbound::{NO_DOMAIN, Outbound, OutboundMetrics, STATUSES};
use vere_process::frames;
use vere_settings::Settings;

use super::error::CourierError;
use super::{AGAIN, TAKEN, next_pause, serve_gateways, service};

/// For what has to happen.
const PATIENCE: Duration = Duration::from_secs(20);
/// A text after which the next hop closes the connection.
const LAST: &[u8] = b"last\r\n";

/// The gateway's end of the connection.
struct Gateway {
    stream: UnixStream,
    /// Increases of counters so far.
    counts: Vec<(u8, u32)>,
}

impl Gateway {
    async fn ask(&mut self, requests: &[Request<'_>]) {
        let mut octets = Vec::new();
        requests
            .iter()
            .for_each(|request| request.encode(&mut octets));
        self.stream.write_all(&octets).await.unwrap();
    }

    /// The next answer about a number.
    async fn next(&mut self) -> Answer {
        loop {
            let frame = frames::read(&mut self.stream, answer_length).await.unwrap();
            match Answer::decode(&frame.expect("an answer")).unwrap() {
                Answer::Beat => {}
                Answer::Counts(counts) => {
                    assert!(!counts.is_empty());
                    self.counts.extend(counts);
                }
                answer => return answer,
            }
        }
    }

    /// Finds the hosts of a destination and connects to one of them.
    async fn open(&mut self, number: u64, destination: &str) -> Answer {
        let find = Request::Find {
            number,
            destination,
        };
        self.ask(&[find]).await;
        let found = self.next().await;
        assert!(matches!(found, Answer::Found { .. }), "{found:?}");
        self.ask(&[Request::Open { number }]).await;
        self.next().await
    }

    async fn send(&mut self, number: u64, until: u64, recipients: &[&str], body: &[u8]) -> Answer {
        let message = Message {
            number,
            until,
            envelope: &envelope(recipients),
            body,
        };
        self.ask(&[Request::Send(message)]).await;
        self.next().await
    }
}

/// The envelope of a message, in the form of the spool's records.
fn envelope(recipients: &[&str]) -> Vec<u8> {
    let text = |text: &str| [&(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat();
    let mut octets = vec![0; 32];
    octets[0] = 1;
    for field in ["ann@example.net", "", "", ""] {
        octets.extend(text(field));
    }
    octets.extend((recipients.len() as u16).to_le_bytes());
    for recipient in recipients {
        octets.push(0);
        octets.extend(text(recipient));
        octets.extend(text(""));
    }
    octets.push(0);
    octets
}

/// The surroundings of a courier. No name exists.
fn outbound() -> (Rc<Outbound>, OutboundMetrics) {
    let text = "version = 1\nhostname = \"mx.example.org\"\n";
    let settings = Settings::parse(text, "vere.toml").unwrap();
    let resolver = Resolver::from_zone(Zone::default());
    let metrics = OutboundMetrics::for_another();
    let outbound = Outbound::new(&settings.into(), resolver, metrics.clone(), None);
    (Rc::new(outbound.unwrap()), metrics)
}

fn local(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let done = runtime.block_on(async {
        let test = tokio::time::timeout(PATIENCE, test);
        LocalSet::new().run_until(test).await
    });
    done.expect("the end of the test");
}

/// Runs a test as the gateway of a courier that serves until the end of the test.
fn run(test: impl AsyncFnOnce(&mut Gateway)) {
    local(async {
        let (near, stream) = UnixStream::pair().unwrap();
        let (outbound, metrics) = outbound();
        let counts = Vec::new();
        let mut gateway = Gateway { stream, counts };
        tokio::select! {
            () = test(&mut gateway) => {}
            ended = service::serve(near, &outbound, &metrics) => panic!("{ended:?}"),
        }
    });
}

/// Returns why a courier ends after requests of the gateway.
fn error_of(requests: &[Request<'_>]) -> String {
    let mut text = String::new();
    local(async {
        let (near, stream) = UnixStream::pair().unwrap();
        let (outbound, metrics) = outbound();
        let counts = Vec::new();
        let mut gateway = Gateway { stream, counts };
        gateway.ask(requests).await;
        let error = service::serve(near, &outbound, &metrics).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        text = error.to_string();
    });
    text
}

/// A next hop, as a destination, and the transactions of that next hop.
async fn hop() -> (String, UnboundedReceiver<String>) {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let destination = format!("relay:{}", port.local_addr().unwrap());
    let (tell, heard) = unbounded_channel();
    spawn_local(async move {
        while let Ok((stream, _)) = port.accept().await {
            let tell = tell.clone();
            spawn_local(async move {
                let _ = converse(stream, &tell).await;
                let _ = tell.send("end".to_owned());
            });
        }
    });
    (destination, heard)
}

/// Tells of texts and of QUIT.
async fn converse(stream: TcpStream, tell: &UnboundedSender<String>) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    stream.write_all(b"220 hop.example\r\n").await?;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let reply = match &line[..4] {
            "DATA" => {
                stream.write_all(b"354 go on\r\n").await?;
                let mut text = String::new();
                while !text.ends_with("\r\n.\r\n") {
                    stream.read_line(&mut text).await?;
                }
                let text = text.strip_suffix(".\r\n").unwrap_or_default();
                let _ = tell.send(text.to_owned());
                if text.as_bytes().ends_with(LAST) {
                    return stream.write_all(b"250 2.0.0 ok\r\n").await;
                }
                "250 2.0.0 ok\r\n"
            }
            "RCPT" if line.contains("nobody") => "550 5.1.1 no such mailbox\r\n",
            "RCPT" if line.contains("later") => "451 4.2.0 later\r\n",
            "QUIT" => {
                let _ = tell.send("QUIT".to_owned());
                return stream.write_all(b"221 2.0.0 bye\r\n").await;
            }
            _ => "250 2.0.0 ok\r\n",
        };
        stream.write_all(reply.as_bytes()).await?;
    }
}

fn summary(outcomes: &Outcomes) -> Vec<(u8, bool, &str)> {
    let all = outcomes.recipients.iter();
    all.map(|one| (one.disposition, one.from_remote, one.status.as_str()))
        .collect()
}

#[test]
fn each_recipient_of_each_message_has_its_result() {
    run(async |gateway| {
        let (destination, mut heard) = hop().await;
        let Answer::Opened {
            number: 7,
            remote,
            security,
        } = gateway.open(7, &destination).await
        else {
            panic!("no connection");
        };
        assert!(remote.contains("127.0.0.1"), "{remote}");
        assert!(!security.is_empty());
        assert!(!gateway.counts.is_empty(), "connections count");
        let recipients = ["bob@example.org", "nobody@example.org", "later@example.org"];
        let sent = gateway.send(7, u64::MAX, &recipients, b"one\r\n").await;
        let Answer::Sent {
            number: 7,
            outcomes,
        } = sent
        else {
            panic!("{sent:?}");
        };
        assert!(outcomes.usable && !outcomes.reports_taken_over);
        assert_eq!(
            summary(&outcomes),
            [(0, true, "2.0.0"), (2, true, "5.1.1"), (1, true, "4.2.0")]
        );
        assert!(outcomes.recipients[1].reply.contains("no such mailbox"));
        // Another gateway may deliver the message after its time.
        let late = gateway.send(7, 0, &recipients[..1], b"late\r\n").await;
        let (number, usable) = (7, true);
        assert_eq!(late, Answer::Unsent { number, usable });
        let sent = gateway
            .send(7, u64::MAX, &recipients[..1], b"two\r\n")
            .await;
        assert!(matches!(sent, Answer::Sent { .. }), "{sent:?}");
        gateway.ask(&[Request::Quit { number: 7 }]).await;
        assert_eq!(gateway.next().await, Answer::Closed { number: 7 });
        for expected in ["one\r\n", "two\r\n", "QUIT", "end"] {
            let heard = heard.recv().await.unwrap();
            assert!(heard.ends_with(expected), "{heard}");
        }
        // The hosts are still known.
        gateway.ask(&[Request::Open { number: 7 }]).await;
        let opened = gateway.next().await;
        assert!(matches!(opened, Answer::Opened { .. }), "{opened:?}");
    });
}

#[test]
fn a_connection_that_the_next_hop_closes_is_told_and_takes_no_message() {
    run(async |gateway| {
        let (destination, _heard) = hop().await;
        gateway.open(7, &destination).await;
        let recipients = ["bob@example.org"];
        let sent = gateway.send(7, u64::MAX, &recipients, LAST).await;
        assert!(matches!(sent, Answer::Sent { .. }), "{sent:?}");
        assert_eq!(gateway.next().await, Answer::Closed { number: 7 });
        let unsent = gateway.send(7, u64::MAX, &recipients, b"more\r\n").await;
        let (number, usable) = (7, false);
        assert_eq!(unsent, Answer::Unsent { number, usable });
    });
}

#[test]
fn destinations_without_hosts_have_reasons() {
    run(async |gateway| {
        let find = Request::Find {
            number: 1,
            destination: "nowhere.example",
        };
        gateway.ask(&[find]).await;
        let Answer::Unroutable {
            number: 1,
            extent: Extent::Ever,
            status,
            reply,
        } = gateway.next().await
        else {
            panic!("a domain that does not exist");
        };
        assert_eq!(STATUSES[usize::from(status)], NO_DOMAIN);
        assert!(!reply.is_empty());
        // Its number is of no use any longer.
        gateway.ask(&[Request::Open { number: 1 }]).await;
        assert_eq!(gateway.next().await, Answer::Failed { number: 1 });
        // A host that does not listen may do so later.
        let port = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let destination = format!("relay:{}", port.local_addr().unwrap());
        drop(port);
        let answer = gateway.open(2, &destination).await;
        let Answer::Unroutable {
            number: 2, extent, ..
        } = answer
        else {
            panic!("{answer:?}");
        };
        assert_ne!(extent, Extent::Ever);
    });
}

#[test]
fn a_number_that_is_forgotten_has_no_connection() {
    run(async |gateway| {
        let (destination, mut heard) = hop().await;
        gateway.open(7, &destination).await;
        gateway.ask(&[Request::Forget { number: 7 }]).await;
        assert_eq!(heard.recv().await.unwrap(), "end");
        // The number may be given to another destination.
        let (destination, _heard) = hop().await;
        let opened = gateway.open(7, &destination).await;
        assert!(matches!(opened, Answer::Opened { .. }), "{opened:?}");
    });
}

#[test]
fn a_gateway_that_breaks_the_protocol_is_left() {
    let find = Request::Find {
        number: 1,
        destination: "relay:127.0.0.1:1",
    };
    let open = Request::Open { number: 1 };
    assert_eq!(
        error_of(&[find, find]),
        "expected a new number; found one in use"
    );
    assert_eq!(error_of(&[open]), "expected a number in use; found another");
    assert_eq!(
        error_of(&[find, open, open, open, open, open]),
        "expected one request for a number; found several"
    );
}

#[test]
fn a_courier_serves_one_gateway_after_another() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("couriers");
        let (outbound, metrics) = outbound();
        // The gateway may come later than the courier.
        spawn_local(serve_gateways(socket.clone(), outbound, metrics));
        tokio::task::yield_now().await;
        let port = UnixListener::bind(&socket).unwrap();
        for _ in 0..2 {
            let (mut stream, _) = port.accept().await.unwrap();
            let frame = frames::read(&mut stream, answer_length).await.unwrap();
            assert_eq!(Answer::decode(&frame.unwrap()), Ok(Answer::Beat));
        }
    });
}

/// An error with a cause.
#[derive(Debug)]
struct Caused;

impl fmt::Display for Caused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("caused")
    }
}

impl Error for Caused {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&fmt::Error)
    }
}

/// The text is that of the direct cause, so that the next one follows.
#[test]
fn an_error_shows_each_cause_once() {
    let error = CourierError::from(io::Error::other(Caused));
    assert_eq!(error.to_string(), "caused");
    let source = error.source().map(ToString::to_string);
    assert_eq!(source, Some(fmt::Error.to_string()));
}

#[test]
fn connections_that_end_at_once_grow_rare() {
    let mut pause = AGAIN;
    let mut grown = Vec::new();
    for _ in 0..6 {
        pause = next_pause(pause, Duration::from_millis(1));
        grown.push(pause.as_millis());
    }
    assert_eq!(grown, [100, 200, 400, 800, 1_000, 1_000]);
    assert_eq!(next_pause(pause, TAKEN), AGAIN);
}
