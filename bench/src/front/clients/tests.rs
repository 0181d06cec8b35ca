use super::*;
use crate::front::distance::Distance;
use crate::sink::{RunningSink, SinkOptions};

/// A sink accepts every recipient, and refuses bounces by a rule.
fn load(sink: &RunningSink, pace: Pace, mix: Mix) -> Load {
    let (time, patience) = (Duration::from_millis(300), Duration::from_secs(20));
    Load::new(sink.handle().address(), pace, mix, time, patience)
}

#[test]
fn sessions_at_once_go_to_their_ends() {
    let sink = RunningSink::faulty(&["rcpt:nobody=550 5.1.1 unknown"]);
    let mix = Mix::new([
        (Kind::Bounce, 1.0),
        (Kind::Hello, 1.0),
        (Kind::Connect, 1.0),
        (Kind::Good(3), 1.0),
    ]);
    let visits = run(&load(&sink, Pace::AtOnce(8), mix)).unwrap();
    assert_eq!(visits.failed, BTreeMap::new());
    assert_eq!(visits.good.due, visits.good.done);
    assert_eq!(visits.vain.due, visits.vain.done);
    assert!(visits.good.done > 0 && visits.vain.done.abs_diff(3 * visits.good.done) <= 4);
    assert_eq!(visits.acked.len() as u64, visits.good.done);
    assert_eq!(sink.handle().counts().messages, visits.good.done);
}

#[test]
fn a_rate_is_kept_however_late_the_replies_are() {
    let sink = RunningSink::start(SinkOptions::default()).unwrap();
    let mut load = load(&sink, Pace::PerSecond(100.0), Mix::only(Kind::Good(1)));
    let distance = Distance::to(load.target, Duration::from_millis(15)).unwrap();
    load.target = distance.address();
    let visits = run(&load).unwrap();
    assert_eq!((visits.good.due, visits.good.done), (30, 30));
    // Six replies come, each after a way there and a way back.
    let least = visits.accepted_us.min();
    assert!(least >= 170_000, "{least}");
}

#[test]
fn failures_are_counted_by_their_causes() {
    let sink = RunningSink::faulty(&["rcpt=450 4.2.0 later*3", "mail=close*2"]);
    let mut load = load(&sink, Pace::PerSecond(100.0), Mix::only(Kind::Good(1)));
    load.time = Duration::from_millis(100);
    let visits = run(&load).unwrap();
    assert_eq!(visits.failed.get("reply 450"), Some(&3));
    assert_eq!(visits.failed.get("connection lost"), Some(&2));
    assert_eq!((visits.good.due, visits.good.done), (10, 5));
}

#[test]
fn a_silent_server_ends_in_time() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let sink = RunningSink::faulty(&[]);
    let mut load = load(&sink, Pace::AtOnce(2), Mix::only(Kind::Connect));
    load.target = silent.local_addr().unwrap();
    load.time = Duration::from_millis(50);
    load.patience = Duration::from_millis(200);
    let visits = run(&load).unwrap();
    assert_eq!(visits.vain, Counts { due: 2, done: 0 });
    assert_eq!(visits.failed.get("no reply in time"), Some(&2));
}

#[test]
fn a_session_brings_a_series_of_messages() {
    let sink = RunningSink::start(SinkOptions::default()).unwrap();
    let visits = run(&load(&sink, Pace::AtOnce(4), Mix::only(Kind::Series(5)))).unwrap();
    assert_eq!(visits.failed, BTreeMap::new());
    assert!(visits.good.done > 0);
    assert_eq!(visits.acked.len() as u64, 5 * visits.good.done);
    let ids: std::collections::BTreeSet<_> = visits.acked.iter().map(|ack| ack.id).collect();
    assert_eq!(ids.len(), visits.acked.len());
    assert_eq!(sink.handle().counts().messages, 5 * visits.good.done);
}

#[test]
fn a_load_balancer_passes_clients_on_in_turns() {
    let port = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let target = port.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let header = |_| {
            let (stream, balancer) = port.accept().unwrap();
            assert_eq!(balancer.ip(), BALANCER);
            let mut line = String::new();
            let mut stream = std::io::BufReader::new(stream);
            std::io::BufRead::read_line(&mut stream, &mut line).unwrap();
            line
        };
        (0..3).map(header).collect::<Vec<_>>()
    });
    let (time, patience) = (Duration::from_millis(1), Duration::from_secs(20));
    let pace = Pace::PerSecond(3_000.0);
    let load = Load::new(target, pace, Mix::only(Kind::Connect), time, patience);
    let clients = [Ipv4Addr::new(20, 0, 0, 1), Ipv4Addr::new(20, 0, 0, 2)];
    let visits = run(&load.proxied(clients)).unwrap();
    assert_eq!(visits.vain.due, 3);
    let port = target.port();
    let of = |client: &str| format!("PROXY TCP4 {client} 127.0.0.1 40000 {port}\r\n");
    let mut headers = server.join().unwrap();
    headers.sort_unstable();
    assert_eq!(headers, [of("20.0.0.1"), of("20.0.0.1"), of("20.0.0.2")]);
}
