//! Processes of every manner: this very test is started again, as [`a_process`].

use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::Command;

use vere_mime::wire::{READY_OCTETS, Request, Texts, answer, read_ready};

use super::*;
use crate::Decoders;
use crate::child::{ENVIRONMENT, Limits, serve};

mod decoders;

/// Says to [`a_process`] what it is to be.
const MANNER: &str = "VERE_TEST_PARSER";
/// The variable that tells a process that earlier processes misbehaved.
const TOLD: &str = "VERE_TEST_TOLD";
/// A word and its octets that make some processes behave.
const POISON: &[u8] = b"poison";
/// No test waits so long.
const FOR_EVER: Duration = Duration::from_secs(600);

const MESSAGE: &[u8] = b"From: a@b.c\r\nSubject: poison\r\nMessage-ID: <1@b>\r\n\
    Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n\r\none\r\n--x--\r\n";
const OTHER: &[u8] = b"Subject: another\r\n\r\nmessage\r\n";

/// The manners of a process that ends, or has to be ended, at a message that is poisoned.
const ENDING: [&str; 12] = [
    "dies",
    "opens",
    "connects",
    "starts a program",
    "starts a thread",
    "spins",
    "bombs",
    "hoards",
    "overflows",
    "lies",
    "boasts",
    "babbles",
];
/// Those of one that says nothing in time.
const SILENT: [&str; 3] = ["hangs", "is short", "drips"];

/// Is no test: other tests start it as the process that takes messages apart.
#[test]
fn a_process() {
    let Ok(manner) = std::env::var(MANNER) else {
        return;
    };
    let input = io::stdin();
    let stream = UnixStream::from(input.as_fd().try_clone_to_owned().unwrap());
    let other = stream.try_clone().unwrap();
    let seconds = if manner == "spins" { 0 } else { 600 };
    let is_told = std::env::var_os(TOLD).is_some();
    let limits = Limits::set(seconds, seconds).unwrap();
    let poisoned = |request, message: &[u8]| {
        let whole = request != Request::Parse(Scope::Header);
        whole && memchr::memmem::find(message, POISON).is_some()
    };
    let served = serve(stream, limits, |request, message| {
        let honest = answer(request, message)?;
        Ok(match manner.as_str() {
            "dies of all" => std::process::exit(1),
            _ if !poisoned(request, message) => honest,
            "dies" => std::process::exit(1),
            "dies once" if !is_told => std::process::exit(1),
            // As the kernel does when there is no memory.
            "is killed" => {
                nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL).unwrap();
                honest
            }
            // As somebody does who looks for a fault.
            "is stopped" => {
                nix::sys::signal::raise(nix::sys::signal::Signal::SIGSTOP).unwrap();
                honest
            }
            // Until the other side is gone.
            "hangs for now" if is_told => honest,
            "hangs" | "hangs for now" => io::copy(&mut &other, &mut io::sink())
                .map(|_| Vec::new())
                .unwrap(),
            "spins" => loop {
                std::hint::black_box(&honest);
            },
            // Its zeros are nothing until they are looked at: without the limit it goes on.
            "bombs" => {
                std::hint::black_box(vec![0_u8; 4 << 30]);
                honest
            }
            // A gigabyte in all, in pieces of every size.
            "hoards" => {
                let pieces = (0..).map(|number| vec![1_u8; 100 << (number % 12)]);
                let mut left = 1_usize << 30;
                let hoard: Vec<_> = pieces
                    .take_while(|piece| {
                        left = left.saturating_sub(piece.len());
                        left > 0
                    })
                    .collect();
                std::hint::black_box(hoard);
                honest
            }
            "opens" => std::fs::read("/etc/passwd").unwrap(),
            "connects" => std::net::UdpSocket::bind("127.0.0.1:0")
                .map(|_| honest)
                .unwrap(),
            "starts a program" => Command::new("true").status().map(|_| honest).unwrap(),
            "starts a thread" => std::thread::spawn(|| honest).join().unwrap(),
            "overflows" => overflow(&honest, 0),
            "lies" => lie(request, honest),
            // The kind is right.
            "boasts" => vec![255, 255, 255, 255, 2, honest[5]],
            "babbles" => b"HTTP/1.1 200 OK\r\n\r\n".to_vec(),
            "is short" => honest[..honest.len() - 1].to_vec(),
            "drips" => drip(&other, &honest),
            _ => honest,
        })
    });
    let _ = served;
    std::process::exit(0);
}

/// Says what is in another message, or one thing more than it was asked.
fn lie(request: Request, mut honest: Vec<u8>) -> Vec<u8> {
    if let Request::Parse(_) = request {
        return answer(request, OTHER).unwrap();
    }
    honest.push(1);
    honest[0] = honest[0].wrapping_add(1);
    honest
}

fn drip(mut stream: &UnixStream, honest: &[u8]) -> Vec<u8> {
    for octet in honest {
        std::thread::sleep(Duration::from_millis(20));
        if stream.write_all(&[*octet]).is_err() {
            std::process::exit(1);
        }
    }
    Vec::new()
}

fn overflow(honest: &[u8], depth: u64) -> Vec<u8> {
    let here = std::hint::black_box([depth; 1_000]);
    match depth == u64::MAX {
        true => honest.to_vec(),
        false => {
            let found = overflow(honest, depth + 1);
            std::hint::black_box(here);
            found
        }
    }
}

fn launch(manner: &str) -> Launch {
    let manner = manner.to_owned();
    Launch::new(move || {
        let mut command = Command::new("/proc/self/exe");
        command
            .args(["--exact", "parsers::tests::a_process", "--nocapture"])
            .env(MANNER, &manner)
            .envs([ENVIRONMENT]);
        command
    })
}

/// It is not kept as one of which nothing is known: what is wrong is this machine, and may end.
#[test]
fn a_message_whose_processes_are_killed_is_put_off() {
    let parsers = parsers("is killed", FOR_EVER);
    let error = parsers.parse(MESSAGE).unwrap_err();
    assert!(error.0.to_string().contains("killed"), "{error:?}");
    assert_eq!(
        parsers.parse(OTHER).unwrap().record,
        Parsed::of(OTHER).encode()
    );
}

/// Processes that decode texts, as they are.
fn decoders() -> Decoders {
    Decoders::launched_by(launch("is honest"), FOR_EVER)
}

fn parsers(manner: &str, patience: Duration) -> Parsers {
    Parsers::launched_by(launch(manner), patience)
}

#[test]
fn messages_are_taken_apart_as_here_by_many_threads_at_once() {
    let parsers = parsers("is honest", FOR_EVER);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let parsers = &parsers;
            scope.spawn(move || {
                for number in 0..40_usize {
                    let text = "x".repeat(number * 977);
                    let message = format!("Subject: {thread}\r\n\r\n{text}\r\n").into_bytes();
                    let found = parsers.parse(&message).unwrap();
                    let here = Parsed::of(&message);
                    assert_eq!(found.record, here.encode());
                    assert_eq!(found.references, here.references);
                }
            });
        }
    });
    let large = vec![b'a'; 20 << 20];
    let found = parsers.parse(&large).unwrap();
    assert_eq!(found.record, Parsed::of(&large).encode());
    // None is kept beyond those that are busy at once.
    assert!(parsers.0.state().idle.len() <= parsers.0.busy);
    assert!(parsers.0.state().under_way.is_empty());
}

#[test]
fn a_message_that_ends_its_process_is_known_by_its_header() {
    let header = Parsed::of_header(MESSAGE).encode();
    for manner in ENDING {
        let parsers = parsers(manner, FOR_EVER);
        let found = parsers.parse(MESSAGE).unwrap();
        assert_eq!(found.record, header, "{manner}");
        let other = parsers.parse(OTHER).unwrap();
        assert_eq!(other.record, Parsed::of(OTHER).encode(), "{manner}");
    }
}

#[test]
fn a_process_that_does_not_answer_in_time_is_not_waited_for() {
    // On a busy machine a process that only reads the header may be too late as well.
    let known = [Parsed::of_header(MESSAGE), Parsed::opaque(MESSAGE)].map(|parsed| parsed.encode());
    for manner in SILENT {
        let parsers = parsers(manner, Duration::from_secs(1));
        let found = parsers.parse(MESSAGE).unwrap();
        assert!(known.contains(&found.record), "{manner}");
    }
}

#[test]
fn a_message_that_ends_every_process_is_kept() {
    let found = parsers("dies of all", FOR_EVER).parse(MESSAGE).unwrap();
    assert_eq!(found.record, Parsed::opaque(MESSAGE).encode());
}

/// From the second process on they are told that one died.
fn launch_dying_once() -> Launch {
    launch_until("dies once", 1)
}

/// The first `processes` processes have the manner; later processes are told to be honest.
fn launch_until(manner: &str, processes: usize) -> Launch {
    let manner = manner.to_owned();
    let count = std::sync::atomic::AtomicUsize::new(0);
    Launch::new(move || {
        let mut command = launch(&manner).command();
        if count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= processes {
            command.env(TOLD, "");
        }
        command
    })
}

/// What ended the process may have been something else.
#[test]
fn a_process_that_dies_once_makes_no_difference() {
    let parsers = Parsers::launched_by(launch_dying_once(), FOR_EVER);
    let found = parsers.parse(MESSAGE).unwrap();
    assert_eq!(found.record, Parsed::of(MESSAGE).encode());
}

#[test]
fn messages_that_hang_do_not_hold_up_others() {
    let parsers = parsers("hangs", FOR_EVER);
    for _ in 0..=parsers.0.busy {
        let parsers = parsers.clone();
        // They never come back: what they wait for ends with this process.
        std::thread::spawn(move || parsers.parse(MESSAGE).map(drop));
    }
    for _ in 0..20 {
        let found = parsers.parse(OTHER).unwrap();
        assert_eq!(found.record, Parsed::of(OTHER).encode());
    }
}

#[test]
fn without_a_process_nothing_is_said_of_a_message() {
    for program in ["/nonexistent/program", "true"] {
        let launch = Launch::new(move || Command::new(program));
        let parsers = Parsers::launched_by(launch, FOR_EVER);
        assert!(parsers.parse(MESSAGE).is_err(), "{program}");
        assert!(parsers.0.state().under_way.is_empty());
    }
}

#[test]
fn a_process_ends_with_its_socket() {
    let (mut here, there) = UnixStream::pair().unwrap();
    let mut command = launch("is honest").command();
    let mut child = command
        .stdin(std::os::fd::OwnedFd::from(there))
        .spawn()
        .unwrap();
    drop(command);
    let mut ready = [0; READY_OCTETS];
    here.read_exact(&mut ready).unwrap();
    read_ready(&ready).unwrap();
    drop(here);
    assert!(child.wait().unwrap().success());
}
