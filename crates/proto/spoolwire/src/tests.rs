//! Frames written and read: their octets ([`golden`]), who may talk to whom ([`handshake`]), what is refused
//! ([`rules`]), and that everything is read back as it was ([`read_back`]).

use vere_units::Secret;

use super::*;

mod golden;
mod handshake;
mod read_back;
mod rules;

const MAX: usize = 1 << 20;

fn encoded(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

fn kept_queue() -> QueueStat {
    QueueStat {
        id: QueueId(3),
        name: "a.test".to_owned(),
        limits: QueueLimits {
            length_max: 1000,
            bytes_max: 1 << 20,
        },
        readers: KeptGrants::default(),
        first: RecordId(4),
        next: RecordId(8),
        length: 2,
        bytes: 100,
    }
}

/// One that `bill` may read.
fn read_queue() -> QueueStat {
    let readers = Grants::encode([("bill", Right::Read)]).unwrap();
    QueueStat {
        readers: Grants::read(&readers).unwrap().into(),
        ..kept_queue()
    }
}

fn welcome() -> Welcome {
    Welcome {
        processed: Txn(9),
        acknowledged: Txn(8),
        owner: 5,
        epoch: 6,
        synced: true,
        syncing: false,
        frame_max: 1 << 26,
        proof: [3; SECRET_LEN],
        refused: vec![
            (Txn(4), NodeRefusal::NodeFull),
            (Txn(6), NodeRefusal::NoRecord),
        ],
    }
}

fn greeting() -> Greeting {
    Greeting {
        incarnation: Incarnation(0x0102),
        version_min: VERSION,
        version_max: VERSION,
        challenge: [7; SECRET_LEN],
    }
}

/// `west` may adopt, `watch` may read.
const GRANTS: &[u8] = b"\x01\x04west\x02\x05watch";

fn charter() -> Charter<'static> {
    Charter {
        bytes_max: 1 << 30,
        grants: Grants::read(GRANTS).unwrap(),
    }
}

fn hello() -> Hello<'static> {
    Hello {
        acknowledged: Txn(12),
        version: VERSION,
        role: Role::Owner,
        owner: 0x0304,
        epoch: 6,
        logged: true,
        group: "gateway",
        account: "east",
        charter: charter(),
        nonce: [9; SECRET_LEN],
        proof: [0; SECRET_LEN],
    }
}

fn readers(names: &[String]) -> KeptGrants {
    let named = names.iter().map(|name| (name.as_str(), Right::Read));
    let octets = Grants::encode(named).unwrap();
    Grants::read(&octets).unwrap().into()
}
