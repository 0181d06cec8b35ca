//! Commands against a server made of the machine, over a real socket.

use std::os::unix::net::UnixListener;
use std::thread;

use vere_attach::{PeerRow, Server, ServerEvent};

use super::*;

/// Serves one connection: the host's answers are those of `answer`.
pub(crate) fn serve(
    listener: UnixListener,
    answer: impl Fn(&mut Server, ServerEvent) + Send + 'static,
) -> thread::JoinHandle<Vec<ServerEvent>> {
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut server = Server::new(Bounds::default());
        let mut events = Vec::new();
        let mut buffer = [0; 4_096];
        loop {
            while let Some(event) = server.event() {
                events.push(event.clone());
                answer(&mut server, event);
            }
            while let Some(piece) = server.output() {
                stream.write_all(&piece).unwrap();
            }
            match stream.read(&mut buffer).unwrap_or(0) {
                0 => return events,
                _ if server.has_ended() => return events,
                count => server.receive(&buffer[..count]),
            }
        }
    })
}

/// A host that agrees to everything.
pub(crate) fn agree(server: &mut Server, event: ServerEvent) {
    match event {
        ServerEvent::Attach { .. } => server.attached("mta1", "/ADMD=A/C=GB/"),
        ServerEvent::Submit { tag, .. } => {
            server.submitted(&tag, "[/ADMD=A/C=GB/;1]", "01HXYZ0000000");
        }
        ServerEvent::Probe(probe) => {
            server.submitted(&probe.tag, "[/ADMD=A/C=GB/;2]", "01HXYZ0000001");
        }
        ServerEvent::Ask(ask) => {
            // A page for each call.
            let (name, more) = match ask.after.as_deref() {
                None => ("mta2", true),
                Some("mta2") => ("mta3", false),
                Some(other) => panic!("{other}"),
            };
            let row = PeerRow {
                name: name.to_owned(),
                ..PeerRow::default()
            };
            server.answer_peers(&ask.tag, vec![row], more);
        }
        ServerEvent::Done { .. } | ServerEvent::End(_) => panic!("{event:?}"),
    }
}

fn socket() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("attach.sock");
    (folder, path)
}

#[test]
fn a_system_without_an_mta_is_named() {
    let (_folder, path) = socket();
    let text = Talk::open(&path).unwrap_err().to_string();
    assert_eq!(
        text,
        format!(
            "no X.400 MTA is running (nobody listens on {})",
            path.display()
        )
    );
    drop(UnixListener::bind(&path).unwrap());
    assert_eq!(Talk::open(&path).unwrap_err().to_string(), text);
}

#[test]
fn what_the_mta_refuses_is_printed() {
    let (_folder, path) = socket();
    let listener = UnixListener::bind(&path).unwrap();
    let server = serve(listener, |server, _| server.end("too many connections"));
    let text = Talk::open(&path).unwrap_err().to_string();
    assert_eq!(text, "too many connections");
    server.join().unwrap();
}

#[test]
fn a_server_of_another_kind_is_noticed() {
    let (_folder, path) = socket();
    let listener = UnixListener::bind(&path).unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"220 mail ready\n").unwrap();
    });
    let text = Talk::open(&path).unwrap_err().to_string();
    assert!(text.contains("said: frame: expected an object"), "{text}");
    server.join().unwrap();
}

#[test]
fn a_silent_or_closing_mta_leaves_it_open_what_was_queued() {
    let (_folder, path) = socket();
    let listener = UnixListener::bind(&path).unwrap();
    let silent = Talk::open_for(&path, Duration::from_millis(1))
        .unwrap_err()
        .to_string();
    assert!(
        silent.contains("gave no answer; what was submitted may be queued"),
        "{silent}"
    );
    drop(listener.accept().unwrap());
    let server = thread::spawn(move || drop(listener.accept().unwrap()));
    let closed = Talk::open(&path).unwrap_err().to_string();
    assert!(closed.contains("attach.sock"), "{closed}");
    server.join().unwrap();
}
