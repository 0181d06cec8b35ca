//! A front with several loops: clients see no difference from a single loop.

use std::net::SocketAddr;
use std::process::Stdio;

use nix::sys::signal::Signal;

use crate::front::{for_strangers, without_rates};
use crate::harness::{
    Authority, Options, Session, System, free_address, program, signal, skip, wait_for, wait_until,
};
use crate::logins::connect_from;
use crate::metrics::{read, wait_lines};

/// Networks of clients. One run in 2^23 has all networks in the same half of two loops.
const NETWORKS: u8 = 24;

fn with_loops(loops: u8, endpoint: SocketAddr) -> Options {
    without_rates(for_strangers())
        .set("front.loops", &loops.to_string())
        .set("front.workers", &loops.max(2).to_string())
        .set("metrics.front", &format!("\"{endpoint}\""))
}

/// A client of a network, before any reply was read.
fn opened(system: &System, network: u8, host: u8) -> Session {
    let source = format!("127.0.{network}.{host}");
    Session::over(connect_from(&source, system.smtp)).expect("a connection")
}

/// A client of a network that was greeted.
fn greeted(system: &System, network: u8, host: u8) -> Session {
    let mut session = opened(system, network, host);
    session.expect("220");
    session.command("EHLO client.example.net", "250");
    session
}

/// A client of each network that was greeted.
fn of_all_networks(system: &System) -> Vec<Session> {
    let networks = 1..=NETWORKS;
    networks
        .map(|network| greeted(system, network, 1))
        .collect()
}

fn deliver(session: &mut Session, subject: &str) {
    session.submit(
        "a@example.net",
        &["alice@example.org"],
        &format!("Subject: {subject}\r\n\r\nbody"),
    );
}

/// The connections that each loop has had, in the order of the loops.
fn arrived(endpoint: SocketAddr) -> Vec<u64> {
    let text = read(endpoint);
    let of = |number: usize| {
        let name = format!("vere_front_loop_connections_arrived_total{{front_loop=\"{number}\"}} ");
        text.lines()
            .find_map(|line| line.strip_prefix(&*name)?.parse().ok())
    };
    (0..).map_while(of).collect()
}

#[test]
fn clients_of_many_networks_are_served_by_all_loops() {
    let endpoint = free_address();
    let authority = Authority::new();
    let files = authority.sign("mx", &["mx.example.org"]);
    let system = System::start(&with_loops(2, endpoint).certificate(&files));
    wait_until("figures of both loops", || arrived(endpoint).len() == 2);
    let before = arrived(endpoint);
    for (number, mut session) in of_all_networks(&system).into_iter().enumerate() {
        // The threads of TLS tell the loop that waits.
        if number % 2 == 0 {
            session = session.starttls(&authority, "mx.example.org");
            session.command("EHLO client.example.net", "250");
        }
        deliver(&mut session, &format!("number {number}"));
        session.command("QUIT", "221");
    }
    system.wait_mail("alice", NETWORKS.into());
    let count = format!("vere_front_sessions_ended_total{{end=\"done\"}} {NETWORKS}");
    wait_lines(
        endpoint,
        &[&count, "vere_front_workers 2", "vere_front_connections 0"],
    );
    // The figures of a loop are a second old at most; the connections that saw the system ready may be among them.
    let served = || -> Vec<u64> {
        let after = arrived(endpoint);
        let both = after.iter().zip(&before);
        both.map(|(now, then)| now - then).collect()
    };
    wait_until("figures of all clients", || {
        served().iter().sum::<u64>() >= u64::from(NETWORKS)
    });
    assert!(served().iter().all(|served| *served > 1), "{:?}", served());
    system.wait_log(&["loops started", "loops=2", "workers=2"]);
    assert_eq!(system.role_pids("front").len(), 1);
}

/// Each /24 has exactly the connections that a single loop would allow, and no network suffers for its neighbours.
#[test]
fn limits_of_networks_hold_with_several_loops() {
    let options = with_loops(2, free_address()).set("limits.connections_per_client_max", "2");
    let system = System::start(&options);
    let mut held = Vec::new();
    for host in 1..=5 {
        for network in 1..=NETWORKS {
            let allowed = if host < 5 { 2 } else { 0 };
            for _ in 0..allowed {
                held.push(greeted(&system, network, host));
            }
            // The third connection of an address, and the ninth of a network.
            opened(&system, network, host).expect("421 4.7.0");
        }
    }
    assert_eq!(held.len(), 8 * usize::from(NETWORKS));
}

/// The bound of all connections is a single number: a loop may have all places.
#[test]
fn places_are_those_of_all_loops() {
    let endpoint = free_address();
    let options = with_loops(2, endpoint)
        .set("limits.connections_max", "12")
        .set("limits.connections_per_client_max", "12");
    let system = System::start(&options);
    // The connection that saw the system ready has left.
    wait_lines(endpoint, &["vere_front_connections 0"]);
    // Twelve clients of a network belong to a single loop.
    let held: Vec<Session> = (0..12).map(|_| greeted(&system, 1, 1)).collect();
    for network in 1..=NETWORKS {
        opened(&system, network, 2).expect("421");
    }
    drop(held);
    wait_lines(endpoint, &["vere_front_connections 0"]);
    let held: Vec<Session> = (1..=12)
        .map(|network| greeted(&system, network, 1))
        .collect();
    for network in 1..=NETWORKS {
        opened(&system, network, 2).expect("421");
    }
    drop(held);
    wait_lines(endpoint, &["vere_front_connections 0"]);
    greeted(&system, 1, 1);
}

/// Sessions of the living worker go on, and the dead worker has a successor soon.
#[test]
fn a_worker_that_dies_ends_sessions_of_its_loop() {
    let endpoint = free_address();
    let system = System::start(&with_loops(2, endpoint));
    let mut sessions = of_all_networks(&system);
    for session in &mut sessions {
        session.transaction("a@example.net", &["alice@example.org"]);
    }
    let begun = format!("vere_front_begin_seconds_count {NETWORKS}");
    wait_lines(endpoint, &[&begun, "vere_front_workers 2"]);
    let worker = system.role_pids("worker")[0];
    signal(worker, Signal::SIGKILL);
    wait_lines(
        endpoint,
        &["vere_front_workers_lost_total{reason=\"dead\"} 1"],
    );
    let mut lost = 0;
    for session in &mut sessions {
        // A session that is over takes no further octet.
        let _ = session.try_send(b"DATA\r\n");
        let reply = session.reply();
        match reply.starts_with("421 4.3.0") {
            true => lost += 1,
            false => {
                assert!(reply.starts_with("354"), "{reply}");
                session.command("Subject: x\r\n\r\nbody\r\n.", "250");
            }
        }
    }
    assert!(lost > 0 && lost < NETWORKS, "{lost}");
    drop(sessions);
    let ended = format!("vere_front_sessions_ended_total{{end=\"lost\"}} {lost}");
    wait_lines(endpoint, &[&ended, "vere_front_workers 2"]);
    for mut session in of_all_networks(&system) {
        deliver(&mut session, "again");
    }
}

#[test]
fn reload_and_stop_reach_all_loops() {
    let options = with_loops(2, free_address());
    let system = System::start(&options);
    let refused = options.set("front.refused_networks", "[\"127.0.0.0/8\"]");
    let mut sessions = of_all_networks(&system);
    system.reconfigure(&refused);
    for network in 1..=NETWORKS {
        wait_until("a refusal", || {
            opened(&system, network, 1).reply().starts_with("554 5.7.1")
        });
    }
    // Clients from before the reload stay until the stop.
    for session in &mut sessions {
        session.command("NOOP", "250");
    }
    let front = system.role_pids("front")[0];
    signal(front, Signal::SIGTERM);
    for session in &mut sessions {
        session.expect("421 4.3.2");
    }
    wait_until("another front", || {
        let now = system.role_pids("front");
        now.len() == 1 && now[0] != front
    });
    let log = system.log();
    assert!(!log.contains("panicked"), "{log}");
    system.stop();
}

/// What a client has waited for is known to any number of loops.
#[test]
fn another_number_of_loops_knows_the_greylist() {
    let endpoint = free_address();
    let options = |loops: u8| {
        with_loops(loops, endpoint)
            .set("front.greylist", "\"on\"")
            .set("front.greylist_delay", "\"1s\"")
    };
    let mut system = System::start(&options(2));
    let attempt = |system: &System, network: u8| {
        let mut session = greeted(system, network, 1);
        session.command("MAIL FROM:<a@example.net>", "250");
        session.send(b"RCPT TO:<alice@example.org>\r\n");
        session.reply()
    };
    for network in 1..=NETWORKS {
        let first = attempt(&system, network);
        assert!(first.starts_with("451 4.7.1"), "{first}");
    }
    for network in 1..=NETWORKS {
        wait_until("the delay", || attempt(&system, network).starts_with("250"));
    }
    for loops in [1, 3, 3, 2] {
        system.configure(&options(loops));
        system.restart();
        for network in 1..=NETWORKS {
            let again = attempt(&system, network);
            assert!(again.starts_with("250"), "{loops} loops: {again}");
        }
    }
    let other = attempt(&system, NETWORKS + 1);
    assert!(other.starts_with("451 4.7.1"), "{other}");
}

/// A stuck loop is not hidden by the signs of life of the other.
#[test]
fn a_loop_that_is_stuck_ends_the_front() {
    let Some(strace) = program("strace") else {
        return skip("a stuck loop", "strace is missing");
    };
    let endpoint = free_address();
    let system = System::start(&with_loops(2, endpoint));
    let front = system.role_pids("front")[0];
    let tasks = std::fs::read_dir(format!("/proc/{front}/task")).expect("threads");
    let is_second = |path: &std::path::PathBuf| {
        std::fs::read_to_string(path.join("comm")).is_ok_and(|name| name.trim() == "loop-1")
    };
    let second = tasks.flatten().map(|task| task.path()).find(is_second);
    let second = second.expect("a second loop");
    let thread = second
        .file_name()
        .expect("a number")
        .to_str()
        .expect("digits")
        .to_owned();
    // Each wait for events takes longer than the supervisor waits for a sign of life.
    let mut tracer = std::process::Command::new(strace)
        .args([
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            "inject=epoll_wait:delay_enter=600000000",
        ])
        .args(["-p", &thread])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("strace");
    let is_traced = || {
        let status = std::fs::read_to_string(second.join("status")).unwrap_or_default();
        let tracer = status
            .lines()
            .find_map(|line| line.strip_prefix("TracerPid:"));
        tracer.is_some_and(|number| number.trim() != "0")
    };
    let traced = wait_for("strace", || {
        let ended = tracer.try_wait().expect("a child").is_some();
        (ended || is_traced()).then_some(!ended)
    });
    if !traced {
        return skip("a stuck loop", "strace may not attach");
    }
    system.wait_log(&["missed its watchdog", "front"]);
    // A thread under a tracer keeps the dead process from being waited for.
    let _ = tracer.kill();
    let _ = tracer.wait();
    wait_until("another front", || {
        let now = system.role_pids("front");
        now.len() == 1 && now[0] != front
    });
    wait_until("mail from all networks", || {
        (1..=NETWORKS).all(|network| opened(&system, network, 1).reply().starts_with("220"))
    });
}
