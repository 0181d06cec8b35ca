//! What memory holds of messages that leave.

use super::*;

#[test]
fn a_queue_keeps_no_places_of_messages_that_left() {
    let mut queues = queues(Policy::default());
    for record in 0..1_000 {
        assert!(queues.admit(QUEUE, record, fresh(record, at(0)), Some(BODY), at(0)));
        let job = take(&mut queues, at(0)).expect("a message");
        let delivered = attempt(Disposition::Delivered, job.envelope.recipients.len());
        queues.settle(QUEUE, &job, &delivered, at(0));
    }
    let queue = queues.queues.get(QUEUE).expect("the queue");
    assert!(queue.heads.len() <= 65, "{} places", queue.heads.len());
    assert_eq!((queue.head_octets, queues.heads.octets()), (0, 0));
}
