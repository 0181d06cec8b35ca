//! Sources of a rebuild that answer something else, or nothing.

use vere_spoolwire::{Answer, BlockHead};

use super::*;

/// Three nodes with a queue that holds something; the last one comes back empty.
fn with_an_empty_one() -> Circle {
    let mut circle = Circle::new(3, 1, |config| config.replicas = 3);
    circle.open();
    let queue = circle.queue("q");
    circle.owner.commit(put(queue, 10)).unwrap();
    circle.settle();
    circle.kill(2);
    circle.pass(Duration::from_secs(4));
    assert_eq!(circle.states()[2], SyncState::Out);
    circle
}

fn is_rebuilt(circle: &Circle) -> bool {
    circle.states() == [SyncState::Sync; 3] && circle.held(2) == circle.held(0)
}

#[test]
fn a_rebuild_goes_on_when_its_source_answers_something_else() {
    let mut circle = with_an_empty_one();
    circle.dumb = Some(0);
    circle.start(2);
    circle.pass(Duration::from_secs(1));
    let asked = circle.owner.reads.iter();
    let asked = asked.filter(|(_, read)| matches!(read.purpose, Purpose::CopyQueues(2)));
    let asked: Vec<(Seq, Option<usize>)> = asked.map(|(seq, read)| (*seq, read.asked)).collect();
    let [(seq, Some(0))] = *asked else {
        panic!("{asked:?}");
    };
    circle.dumb = None;
    let mut octets = Vec::new();
    let head = BlockHead {
        queue: QueueId(0),
        records: 0,
        next: RecordId(1),
        octets: 0,
        end: true,
        known: true,
    };
    Answer::Block { seq, head }.encode(&mut octets);
    let source = Link {
        node: 0,
        address: 0,
    };
    let now = circle.now;
    let error = circle.owner.input(source, &octets, now);
    assert_eq!(error, Err(OwnerError::Protocol));
    circle.disconnect(source);
    circle.pass(Duration::from_secs(2));
    assert!(is_rebuilt(&circle), "{:?}", circle.owner.table());
}

#[test]
fn a_rebuild_goes_on_when_its_source_does_not_answer() {
    let mut circle = with_an_empty_one();
    circle.dumb = Some(0);
    circle.start(2);
    circle.pass(Duration::from_secs(9));
    assert!(!is_rebuilt(&circle));
    circle.pass(Duration::from_secs(3));
    assert!(is_rebuilt(&circle), "{:?}", circle.owner.table());
}
