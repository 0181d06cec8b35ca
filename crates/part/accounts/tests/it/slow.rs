//! Servers that trickle, hold still, or send signs of life and nothing else.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use vere_accounts::{Link, Times, dial};
use vere_imap::client::Command;
use vere_ports::mail_accounts::{Answer, Fault, Request};

use crate::harness::{Volume, append, mail, run, settings};

/// A server that answers login and NAMESPACE, and then gives each connection to `then`.
fn server(then: impl Fn(TcpStream) + Send + Sync + Clone + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let then = then.clone();
            std::thread::spawn(move || {
                if let Ok(stream) = admit(stream) {
                    then(stream);
                }
            });
        }
    });
    address
}

fn admit(mut stream: TcpStream) -> std::io::Result<TcpStream> {
    let able = "IMAP4rev1 AUTH=PLAIN SASL-IR LITERAL+ UIDPLUS NAMESPACE QUOTA";
    let mut reader = BufReader::new(stream.try_clone()?);
    stream.write_all(format!("* OK [CAPABILITY {able}] hello\r\n").as_bytes())?;
    for said in [
        format!("OK [CAPABILITY {able}] in\r\n"),
        "OK done\r\n".to_owned(),
    ] {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let tag = line.split(' ').next().unwrap_or_default();
        if said.contains("done") {
            stream.write_all(b"* NAMESPACE ((\"\" \"/\")) NIL NIL\r\n")?;
        }
        stream.write_all(format!("{tag} {said}").as_bytes())?;
    }
    Ok(stream)
}

/// Sends a piece again and again.
fn repeats(piece: &'static [u8], pause: Duration) -> impl Fn(TcpStream) + Clone {
    move |mut stream| {
        while stream.write_all(piece).is_ok() {
            std::thread::sleep(pause);
        }
    }
}

const TIMES: Times = Times {
    wait: Duration::from_secs(10),
    silence: Duration::from_millis(500),
    patience: Duration::from_millis(1_500),
    longest: Duration::from_secs(4),
};

/// How an account answers, and after how long.
fn asked(address: SocketAddr, request: Request) -> (Result<Answer, Fault>, Duration) {
    let mut answer = (Ok(Answer::Gone), Duration::ZERO);
    run(async {
        let mut settings = settings(address, 1);
        settings.times = TIMES;
        let mut volume = Volume::new(settings);
        let begin = Instant::now();
        answer = (volume.ask(request).await, begin.elapsed());
    });
    answer
}

#[test]
fn a_server_that_trickles_is_given_up() {
    // An octet at a time, within a response that never ends.
    let address = server(repeats(b"*", Duration::from_millis(100)));
    let (answer, took) = asked(address, append("data", &mail("x", b"y")));
    let Err(Fault::Unreachable(text)) = answer else {
        panic!("{answer:?}");
    };
    assert!(text.contains("too slow"), "{text}");
    assert!((1_400..3_900).contains(&took.as_millis()), "{took:?}");
}

#[test]
fn a_server_that_holds_still_is_given_up() {
    let address = server(|stream| {
        std::thread::sleep(Duration::from_secs(30));
        drop(stream);
    });
    let (answer, took) = asked(address, append("data", &mail("x", b"y")));
    assert!(matches!(answer, Err(Fault::Unreachable(_))), "{answer:?}");
    assert!(took < Duration::from_secs(4), "{took:?}");
}

#[test]
fn signs_of_life_help_for_a_while() {
    let address = server(repeats(
        b"* OK Hang in there..\r\n",
        Duration::from_millis(300),
    ));
    let (answer, took) = asked(address, append("data", &mail("x", b"y")));
    let Err(Fault::Unreachable(text)) = answer else {
        panic!("{answer:?}");
    };
    assert!(text.contains("the end of a command within 4s"), "{text}");
    assert!((3_900..8_000).contains(&took.as_millis()), "{took:?}");
}

/// A slow line is no fault: an answer that needs longer than the patience, at more than the floor, arrives.
#[test]
fn a_slow_answer_arrives() {
    let address = server(|mut stream| {
        let mut line = String::new();
        let mut reader = BufReader::new(stream.try_clone().expect("a descriptor"));
        while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
            let tag = line.split(' ').next().unwrap_or_default().to_owned();
            if line.contains("GETQUOTAROOT") {
                for _ in 0..25 {
                    let noise = format!("* OK {}\r\n", "x".repeat(600));
                    stream.write_all(noise.as_bytes()).expect("a client");
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
            if stream
                .write_all(format!("{tag} OK\r\n").as_bytes())
                .is_err()
            {
                return;
            }
            line.clear();
        }
    });
    let (answer, took) = asked(address, Request::Quota);
    assert_eq!(answer, Ok(Answer::Quota(None)));
    assert!(took > Duration::from_secs(2), "{took:?}");
}

/// The same for import and export, which talk to a single account.
#[test]
fn a_single_session_gives_up_too() {
    let address = server(repeats(b"*", Duration::from_millis(50)));
    run(async {
        let remote = settings(address, 1).remote;
        let listing = async {
            let mut link: Link = dial(&remote).await.expect("a login");
            link.patience(TIMES);
            link.run(&Command::Namespace, &mut vere_accounts::deaf)
                .await
                .expect("an answer");
            link.run(&Command::Noop, &mut vere_accounts::deaf).await
        };
        let ended = tokio::time::timeout(Duration::from_secs(10), listing).await;
        let failure = ended.expect("an end").expect_err("no answer");
        assert!(failure.to_string().contains("too slow"), "{failure}");
    });
}
