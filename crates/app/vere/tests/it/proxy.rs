//! Front ends that speak for clients: PROXY headers and XCLIENT, from named networks only.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use crate::harness::{Authority, Options, Session, System, assert_has};
use crate::imap::{Imap, with_store};

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// A header of version 2 for TCP over IPv4.
fn version_2(client: [u8; 4], port: u16) -> Vec<u8> {
    let mut header = SIGNATURE.to_vec();
    header.extend_from_slice(&[0x21, 0x11, 0, 12]);
    header.extend_from_slice(&client);
    header.extend_from_slice(&[192, 0, 2, 25]);
    header.extend_from_slice(&port.to_be_bytes());
    header.extend_from_slice(&25_u16.to_be_bytes());
    header
}

fn behind_proxy() -> Options {
    Options::default()
        .set("proxy.networks", "[\"127.0.0.0/8\"]")
        .set("relay.networks", "[\"192.0.2.0/28\", \"2001:db8::/32\"]")
}

/// Starts a system and waits for the system as a proxy must.
///
/// `System::start` waits for a greeting, which comes only behind a header: so the reload brings the
/// proxy in.
pub(crate) fn start_behind_proxy(options: &Options) -> System {
    let directory = tempfile::tempdir().expect("a temporary directory");
    start_in_behind_proxy(directory, options)
}

/// The same in an existing directory.
pub(crate) fn start_in_behind_proxy(directory: tempfile::TempDir, options: &Options) -> System {
    let system = System::start_in(directory, &options.clone().unset("proxy.networks"));
    system.reconfigure(options);
    crate::harness::wait_for("a connection without header to be closed", || {
        let mut session = Session::open(system.smtp).ok()?;
        session.try_send(b"EHLO client\r\n").ok()?;
        session.try_reply().is_err().then_some(())
    });
    system
}

/// Sends a header in `pieces` and reads the greeting.
fn through(address: SocketAddr, header: &[u8], pieces: usize) -> Session {
    let mut session = Session::open(address).expect("a connection");
    for piece in header.chunks(header.len().div_ceil(pieces)) {
        session.send(piece);
    }
    session.expect("220");
    session.command("EHLO client.example.net", "250");
    session
}

#[test]
fn both_versions_of_the_header_tell_who_the_client_is() {
    the_header_tells_who_the_client_is(&behind_proxy());
}

#[test]
fn the_front_takes_the_header_as_well() {
    let options = behind_proxy()
        .set("front.workers", "2")
        .set("front.banner_delay", "\"0s\"")
        .set("front.connections_per_minute", "0")
        .set("front.refused_networks", "[\"203.0.113.0/24\"]");
    let system = the_header_tells_who_the_client_is(&options);
    // Rules are for the client, whoever carries its octets.
    let mut refused = Session::open(system.smtp).expect("a connection");
    refused.send(&version_2([203, 0, 113, 9], 1));
    refused.expect("554 5.7.1");
    // An early talker behind a balancer is one as well, and what it says comes behind its header.
    system.reconfigure(&options.set("front.banner_delay", "\"1s\""));
    let mut host = 0;
    crate::harness::wait_until("the delay", || {
        host += 1;
        let mut early = Session::open(system.smtp).expect("a connection");
        let talk = [&version_2([198, 51, 100, host], 1)[..], b"EHLO early\r\n"].concat();
        early.send(&talk);
        early.reply().starts_with("554")
    });
}

fn the_header_tells_who_the_client_is(options: &Options) -> System {
    let system = start_behind_proxy(options);
    let headers: [&[u8]; 3] = [
        b"PROXY TCP4 192.0.2.7 192.0.2.25 4711 25\r\n",
        b"PROXY TCP6 2001:db8::7 2001:db8::25 4711 25\r\n",
        &version_2([192, 0, 2, 7], 4711),
    ];
    for (number, header) in headers.into_iter().enumerate() {
        for pieces in [1, header.len()] {
            let mut session = through(system.smtp, header, pieces);
            // The client may relay.
            session.transaction("a@example.net", &["b@example.com"]);
            session.command("RSET", "250");
            let subject = format!("Subject: {number}\r\n\r\nbody");
            session.submit("a@example.net", &["alice@example.org"], &subject);
        }
    }
    let texts = system.wait_mail("alice", 6);
    let from = |address: &str| texts.iter().filter(|text| text.contains(address)).count();
    assert_eq!((from("[192.0.2.7]"), from("[IPv6:2001:db8::7]")), (4, 2));
    let mut stranger = through(system.smtp, &version_2([198, 51, 100, 7], 1), 1);
    stranger.command("MAIL FROM:<a@example.net>", "250");
    stranger.command("RCPT TO:<b@example.com>", "550 5.7.1");
    system
}

#[test]
fn a_proxy_that_speaks_for_itself_has_its_own_address() {
    let system = start_behind_proxy(&behind_proxy());
    let mut local = SIGNATURE.to_vec();
    local.extend_from_slice(&[0x20, 0, 0, 0]);
    for header in [local.as_slice(), b"PROXY UNKNOWN\r\n"] {
        let mut session = through(system.smtp, header, 1);
        session.submit("a@example.net", &["alice@example.org"], "A: b\r\n\r\n");
    }
    for text in system.wait_mail("alice", 2) {
        assert!(text.contains("[127.0.0.1]"), "{text}");
    }
}

#[test]
fn without_a_right_header_the_connection_is_closed() {
    let options = behind_proxy().set("limits.command_timeout", "\"1s\"");
    let system = start_behind_proxy(&options);
    let mut too_long = SIGNATURE.to_vec();
    too_long.extend_from_slice(&[0x21, 0x11, 0xff, 0xff]);
    too_long.resize(65_000, 0);
    let wrong: [&[u8]; 7] = [
        b"EHLO client\r\n",
        b"PROXY TCP4 192.0.2.7 192.0.2.25 4711\r\n",
        b"PROXY TCP4 999.0.2.7 192.0.2.25 4711 25\r\n",
        b"PROXY TCP4 192.0.2.7 192.0.2.25 4711 25\n",
        &[b"PROXY ".as_slice(), &[b'A'; 4096]].concat(),
        &too_long,
        // Nothing but silence.
        b"",
    ];
    for octets in wrong {
        let mut session = Session::open(system.smtp).expect("a connection");
        // The rest may meet a closed connection.
        let _ = session.try_send(octets);
        let rest = session.rest();
        assert!(!rest.contains("220 "), "{octets:?}: {rest}");
    }
}

#[test]
fn from_elsewhere_a_header_is_a_client_that_speaks_too_early() {
    let options = Options::default().set("proxy.networks", "[\"192.0.2.0/24\"]");
    let system = System::start(&options);
    let header = b"PROXY TCP4 192.0.2.7 192.0.2.25 4711 25\r\n";
    let rest = system.speak_early(header).rest();
    assert!(rest.starts_with("554 5.5.0"), "{rest}");
    assert_eq!(rest.lines().count(), 1, "{rest}");
    // Behind the greeting the header is no command.
    let mut session = Session::connect(system.smtp);
    session.send(header);
    session.expect("500 5.5.1");
}

#[test]
fn the_header_stands_before_the_handshake_of_implicit_tls() {
    let authority = Authority::new();
    let files = authority.sign("mx", &["mx.example.org"]);
    let system = start_behind_proxy(&behind_proxy().certificate(&files));
    let mut session = Session::open(system.submissions).expect("a connection");
    session.send(b"PROXY TCP4 198.51.100.9 192.0.2.25 4711 465\r\n");
    let mut session = session.handshake(&authority, "mx.example.org");
    session.expect("220");
    session.command("EHLO client", "250");
    session.log_in("alice@example.org");
    session.submit("alice@example.org", &["bob@example.org"], "A: b\r\n\r\n");
    let text = &system.wait_mail("bob", 1)[0];
    assert!(text.contains("[198.51.100.9]"), "{text}");
}

#[test]
fn the_limit_for_one_client_holds_for_the_client_not_the_proxy() {
    let options = behind_proxy().set("limits.connections_per_client_max", "2");
    let system = start_behind_proxy(&options);
    let header = |last| version_2([198, 51, 100, last], 4711);
    let held: Vec<Session> = (1..=4)
        .flat_map(|last| [last, last])
        .map(|last| through(system.smtp, &header(last), 1))
        .collect();
    let mut third = Session::open(system.smtp).expect("a connection");
    third.send(&header(1));
    third.expect("421");
    drop(held);
}

/// All clients behind a balancer shared a limit of connections and a throttle of logins over IMAP.
#[test]
fn imap_behind_a_proxy_tells_clients_apart() {
    let (options, ports) = with_store(Options::default());
    let options = options
        .set("proxy.imap_networks", "[\"127.0.0.0/8\"]")
        .set("auth.plaintext_networks", "[\"198.51.100.0/24\"]")
        .set("limits.connections_per_client_max", "2");
    let system = System::start(&options);
    let open = |header: &[u8]| {
        let mut stream = TcpStream::connect(ports.imap).expect("the IMAP port");
        stream.write_all(header).expect("a header");
        stream
    };
    let held: Vec<Imap> = (1..=4)
        .flat_map(|last| [last, last])
        .map(|last| Imap::greeted(open(&version_2([198, 51, 100, last], 4711))))
        .collect();
    let mut third = String::new();
    let refused = open(&version_2([198, 51, 100, 1], 4711)).read_to_string(&mut third);
    assert!(
        refused.is_ok() && third.starts_with("* BYE [LIMIT]"),
        "{third}"
    );
    drop(held);
    // The client's rights depend on its address: the client may log in without TLS, the balancer may not.
    let mut session = Imap::greeted(open(b"PROXY TCP4 198.51.100.9 192.0.2.25 4711 143\r\n"));
    session.ok("LOGIN alice@example.org secret");
    let mut stranger = Imap::greeted(open(b"PROXY TCP4 203.0.113.9 192.0.2.25 4711 143\r\n"));
    let said = stranger.command("LOGIN alice@example.org secret");
    assert!(said.contains("NO [PRIVACYREQUIRED]"), "{said}");
    let mut nothing = String::new();
    let closed = open(b"a1 NOOP\r\n").read_to_string(&mut nothing);
    assert!(closed.is_err() || nothing.is_empty(), "{nothing}");
    let log = system.log();
    assert_has(&log, &["198.51.100.9", "no PROXY header came"]);
}

#[test]
fn xclient_changes_who_the_client_is() {
    let options = Options::default().set("xclient.networks", "[\"127.0.0.0/8\"]");
    let system = System::start(&options);
    let mut session = Session::connect(system.smtp);
    let keywords = session.command("EHLO front.example.org", "250");
    assert!(keywords.contains("XCLIENT "), "{keywords}");
    session.command(
        "XCLIENT NAME=far.example ADDR=IPV6:2001:db8::9 HELO=far.example PROTO=ESMTP",
        "220",
    );
    // The rights of the front end are not the rights of its client.
    session.command("EHLO far.example", "250");
    session.command("MAIL FROM:<a@far.example>", "250");
    session.command("RCPT TO:<b@example.com>", "550 5.7.1");
    session.command("XCLIENT ADDR=192.0.2.1", "503");
    session.command("RSET", "250");
    session.submit("a@far.example", &["alice@example.org"], "A: b\r\n\r\n");
    let text = &system.wait_mail("alice", 1)[0];
    assert_has(
        text,
        &["Received: from far.example (", "[IPv6:2001:db8::9]"],
    );
}

/// XCLIENT was allowed by the balancer's address: where the address lay in both networks, every client behind the
/// balancer could log in as any user.
#[test]
fn nobody_has_xclient_by_the_address_of_the_proxy() {
    let options = behind_proxy()
        .set("xclient.networks", "[\"127.0.0.0/8\", \"198.51.100.9\"]")
        .set("xclient.proxy_overlap", "\"allowed\"");
    let system = start_behind_proxy(&options);
    let mut session = through(
        system.smtp,
        b"PROXY TCP4 198.51.100.7 192.0.2.25 4711 25\r\n",
        1,
    );
    let keywords = session.command("EHLO client", "250");
    assert!(!keywords.contains("XCLIENT"), "{keywords}");
    session.command("XCLIENT LOGIN=alice@example.org", "550 5.7.0");
    session.command("XCLIENT ADDR=192.0.2.1", "550 5.7.0");
    // A front end behind the balancer keeps its right.
    let mut session = through(
        system.smtp,
        b"PROXY TCP4 198.51.100.9 192.0.2.25 4711 25\r\n",
        1,
    );
    session.command("XCLIENT ADDR=192.0.2.1", "220");
}

#[test]
fn xclient_is_for_named_networks_only() {
    let options = Options::default().set("xclient.networks", "[\"192.0.2.0/24\"]");
    let system = System::start(&options);
    let mut session = Session::connect(system.smtp);
    let keywords = session.command("EHLO client", "250");
    assert!(!keywords.contains("XCLIENT"), "{keywords}");
    session.command("XCLIENT ADDR=127.0.0.1", "550 5.7.0");
}
