//! The session that a front hands over: what is decoded encodes to the same octets, and a worker goes on with it.

use std::sync::Arc;

use vere_script::bare::World;
use vere_smtp::server::{Handover, Server};
use vere_units::{ByteSize, Timestamp};

use crate::choice::choice;
use crate::smtp::{MEMORY_BESIDE, NOW, Session, turn};

/// A session of the fewest octets, and one with every field.
pub(crate) const SEEDS: &[&[u8]] = &[
    b"\x00\x02\x00\x04\xc0\x00\x02\x07g\x12\x04\xcb\x00\x71\x19\x19\x00\x00\x00\x01\x00x\x01\x00\x00\
      \x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\
      \x0c\x00MAIL FROM:<>\x00\x00\x00\x00\x00\
      \x01\x00\x19\x00RCPT TO:<alice@demo.test>\x18\x00250 2.1.5 recipient ok\r\n",
    b"\x05\x02\x0d\x04\xc0\x00\x02\x07g\x12\x06\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\
      \x19\x00\x0d\x0c\x0b\x0a\x03\x00\x00\x00\x01\x05\x00mx.\xc3\xa9\
      \x01\x07\x00TLSv1.3\x03\x00AES\x01\x02\x00us\x0e\x00client.example\x01\x01\x03\x00tim\
      \x01\x01\x0b\x00[192.0.2.8]\x01\x00\x01\x03\x00bob\
      \x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\x04\x00\x00\x00\x04\x03\x02\x01\
      l\x00MAIL FROM:<a@b.example> SIZE=9 BODY=8BITMIME SMTPUTF8 RET=HDRS ENVID=Q+2B AUTH=e@f REQUIRETLS \
      MT-PRIORITY=-3\x05\x00\x00\x00\x07\
      \x02\x00,\x00RCPT TO:<\xc3\xbc@d> NOTIFY=NEVER ORCPT=rfc822;o@d\x14\x00RCPT TO:<postmaster>\
      \x04\x00ok\r\n",
];

/// What the client sends behind the accepted recipient.
const BEHIND: [&[u8]; 4] = [
    b"DATA\r\nSubject: x\r\n\r\n..\r\n.\r\nQUIT\r\n",
    b"RCPT TO:<bob@demo.test>\r\nX\r\nBDAT 3\r\na\r\nBDAT 0 LAST\r\nMAIL FROM:<a@b.example>\r\n",
    b"RSET\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<bob@demo.test>\r\nNOOP\r\nDATA\r\n\n.\r\n.\r\n",
    b"STARTTLS\r\n",
];

/// The octets of a front that may send anything.
pub(crate) fn handover(octets: &[u8]) {
    let (kind, octets) = choice(octets);
    let Ok(handover) = Handover::decode(octets) else {
        return;
    };
    let mut again = Vec::new();
    handover.encode(&mut again);
    assert_eq!(again, octets, "another form of the same session");
    let mut world = World::new();
    if kind & 4 != 0 {
        let limits = &mut world.config.limits;
        limits.recipients_max = 1;
        limits.errors_max = 1;
        limits.idle_commands_max = 1;
        limits.refusals_max = 0;
        limits.transactions_max = 1;
        limits.output_octets_max = 100;
        limits.message_size_max = ByteSize::new(10);
    }
    let config = Arc::new(world.config.clone());
    let resumed = Server::resume(Arc::clone(&config), handover.clone(), Timestamp::MAX);
    match resumed.hand_over() {
        // The note is for the host; the machine drops it.
        Ok(other) => assert_eq!(
            other.with_note(handover.note()),
            handover,
            "changed by a worker"
        ),
        Err((_, refused)) => panic!("handed over and not again: {refused}"),
    }
    let mut server = Server::resume(config, handover, NOW);
    assert!(server.has_recipient() && server.deadline() < Timestamp::MAX);
    let mut session = Session::default();
    let [a, b, c, d] = BEHIND;
    let mut waiting = match kind & 3 {
        0 => a,
        1 => b,
        2 => c,
        _ => d,
    }
    .to_vec();
    turn(&mut server, &mut world, &mut waiting, &mut session);
    assert!(server.memory() <= MEMORY_BESIDE, "holds too much");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seeds are of no use if they do not decode.
    #[test]
    fn seeds_decode() {
        for seed in SEEDS {
            let (_, octets) = choice(seed);
            assert_eq!(Handover::decode(octets).map(|_| ()), Ok(()));
            for kind in 0..8 {
                handover(&[&[kind], octets].concat());
            }
        }
    }
}
