//! What memory holds of messages that leave.

use super::*;

#[test]
fn a_queue_keeps_no_places_of_messages_that_left() {
    let mut queues = queues(Policy::default());
    for record in 0..1_000 {
        assert!(queues.admit(
            QUEUE,
            RecordId(record),
            fresh(record, at(0)),
            Some(BODY),
            at(0)
        ));
        let job = take(&mut queues, at(0)).expect("a message");
        let delivered = attempt(Disposition::Delivered, job.envelope.mail.recipients.len());
        queues.settle(QUEUE, &job, &delivered, at(0));
    }
    let queue = queues.queues.get(QUEUE).expect("the queue");
    assert!(queue.heads.len() <= 65, "{} places", queue.heads.len());
    assert_eq!((queue.head_octets, queues.heads.octets()), (0, 0));
}

/// Found by the simulation: an idle worker was woken again and again for messages behind the one that was being
/// fetched, and took none.
#[test]
fn nobody_is_woken_until_the_message_whose_turn_it_is_has_come() {
    let mut queues = queues(Policy::default());
    assert!(queues.admit(QUEUE, RecordId(1), fresh(1, at(0)), Some(BODY), at(0)));
    assert_eq!(opened(&mut queues, at(0)), 1);
    let job = queues.take(QUEUE, true, at(0)).expect("a message");
    put_off(&mut queues, &job, &deferred(), at(0));
    assert!(queues.worker_idle(QUEUE));
    // The message that was put off is ready again and has to be fetched; another one behind it is in memory.
    let mut again = fresh(2, at(0));
    again.head.priority = -4;
    assert!(queues.admit(QUEUE, RecordId(2), again, Some(BODY), at(0)));
    let later = at(100_000);
    let Some(Next::Fetch(wanted)) = queues.poll(later) else {
        panic!("a fetch comes first");
    };
    assert_eq!((wanted.from, queues.poll(later)), (RecordId(1), None));
    let envelope = fresh(1, at(0));
    queues.supply(&wanted, [(RecordId(1), envelope, BODY)]);
    assert_eq!(queues.poll(later), Some(Next::Wake(QUEUE)));
}
