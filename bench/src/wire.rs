//! Both sides of an SMTP dialogue without sockets, and the octets between dialogue and socket.

mod buffer;
mod dialogue;
mod from;
mod link;
mod output;
mod receiver;
mod sender;

pub(crate) use buffer::Buffer;
pub(crate) use dialogue::Dialogue;
pub(crate) use from::connect_from;
pub(crate) use link::{Link, Readiness};
pub(crate) use output::Output;
pub use receiver::Stage;
pub(crate) use receiver::{Manners, Receiver, Wait};
pub(crate) use sender::{Outcome, Sender, Turn};

/// Appends `message` to `out` without the dots doubled for transport (RFC 5321 section 4.5.2).
pub(crate) fn unstuff(message: &[u8], out: &mut Vec<u8>) {
    let mut rest = message;
    if let Some(b'.') = rest.first() {
        rest = &rest[1..];
    }
    while let Some(at) = memchr::memmem::find(rest, b"\r\n.") {
        out.extend_from_slice(&rest[..at + 2]);
        rest = &rest[at + 3..];
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::unstuff;

    #[test]
    fn doubled_dots_become_single() {
        for (wire, text) in [
            ("", ""),
            ("a\r\n", "a\r\n"),
            ("..a\r\n", ".a\r\n"),
            ("x\r\n..\r\n...y\r\n", "x\r\n.\r\n..y\r\n"),
            ("x\n..y\r\n", "x\n..y\r\n"),
        ] {
            let mut out = Vec::new();
            unstuff(wire.as_bytes(), &mut out);
            assert_eq!(out, text.as_bytes());
        }
    }
}
