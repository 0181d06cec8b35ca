//! Many peers at once.

use super::help::*;
use crate::*;

/// Resident memory of this process, in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn three_hundred_peers_at_once() {
    const PEERS: u64 = 300;
    let (listener, address) = listen().await;
    let before = resident();
    let book = book();
    let (peer, responder) = (peer(address, NORMAL, &patient()), responder(&patient()));
    let names = Names::new("mta-a");
    let mut near = Vec::new();
    let mut far = tokio::task::JoinSet::new();
    for _ in 0..PEERS {
        let (opened, accepted) =
            tokio::join!(initiate(&peer, names.next()), accept(&listener, &responder));
        near.push(opened.unwrap().0);
        far.spawn(sink(accepted.unwrap(), book.clone()));
    }
    let open = resident();
    let mut sending = tokio::task::JoinSet::new();
    for (number, mut open) in (0..).zip(near) {
        sending.spawn(async move {
            assert!(open.transfer(&apdu(number, 10_000)).await.is_transferred());
            assert_eq!(open.release().await, End::Released);
        });
    }
    while let Some(done) = sending.join_next().await {
        done.unwrap();
    }
    while let Some(end) = far.join_next().await {
        assert_eq!(end.unwrap(), End::Released);
    }
    assert_eq!(book.lock().unwrap().seen.len() as u64, PEERS);
    println!(
        "{PEERS} associations, both sides in this process: {} KiB each side; {} KiB after 10 KB over each",
        open.saturating_sub(before) / (2 * PEERS),
        resident().saturating_sub(before) / (2 * PEERS)
    );
}
