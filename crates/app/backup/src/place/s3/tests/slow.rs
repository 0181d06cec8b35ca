//! Silent, slow and broken servers: each request ends within a bound, with the expectation in the error.

use super::*;

/// Time for an answer.
const ANSWER: Duration = Duration::from_millis(200);
/// From one octet of a slow server to the next.
const DRIP: Duration = Duration::from_millis(20);
/// A request is sent again until [`RETRY_TIMES`] times [`ANSWER`] are over, and takes another two of them; the rest is
/// for a busy machine.
const BOUND: Duration = Duration::from_secs(8);
/// The octets of an object larger than all buffers of the system.
const LARGE: usize = 16 * 1024 * 1024;

/// A slow answer, ended by the client's end.
pub(super) fn answer(stream: &mut TcpStream, fault: Fault, (head, body): (&[u8], &[u8])) {
    let (at_once, slowly) = match fault {
        Fault::HeadDrip => (Vec::new(), head),
        Fault::Drip => (head.to_vec(), body),
        _ => ([head, &body[..body.len() / 2]].concat(), &[][..]),
    };
    stream.write_all(&at_once).unwrap();
    for octet in slowly {
        if stream.write_all(&[*octet]).is_err() {
            return;
        }
        thread::sleep(DRIP);
    }
}

fn impatient(endpoint: &str) -> Bucket {
    let mut retry = retries(RETRIES, ANSWER * RETRY_TIMES);
    retry.backoff.init_backoff = Duration::from_millis(10);
    let waits = Waits {
        answer: ANSWER,
        retry,
        terms: terms(),
    };
    bucket_with(endpoint, waits)
}

/// The error of a use of the place, within the bound.
fn fails<T: std::fmt::Debug>(used: impl FnOnce() -> io::Result<T>) -> String {
    let began = Instant::now();
    let error = used().unwrap_err();
    let took = began.elapsed();
    assert!(took < BOUND, "{took:?}: {error}");
    assert_eq!(error.kind(), ErrorKind::NotConnected, "{error}");
    error.to_string()
}

#[test]
fn a_silent_or_slow_server_costs_a_bounded_time() {
    let server = Server::default();
    let place = impatient(&server.start());
    let content = vec![7; 200];
    place.write("objects/00/one", &content).unwrap();
    let cases = [
        (Fault::Silent, "within 200ms; found none"),
        (Fault::HeadDrip, "within 200ms; found none"),
        (Fault::Stopped, "found 100 bytes of it in 200ms"),
        (Fault::Drip, "bytes of it in 200ms"),
        (Fault::Cut, "expected a whole answer; found an end after"),
        (Fault::Broken, "500"),
    ];
    for (fault, expected) in cases {
        server.state().faults = [fault; 99].into();
        let said = fails(|| place.read("objects/00/one", 200));
        assert!(said.contains(expected), "{fault:?}: {said}");
        assert!(said.contains("/bucket/some/place/objects/00/one"), "{said}");
        server.state().faults.clear();
        assert_eq!(place.read("objects/00/one", 200).unwrap(), content);
    }
    server.state().faults = [Fault::Silent; 99].into();
    let said = fails(|| place.list("objects"));
    assert!(said.contains("expected an answer"), "{said}");
}

#[test]
fn a_write_that_breaks_off_leaves_no_part_of_an_object() {
    let server = Server::default();
    let endpoint = server.start();
    let place = impatient(&endpoint);
    let content = vec![7; LARGE];
    for (fault, expected) in [
        (Fault::Torn, "retries"),
        (Fault::Silent, "within 200ms; found none"),
        (Fault::Broken, "500"),
    ] {
        server.state().faults = [fault; 99].into();
        let said = fails(|| place.write("objects/00/one", &content[..4096]));
        assert!(said.contains(expected), "{fault:?}: {said}");
        assert!(server.state().objects.is_empty());
    }
    // The time for an answer is short for a large object on a busy machine.
    let place = bucket(&endpoint);
    server.state().faults = [Fault::Torn, Fault::Broken, Fault::Busy].into();
    place.write("objects/00/one", &content).unwrap();
    assert_eq!(place.read("objects/00/one", LARGE as u64).unwrap(), content);
}

#[test]
fn a_lease_and_a_list_fail_within_bounds_and_can_be_written_later() {
    let server = Server::default();
    let place = impatient(&server.start());
    server.state().faults = [Fault::Silent; 99].into();
    let said = fails(|| place.lock(Use::Writing));
    assert!(said.contains("found none"), "{said}");
    server.state().faults = [Fault::HeadDrip; 99].into();
    let said = fails(|| place.create("manifests/00000001", b"1"));
    assert!(said.contains("manifests/00000001"), "{said}");
    server.state().faults.clear();
    // Whether a request was carried out whose answer never came, the next command finds out.
    server.state().objects.clear();
    let lease = place.lock(Use::Writing).unwrap();
    place.create("manifests/00000001", b"2").unwrap();
    assert_eq!(place.read("manifests/00000001", 9).unwrap(), b"2");
    drop(lease);
}

/// A removal was sent again for two minutes, and could arrive when another command had taken over the lease.
#[test]
fn a_removal_is_not_sent_again_when_the_lease_has_ended() {
    let server = Server::default();
    let place = impatient(&server.start());
    let lease = place.lock(Use::Changing).unwrap();
    place.write("objects/00/one", b"1").unwrap();
    server.state().faults = [Fault::Broken, Fault::Busy, Fault::Broken].into();
    place.remove("objects/00/one").unwrap();
    place.write("objects/00/one", b"1").unwrap();
    server.state().faults = vec![Fault::Broken; 10_000].into();
    let began = Instant::now();
    let error = place.remove("objects/00/one").unwrap_err().to_string();
    assert!(
        error.contains("the lease on the backups") || error.contains("500"),
        "{error}"
    );
    assert!(began.elapsed() < terms().steal, "{:?}", began.elapsed());
    server.state().faults.clear();
    assert!(
        server
            .state()
            .objects
            .contains_key("some/place/objects/00/one")
    );
    drop(lease);
}

#[test]
fn the_time_for_an_answer_has_bounds() {
    assert_eq!(timeout(None).unwrap(), TIMEOUT_DEFAULT);
    assert_eq!(timeout(Some("".as_ref())).unwrap(), TIMEOUT_DEFAULT);
    for (right, seconds) in [("1s", 1), ("60s", 60), ("1m", 60), ("5s", 5)] {
        let found = timeout(Some(right.as_ref())).unwrap();
        assert_eq!(found, Duration::from_secs(seconds));
    }
    for wrong in ["0s", "999ms", "61s", "30", "text"] {
        let error = timeout(Some(wrong.as_ref())).unwrap_err().to_string();
        assert!(error.contains("from 1s to 60s"), "{error}");
    }
}
