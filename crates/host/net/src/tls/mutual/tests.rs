//! Two lines with pipes between them that give as little as they like.

use std::fs;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::*;

/// One end of two pipes; each call moves at most `step` octets.
struct Pipe<'a> {
    from: &'a mut Vec<u8>,
    to: &'a mut Vec<u8>,
    step: usize,
    room: usize,
}

impl Read for Pipe<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.step.min(buffer.len()).min(self.from.len());
        if count == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        buffer[..count].copy_from_slice(&self.from[..count]);
        self.from.drain(..count);
        Ok(count)
    }
}

impl Write for Pipe<'_> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let count = self.step.min(octets.len()).min(self.room - self.to.len());
        if count == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.to.extend_from_slice(&octets[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A certificate for these names by a separate authority.
fn certified(folder: &Path, names: &[&str]) -> MutualTls {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("random");
    let issuer = CertifiedIssuer::self_signed(params, key).expect("well formed");
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let key = KeyPair::generate().expect("random");
    let params = CertificateParams::new(names).expect("names");
    let own = params.signed_by(&key, &issuer).expect("well formed");
    let write = |name: &str, text: String| {
        fs::write(folder.join(name), text).expect("room");
        folder.join(name)
    };
    let ca = write("ca.pem", issuer.pem());
    let files = CertificateFiles::new(
        write("own.pem", own.pem()),
        write("own.key", key.serialize_pem()),
    );
    MutualTls::new(MutualTlsOptions { files, ca }).expect("good files")
}

/// Sends `text` from client to server and its end back, in steps of that size.
fn talk(client: &mut Line, server: &mut Line, step: usize, text: &[u8]) -> io::Result<Vec<u8>> {
    let (mut up, mut down) = (Vec::new(), Vec::new());
    let (mut sent, mut heard, mut buffer) = (0, Vec::new(), vec![0; 5000]);
    let would_block = |result: io::Result<usize>| match result {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        other => other.map(Some),
    };
    let room = 7000;
    let mut over = false;
    for _ in 0..10_000_000 {
        let mut near = Pipe {
            from: &mut down,
            to: &mut up,
            step,
            room,
        };
        if sent < text.len() {
            let slices = [IoSlice::new(&text[sent..])];
            sent += would_block(client.write(&mut near, &slices))?.unwrap_or(0);
        } else if !over && client.flush(&mut near).is_ok() {
            client.close(&mut near);
            over = true;
        } else {
            // The end itself may still be on the way.
            let _ = client.flush(&mut near);
        }
        if client.is_handshaking() {
            would_block(client.read(&mut near, &mut buffer))?;
        }
        let mut far = Pipe {
            from: &mut up,
            to: &mut down,
            step,
            room,
        };
        match would_block(server.read(&mut far, &mut buffer))? {
            Some(0) => return Ok(heard),
            Some(count) => heard.extend_from_slice(&buffer[..count]),
            None => {}
        }
        let _ = server.flush(&mut far);
    }
    Err(io::ErrorKind::TimedOut.into())
}

#[test]
fn octets_arrive_whole_however_little_the_sockets_take() {
    let folder = tempfile::tempdir().expect("a folder");
    let tls = certified(folder.path(), &["a"]);
    let text: Vec<u8> = (0..150_000_u32)
        .map(|number| (number % 251) as u8)
        .collect();
    for step in [1, 7, 4096, usize::MAX] {
        let mut client = tls.connect("a", [127, 0, 0, 1].into()).expect("keys");
        let mut server = tls.accept().expect("keys");
        assert!(client.is_handshaking() && server.is_handshaking());
        let heard = talk(&mut client, &mut server, step, &text).expect("a talk");
        assert!(heard == text, "{step}: {}", heard.len());
        assert!(!client.is_handshaking() && !server.is_handshaking());
    }
}

#[test]
fn a_server_is_known_by_its_name_or_its_address() {
    for (names, good) in [
        (["node"], true),
        (["192.0.2.7"], true),
        (["192.0.2.8"], false),
        (["other"], false),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let tls = certified(folder.path(), &names);
        let mut client = tls.connect("node", [192, 0, 2, 7].into()).expect("keys");
        let mut server = tls.accept().expect("keys");
        let talked = talk(&mut client, &mut server, 4096, b"hello");
        assert_eq!(talked.is_ok(), good, "{names:?}");
        if let Err(error) = talked {
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            assert!(error.to_string().contains("not valid for"), "{error}");
        }
    }
    // A name that can be none in DNS leaves the address.
    let folder = tempfile::tempdir().expect("a folder");
    let tls = certified(folder.path(), &["::1"]);
    let mut client = tls.connect("no name!", "::1".parse().expect("an address"));
    let client = client.as_mut().expect("keys");
    let heard = talk(client, &mut tls.accept().expect("keys"), 4096, b"x");
    assert_eq!(heard.expect("a talk"), b"x");
}

#[test]
fn files_of_two_pairs_are_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = tempfile::tempdir().expect("a folder");
    certified(folder.path(), &["a"]);
    certified(other.path(), &["a"]);
    let path = |name: &str| folder.path().join(name);
    let mixed = MutualTlsOptions {
        files: CertificateFiles::new(path("own.pem"), other.path().join("own.key")),
        ca: path("ca.pem"),
    };
    let error = MutualTls::new(mixed).expect_err("two pairs");
    assert!(matches!(error, TlsError::Mismatch { .. }), "{error}");
    let keyless = MutualTlsOptions {
        files: CertificateFiles::new(path("own.pem"), path("own.key")),
        ca: path("own.key"),
    };
    let error = MutualTls::new(keyless).expect_err("no authority");
    assert!(matches!(error, TlsError::Missing { .. }), "{error}");
}
