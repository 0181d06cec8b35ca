//! The same scripts over TCP and TLS, against a small host of the machine.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConnection, StreamOwned};
use vere_script::bare::World;
use vere_script::daemon::Target;
use vere_script::{Script, Verdict, run_against};
use vere_smtp::server::{Role, Server, Step, TlsInfo};
use vere_units::Timestamp;

use super::scripts;

const NOW: Timestamp = Timestamp::from_millis(1_750_000_000_000);

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

fn tls() -> Arc<rustls::ServerConfig> {
    let own = rcgen::generate_simple_self_signed(vec!["mx.demo.test".to_owned()]).unwrap();
    let certificate = CertificateDer::from(own.cert.der().to_vec());
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    Arc::new(config)
}

/// Goes on until the machine wants a handshake or the end.
fn serve(stream: &mut dyn Stream, server: &mut Server, world: &Mutex<World>) -> bool {
    let mut waiting = Vec::new();
    loop {
        let taken = server.input(&waiting, NOW);
        waiting.drain(..taken);
        match server.step() {
            Step::Send => {
                let output = server.output().to_vec();
                if stream
                    .write_all(&output)
                    .and_then(|()| stream.flush())
                    .is_err()
                {
                    return false;
                }
                server.sent(output.len());
            }
            Step::Ask(question) => {
                let answer = world.lock().unwrap().answer(question, server);
                server.answer(answer, NOW);
            }
            Step::NeedInput if taken > 0 => {}
            Step::NeedInput => {
                let mut piece = [0; 4096];
                match stream.read(&mut piece) {
                    Ok(0) | Err(_) => return false,
                    Ok(octets) => waiting.extend_from_slice(&piece[..octets]),
                }
            }
            Step::StartTls => return true,
            Step::NeedAnswer | Step::Close => return false,
        }
    }
}

fn session(
    mut stream: TcpStream,
    role: Role,
    world: &Mutex<World>,
    tls: &Arc<rustls::ServerConfig>,
) {
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let (mut config, peer) = {
        let world = world.lock().unwrap();
        (world.config.clone(), world.peer.clone())
    };
    config.role = role;
    let mut server = Server::new(Arc::new(config), peer, NOW);
    if serve(&mut stream, &mut server, world) {
        let connection = ServerConnection::new(tls.clone()).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        server.tls_started(TlsInfo {
            version: "TLSv1.3".to_owned(),
            cipher: String::new(),
            sni: None,
        });
        serve(&mut stream, &mut server, world);
        stream.conn.send_close_notify();
        let _ = stream.flush();
    }
}

/// Listens on a free port of the loopback for as long as the tests run.
fn listen(role: Role) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (world, tls) = (Arc::new(Mutex::new(World::new())), tls());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (world, tls) = (world.clone(), tls.clone());
            std::thread::spawn(move || session(stream.unwrap(), role, &world, &tls));
        }
    });
    address
}

#[test]
fn over_tcp() {
    let target = Target {
        submission: Some(listen(Role::Submission)),
        ..Target::from(listen(Role::Mx))
    };
    let (mut failures, mut passed) = (String::new(), 0);
    for (path, text) in scripts() {
        let script = Script::parse(&path.display().to_string(), &text).unwrap();
        match run_against(target.clone(), &script) {
            Ok(Verdict::Passed) => passed += 1,
            Ok(Verdict::Skipped(_)) => {}
            Err(failure) => failures.push_str(&failure.to_string()),
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
    assert!(passed > 25, "only {passed} scripts ran");
}

/// A daemon that is known to have a bound runs the scripts that need it.
#[test]
fn known_limits_are_used() {
    let mut target = Target::from(listen(Role::Mx));
    target.limits.insert("errors_max".to_owned(), 20);
    let script = |limit: &str| Script::parse("x", &format!("@limit {limit}\nS: 220 *\n")).unwrap();
    assert_eq!(
        run_against(target.clone(), &script("errors_max 20")).unwrap(),
        Verdict::Passed
    );
    let other = run_against(target, &script("errors_max 19")).unwrap();
    assert!(matches!(other, Verdict::Skipped(_)));
}

/// A script that says something else than the server does fails, and says where.
#[test]
fn failures_are_failures() {
    let target = Target {
        // Some of these wait for it to pass; the others must be answered within it.
        patience: Duration::from_secs(3),
        ..Target::from(listen(Role::Mx))
    };
    for (text, line, says) in [
        (
            "S: 220 *\nC: NOOP\nS: 251 *\n",
            3,
            "unexpected line: 250 2.0.0 ok",
        ),
        ("S: 220 *\nS: 220 *\n", 2, "expected a line, got nothing"),
        (
            "S: 220 *\nC: QUIT\nS: 221 *\nS: 221 *\n",
            4,
            "end of the connection",
        ),
        (
            "S: 220 *\n= closed\n",
            2,
            "expected the connection to be closed",
        ),
        ("S: 220 *\nC: NOOP\n= silent\n", 3, "expected silence"),
        (
            "S: 220 *\nC: EHLO a.example\nS+ NONSENSE\n",
            3,
            "no such line",
        ),
        (
            "S: 220 *\nC: EHLO a.example\nS- PIPELINING\n",
            3,
            "such a line",
        ),
        (
            "S: 220 *\nC: NOOP\n",
            2,
            "the script ends, and the server says the line 250",
        ),
        ("S: 220 *\nC: $unbound\n", 2, "$unbound has no value"),
        ("S: 220 *\n= tls\n", 2, "TLS: "),
    ] {
        let script = Script::parse("x", text).unwrap();
        let failure = run_against(target.clone(), &script).unwrap_err();
        assert_eq!(failure.line, line, "{failure}");
        assert!(failure.problem.contains(says), "{failure}");
    }
}

#[test]
fn skips_say_why() {
    let target = Target::from(listen(Role::Mx));
    for (text, says) in [
        ("@listener submission\n", "submission port"),
        ("@peer relay\n", "the right relay"),
        ("@peer no-tls\n", "without the right tls"),
        ("@limit errors_max 3\n", "errors_max = 3"),
        ("@set tls_required\n", "tls_required"),
        ("@only bare it is so\n", "it is so"),
        ("= wait 1h\n", "3600 s of waiting"),
    ] {
        let script = Script::parse("x", text).unwrap();
        let Ok(Verdict::Skipped(reason)) = run_against(target.clone(), &script) else {
            panic!("{text}");
        };
        assert!(reason.contains(says), "{reason}");
    }
}
