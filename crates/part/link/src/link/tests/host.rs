//! What the node's host makes of sockets and of time.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use vere_spoolwire::Batch;

use super::*;

/// A peer that is gone is noticed when it goes, not when it was silent for long.
#[test]
fn an_end_that_comes_together_with_octets_is_noticed() {
    let patient = NodeConfig {
        handshake_timeout: Duration::from_secs(3_600),
        ..config()
    };
    let mut node = RunningNode::start(Durability::Memory, patient);
    for _ in 0..6 {
        let connect = |_| TcpStream::connect(node.address).unwrap();
        let mut sockets: Vec<TcpStream> = (0..50).map(connect).collect();
        for socket in &mut sockets {
            let mut greeting = [0; 16];
            socket.read_exact(&mut greeting).unwrap();
            socket.write_all(b"half a HELLO").unwrap();
            socket.shutdown(Shutdown::Write).unwrap();
        }
        for mut socket in sockets {
            let patience = Duration::from_secs(60);
            socket.set_read_timeout(Some(patience)).unwrap();
            let mut rest = Vec::new();
            socket.read_to_end(&mut rest).expect("the node's end");
        }
    }
    node.end();
}

/// Each step waits for the one before, and nothing else comes that is synced.
#[test]
fn emptying_a_queue_step_by_step_does_not_wait_for_others() {
    const STEPS: u64 = 100;
    let directory = tempfile::tempdir().unwrap();
    let delay = Duration::from_secs(2);
    let slow = NodeConfig {
        sync_delay: delay,
        ..config()
    };
    let node = RunningNode::start(synced(directory.path()), slow);
    local(async {
        let register = TestRegister::new();
        let link = connect(options(node.address, &register)).await;
        let queue = link
            .create_queue("a.test", QueueLimits::UNLIMITED)
            .await
            .unwrap();
        let mut ids = Vec::new();
        for _ in 0..STEPS {
            let mut batch = Batch::new();
            for _ in 0..64 {
                batch.put(queue, Bytes::from_static(b"meta"), Bytes::from_static(b"b"));
            }
            ids.push(link.commit(batch).await.unwrap().ids);
        }
        // The first one may take a sync for the records for one that is near.
        let begin = Instant::now();
        for ids in ids {
            let mut batch = Batch::new();
            for id in ids {
                batch.delete(queue, id);
            }
            link.commit(batch).await.unwrap();
        }
        let took = begin.elapsed();
        eprintln!("{STEPS} steps of 64 records in {took:?}");
        let waits = delay * u32::try_from(STEPS).unwrap();
        assert!(took < waits / 4, "{took:?}");
        link.close();
    });
    drop(node);
}
