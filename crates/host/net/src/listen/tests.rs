//! Sockets on loopback; inheritance is shown by this very test binary as its own child.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::Command;

use command_fds::{CommandFdExt as _, FdMapping};

use super::{Inherited, ListenError, ListenOptions, PortOwner, bind, send_at_once};

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn one(address: SocketAddr) -> TcpListener {
    bind(&[address], ListenOptions::default())
        .expect("loopback")
        .remove(0)
}

#[test]
fn a_taken_port_names_its_owner() {
    let first = one(loopback());
    let address = first.local_addr().expect("bound");
    let error = bind(&[address], ListenOptions::default()).expect_err("taken");
    let ListenError::Taken {
        owner: PortOwner::Process { pid, port, .. },
        ..
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!((*pid, *port), (std::process::id(), address.port()));
    assert!(
        error.to_string().contains(&format!("(process {pid})")),
        "{error}"
    );
}

#[test]
fn nobody_owns_a_free_port() {
    let port = one(loopback()).local_addr().expect("bound").port();
    assert_eq!(PortOwner::of(port), PortOwner::Unknown { port });
}

#[test]
fn the_v6_wildcard_takes_v4_unless_v4_is_asked_for_too() {
    let any6 = SocketAddr::from(([0u16; 8], 0));
    let Ok(both) = bind(&[any6], ListenOptions::default()) else {
        eprintln!("skipped: no ipv6 on this machine");
        return;
    };
    let port = both[0].local_addr().expect("bound").port();
    TcpStream::connect(("127.0.0.1", port)).expect("the wildcard takes IPv4");
    drop(both);
    let any4 = SocketAddr::from(([0; 4], port));
    let any6 = SocketAddr::from(([0u16; 8], port));
    let listeners = bind(&[any6, any4], ListenOptions::default()).expect("no collision");
    assert_eq!(listeners.len(), 2);
}

#[test]
fn an_address_of_another_machine_is_named() {
    let foreign: SocketAddr = "192.0.2.1:25252".parse().expect("an address");
    let error = bind(&[foreign], ListenOptions::default()).expect_err("not ours");
    assert!(
        error
            .to_string()
            .starts_with("cannot listen on 192.0.2.1:25252: "),
        "{error}"
    );
}

const CHILD: &str = "VERE_TEST_INHERITED";

/// Runs `inherited_child` in a separate process with two listening sockets from descriptor 3.
fn child(names: &str, variables: &[(&str, &str)]) -> (Vec<TcpListener>, Command) {
    let sockets = vec![one(loopback()), one(loopback())];
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command
        .args(["--exact", "listen::tests::inherited_child", "--nocapture"])
        .env(CHILD, names);
    command.envs(variables.iter().copied());
    let mappings = (3..)
        .zip(&sockets)
        .map(|(child_fd, socket)| FdMapping {
            parent_fd: OwnedFd::from(socket.try_clone().expect("a descriptor")),
            child_fd,
        })
        .collect();
    command.fd_mappings(mappings).expect("distinct");
    (sockets, command)
}

/// Not a test by itself: what the child process does.
#[test]
fn inherited_child() {
    let Ok(names) = std::env::var(CHILD) else {
        return;
    };
    let mut inherited = match Inherited::from_env() {
        Ok(inherited) => inherited,
        Err(error) => {
            eprintln!("error: {error}");
            return;
        }
    };
    assert_eq!(inherited.names().join(":"), names);
    for name in names.split(':') {
        for listener in inherited.take(name) {
            listener.set_nonblocking(false).expect("a socket");
            let (mut stream, _) = listener.accept().expect("the parent connects");
            stream.write_all(name.as_bytes()).expect("connected");
        }
    }
    assert_eq!(inherited.names(), Vec::<&str>::new());
    let fresh = inherited.take_or_bind("smtp", &[loopback()], ListenOptions::default());
    assert_eq!(fresh.expect("loopback").len(), 1);
}

fn said(address: SocketAddr) -> String {
    let mut text = String::new();
    TcpStream::connect(address)
        .expect("listening")
        .read_to_string(&mut text)
        .expect("text");
    text
}

#[test]
fn connections_inherit_that_writes_leave_at_once() {
    let listener = TcpListener::bind(loopback()).expect("loopback");
    send_at_once(&listener).expect("a listener");
    let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("listening");
    let (server, _) = listener.accept().expect("a client");
    assert!(server.nodelay().expect("connected"));
    drop(client);
}

#[test]
fn sockets_come_from_systemd_and_from_the_supervisor() {
    for variable in ["LISTEN_FDNAMES", "VERE_LISTEN_FDNAMES"] {
        let given = [("LISTEN_FDS", "2"), (variable, "smtp:submission")];
        let (sockets, mut command) = child("smtp:submission", &given);
        let mut running = command.spawn().expect("this test");
        let names = sockets.iter().map(|s| said(s.local_addr().expect("bound")));
        assert_eq!(
            names.collect::<Vec<_>>(),
            ["smtp", "submission"],
            "{variable}"
        );
        assert!(running.wait().expect("ours").success());
    }
}

#[test]
fn names_that_do_not_fit_are_refused() {
    let cases = [
        vec![("LISTEN_FDS", "2"), ("LISTEN_FDNAMES", "smtp")],
        vec![("VERE_LISTEN_FDNAMES", "smtp:submission")],
        vec![("LISTEN_FDS", "3"), ("LISTEN_FDNAMES", "a:b:c")],
    ];
    for variables in cases {
        let (_sockets, mut command) = child("", &variables);
        let output = command.output().expect("this test");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("error: "), "{variables:?}: {said}");
    }
}

/// `LISTEN_PID` of another process: the sockets are not meant for us.
#[test]
fn sockets_for_another_process_are_left_alone() {
    let given = [
        ("LISTEN_FDS", "2"),
        ("LISTEN_FDNAMES", "a:b"),
        ("LISTEN_PID", "1"),
    ];
    let (_sockets, mut command) = child("", &given);
    let output = command.output().expect("this test");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
