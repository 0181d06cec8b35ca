//! Three MTAs in memory, A to B to C: every recipient ends once, delivered or reported.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use proptest::prelude::*;
use vere_x400::*;

use super::sample::{address, domain, mta, route, terms, time, user};
use crate::*;

const HOUR: u64 = 3_600;
const NAMES: [&str; 3] = ["a", "b", "c"];

/// How a recipient ended: the time in seconds, and what happened.
type Ends = BTreeMap<(String, u32), Vec<(u64, String)>>;

enum Event {
    Arrives(usize, Option<usize>, Bytes),
    Attempt(usize, Bytes, Vec<u32>, Destination, Time),
}

struct World {
    mtas: Vec<Mta>,
    /// MTAs that take nothing.
    down: BTreeSet<usize>,
    events: BTreeMap<(u64, usize), Event>,
    count: usize,
    now: u64,
    ends: Ends,
    /// Reports that reached users: subject and numbers.
    told: Vec<(String, Vec<u32>)>,
    /// Reports that ended on the way.
    ended: Vec<Cause>,
}

/// Each domain has users x and y; A and C reach each other over B.
fn world(change: impl FnOnce(&mut [Vec<RouteSetting>; 3], &mut [Vec<Terms>; 3])) -> World {
    let up = |name: &str| name.to_uppercase();
    let domain_of = |name: &str| format!("P={};A=Carrier;C=GB", up(name));
    let mut rows = NAMES.map(|name| {
        let mut rows = vec![route(&domain_of(name), "unknown")];
        for one in ["x", "y"] {
            rows.push(route(
                &user(one, &up(name)).to_string(),
                &format!("store:{one}"),
            ));
        }
        for other in NAMES.into_iter().filter(|other| *other != name) {
            let next = if name == "b" { other } else { "b" };
            rows.push(route(&domain_of(other), &format!("peer:{next}")));
        }
        rows
    });
    let mut peers = NAMES.map(|name| {
        let others = NAMES.into_iter().filter(|other| *other != name);
        others.map(|other| terms(other, &up(other))).collect()
    });
    change(&mut rows, &mut peers);
    let [pa, pb, pc] = peers;
    World {
        mtas: vec![
            mta("A", "mta-a", pa, &rows[0]),
            mta("B", "mta-b", pb, &rows[1]),
            mta("C", "mta-c", pc, &rows[2]),
        ],
        down: BTreeSet::new(),
        events: BTreeMap::new(),
        count: 0,
        now: 0,
        ends: Ends::new(),
        told: Vec::new(),
        ended: Vec::new(),
    }
}

fn plain() -> World {
    world(|_, _| {})
}

impl World {
    fn at(&mut self, when: u64, event: Event) {
        self.count += 1;
        self.events.insert((when, self.count), event);
    }

    fn next_id(&mut self) -> String {
        self.count += 1;
        format!("id-{}", self.count)
    }

    /// Sends a message of `x` of domain A.
    fn send(&mut self, recipients: &[OrAddress], change: impl FnOnce(&mut Submission)) -> String {
        let mut submission = Submission {
            originator: user("x", "A"),
            recipients: recipients.to_vec(),
            reports: Reports::All,
            ..Submission::default()
        };
        change(&mut submission);
        let id = self.next_id();
        let message = self.mtas[0]
            .site
            .compose(&submission, "Hi", "Text", &id)
            .unwrap();
        let octets = Apdu::Message(message).to_bytes();
        self.at(self.now, Event::Arrives(0, None, octets));
        id
    }

    fn run(&mut self) {
        let mut steps = 0;
        while let Some(((now, _), event)) = self.events.pop_first() {
            self.now = now;
            steps += 1;
            assert!(steps < 2_000, "messages go on for ever");
            match event {
                Event::Arrives(at, from, octets) => self.arrives(at, from, &octets),
                Event::Attempt(at, octets, places, to, expires) => {
                    self.attempt(at, octets, places, to, expires);
                }
            }
        }
    }

    fn arrives(&mut self, at: usize, from: Option<usize>, octets: &Bytes) {
        let id = self.next_id();
        let arrival = Arrival {
            source: from.map_or(Source::Local, |from| Source::Peer(NAMES[from])),
            at: time(self.now),
            id: &id,
        };
        let outcome = self.mtas[at]
            .transfer(Apdu::split(octets).unwrap(), arrival)
            .unwrap();
        if outcome.facts.kind == UnitKind::Report {
            assert_eq!(outcome.report, None);
            if let Decision::Failed(cause) = outcome.facts.recipients[0].decision {
                self.ended.push(cause);
            }
        }
        for part in &outcome.onward {
            let record = outcome.record(part);
            let places = record.recipients.iter();
            let places = places.map(|one| RecordRecipient::place_of(&one.tag()).unwrap());
            let places: Vec<_> = places.collect();
            assert_eq!(places, part.recipients);
            let octets = outcome.pieces().concat().into();
            let seconds = part.not_before.map_or(self.now, seconds);
            let attempt =
                Event::Attempt(at, octets, places, part.destination.clone(), part.expires);
            self.at(seconds, attempt);
        }
        self.submit(at, outcome.report);
    }

    fn submit(&mut self, at: usize, report: Option<Box<Report>>) {
        if let Some(report) = report {
            let octets = Apdu::Report(report).to_bytes();
            self.at(self.now, Event::Arrives(at, None, octets));
        }
    }

    fn report(&mut self, at: usize, octets: &Bytes, fates: &[(u32, Fate)]) {
        let id = self.next_id();
        let about = Apdu::split(octets).unwrap();
        let report = self.mtas[at].site.report(about, fates, time(self.now), &id);
        self.submit(at, report.map(Box::new));
    }

    fn attempt(
        &mut self,
        at: usize,
        octets: Bytes,
        places: Vec<u32>,
        to: Destination,
        expires: Time,
    ) {
        let next = to
            .peer()
            .map(|name| NAMES.iter().position(|one| *one == name).unwrap());
        let all = |fate: Fate| {
            places
                .iter()
                .map(|place| (*place, fate.clone()))
                .collect::<Vec<_>>()
        };
        if next.is_some_and(|next| self.down.contains(&next)) {
            if self.now >= seconds(expires) {
                self.report(at, &octets, &all(Fate::of_status("5.4.7", "no answer")));
            } else {
                let later = (self.now + HOUR).min(seconds(expires));
                self.at(later, Event::Attempt(at, octets, places, to, expires));
            }
            return;
        }
        let outgoing = self.mtas[at].outgoing(&octets, &places, &to).unwrap();
        assert_eq!(outgoing.left_out, []);
        let apdu = outgoing.apdu.unwrap();
        if let Some(next) = next {
            let sent = apdu.to_bytes();
            self.at(self.now + 1, Event::Arrives(next, Some(at), sent));
            return;
        }
        self.deliver(&apdu);
        let fate = Fate::Delivered {
            at: time(self.now),
            user: TypeOfMtsUser::Private,
        };
        self.report(at, &octets, &all(fate));
    }

    fn deliver(&mut self, apdu: &Apdu) {
        match apdu {
            Apdu::Message(message) => {
                let id = message
                    .envelope
                    .message_identifier
                    .local_identifier
                    .to_string();
                let fields = message.envelope.per_recipient_fields.iter();
                for one in fields.filter(|one| crate::subject::is_responsible(one)) {
                    let number = one.originally_specified_recipient_number;
                    let end = format!("delivered to {}", one.recipient_name);
                    self.end(&id, number, end);
                }
            }
            Apdu::Report(report) => {
                let id = report
                    .content
                    .subject_identifier
                    .local_identifier
                    .to_string();
                let fields = &report.content.per_recipient_fields;
                let numbers = fields
                    .iter()
                    .map(|one| one.originally_specified_recipient_number);
                self.told.push((id.clone(), numbers.collect()));
                for one in fields {
                    if let ReportType::NonDelivery(failure) =
                        &one.last_trace_information.report_type
                    {
                        let diagnostic = failure.non_delivery_diagnostic_code;
                        let end = diagnostic.map(|code| code.to_string()).unwrap_or_default();
                        self.end(&id, one.originally_specified_recipient_number, end);
                    }
                }
            }
            Apdu::Probe(_) => panic!("a probe is not delivered"),
        }
    }

    fn end(&mut self, id: &str, number: u32, end: String) {
        let ends = self.ends.entry((id.to_owned(), number)).or_default();
        ends.push((self.now, end));
    }

    /// The one end of each recipient of a message.
    #[track_caller]
    fn assert_ends(&self, id: &str, expected: &[&str]) {
        for (number, expected) in (1..).zip(expected) {
            let ends = &self.ends[&(id.to_owned(), number)];
            let texts: Vec<_> = ends.iter().map(|(_, text)| text.as_str()).collect();
            assert_eq!(texts, [*expected], "recipient {number}");
        }
        let count = self.ends.keys().filter(|(one, _)| one == id).count();
        assert_eq!(count, expected.len());
    }
}

fn seconds(time: Time) -> u64 {
    time.timestamp().as_millis() / 1_000 - super::sample::NOW
}

const X_OF_C: &str = "delivered to S=x;P=C;A=Carrier;C=GB";

#[test]
fn a_message_over_two_hops_ends_once_for_each_recipient() {
    let mut world = plain();
    let id = world.send(
        &[
            user("x", "C"),
            user("nobody", "C"),
            user("y", "B"),
            user("x", "C"),
            user("nobody", "B"),
            address("S=x;A=Far;C=US"),
        ],
        |_| {},
    );
    world.run();
    let unknown = "unrecognised-OR-name";
    world.assert_ends(
        &id,
        &[
            X_OF_C,
            unknown,
            "delivered to S=y;P=B;A=Carrier;C=GB",
            X_OF_C,
            unknown,
            unknown,
        ],
    );
    // One report of each MTA about failures, one of each about deliveries.
    let told: Vec<_> = world
        .told
        .iter()
        .map(|(_, numbers)| numbers.clone())
        .collect();
    assert_eq!(told, [vec![6], vec![5], vec![3], vec![2], vec![1, 4]]);
}

#[test]
fn reports_that_nobody_asked_for_are_not_sent() {
    let mut world = plain();
    let quiet = |submission: &mut Submission| submission.reports = Reports::None;
    let delivered = world.send(&[user("x", "C")], quiet);
    let failed = world.send(&[user("nobody", "C")], quiet);
    world.run();
    world.assert_ends(&delivered, &[X_OF_C]);
    // The MTA of the originator is told, the originator is not.
    world.assert_ends(&failed, &[]);
    assert_eq!(world.told, []);
}

#[test]
fn deferred_messages_arrive_not_earlier() {
    let mut world = plain();
    let id = world.send(&[user("x", "C")], |submission| {
        submission.not_before = Some(time(5 * HOUR));
    });
    world.run();
    world.assert_ends(&id, &[X_OF_C]);
    assert_eq!(world.ends[&(id, 1)][0].0, 5 * HOUR + 2);
}

#[test]
fn what_cannot_be_sent_expires() {
    let mut world = plain();
    world.down.insert(2);
    let normal = world.send(&[user("x", "C"), user("x", "B")], |_| {});
    let urgent = world.send(&[user("x", "C")], |submission| {
        submission.priority = Priority::Urgent;
    });
    let latest = world.send(&[user("x", "C")], |submission| {
        submission.latest = Some(time(90));
    });
    world.run();
    let expired = "maximum-time-expired";
    let in_b = "delivered to S=x;P=B;A=Carrier;C=GB";
    world.assert_ends(&normal, &[expired, in_b]);
    world.assert_ends(&urgent, &[expired]);
    world.assert_ends(&latest, &[expired]);
    let when = |id: &String| world.ends[&(id.clone(), 1)][0].0;
    assert_eq!(
        (when(&normal), when(&urgent), when(&latest)),
        (24 * HOUR + 2, 4 * HOUR + 2, 91)
    );
}

#[test]
fn a_loop_of_routes_ends_in_one_report() {
    // C believes that domain D is behind B, and B that it is behind C.
    let mut world = world(|rows, _| {
        let d = "P=D;A=Carrier;C=GB";
        for (rows, to) in rows.iter_mut().zip(["peer:b", "peer:c", "peer:b"]) {
            rows.push(route(d, to));
        }
    });
    let id = world.send(&[user("x", "D"), user("x", "C")], |_| {});
    world.run();
    world.assert_ends(&id, &["loop-detected", X_OF_C]);
}

#[test]
fn redirections_over_domains_end() {
    let mut world = plain();
    let redirect = |world: &mut World, at: usize, name: &str, to: OrAddress| {
        let user = world.mtas[at]
            .site
            .users
            .entry(name.to_owned())
            .or_default();
        user.redirect_to = Some(to);
    };
    redirect(&mut world, 2, "x", user("y", "B"));
    let once = world.send(&[user("x", "C"), user("y", "C")], |_| {});
    world.run();
    let y = |private: &str| format!("delivered to S=y;P={private};A=Carrier;C=GB");
    world.assert_ends(&once, &[&y("B"), &y("C")]);
    // Back to C, where the message was before.
    redirect(&mut world, 1, "y", user("y", "C"));
    let twice = world.send(&[user("x", "C")], |_| {});
    world.run();
    world.assert_ends(&twice, &[&y("C")]);
    // In a circle.
    redirect(&mut world, 1, "y", user("x", "C"));
    let circle = world.send(&[user("x", "C")], |_| {});
    world.run();
    world.assert_ends(&circle, &["redirection-loop-detected"]);
}

#[test]
fn an_alternate_of_the_originator_is_reached_over_domains() {
    let mut world = plain();
    let id = world.send(&[user("nobody", "C")], |submission| {
        submission.alternate = Some(user("y", "B"));
    });
    world.run();
    world.assert_ends(&id, &["delivered to S=y;P=B;A=Carrier;C=GB"]);
}

#[test]
fn a_peer_of_1984_passes_on_what_fits() {
    let mut world = world(|_, peers| {
        let [of_a, _, of_c] = peers;
        for terms in of_a.iter_mut().chain(of_c) {
            terms.profile = Profile::Y1984;
        }
    });
    let fits = world.send(
        &[
            user("x", "C"),
            user("nobody", "C"),
            address("S=Größe;P=C;A=Carrier;C=GB"),
        ],
        |_| {},
    );
    let critical = world.send(&[user("x", "C")], |submission| {
        submission.latest = Some(time(90))
    });
    world.run();
    world.assert_ends(
        &fits,
        &[X_OF_C, "unrecognised-OR-name", "unable-to-downgrade"],
    );
    world.assert_ends(&critical, &["unable-to-downgrade"]);
}

#[test]
fn probes_are_answered_by_the_last_mta() {
    let mut world = plain();
    let submission = Submission {
        originator: user("x", "A"),
        recipients: vec![user("x", "C"), user("nobody", "C"), user("x", "B")],
        ..Submission::default()
    };
    let probe = world.mtas[0]
        .site
        .probe(&submission, Some(10), "probe")
        .unwrap();
    let octets = Apdu::Probe(probe).to_bytes();
    world.at(0, Event::Arrives(0, None, octets));
    world.run();
    let failed: Vec<_> = world.ends.keys().map(|(_, number)| *number).collect();
    assert_eq!(failed, [2]);
    let told: BTreeSet<_> = world.told.iter().flat_map(|(_, numbers)| numbers).collect();
    assert_eq!(told, BTreeSet::from([&1, &2, &3]));
}

#[test]
fn a_report_that_cannot_arrive_ends() {
    let mut world = plain();
    let id = world.send(&[user("nobody", "C")], |submission| {
        submission.originator = user("gone", "A");
    });
    world.run();
    world.assert_ends(&id, &[]);
    assert_eq!(world.ended, [Cause::UnknownRecipient]);
    assert_eq!(domain("A"), world.mtas[0].site.domain);
}

/// A user of a domain by number; the third of each domain does not exist.
fn somebody(number: usize) -> OrAddress {
    user(
        ["x", "y", "nobody"][number % 3],
        ["A", "B", "C"][number / 3 % 3],
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever users redirect and whichever MTA is away: each recipient ends once.
    #[test]
    fn every_recipient_ends_once(
        recipients in prop::collection::vec(0..9_usize, 1..6),
        redirected in prop::collection::vec((0..9_usize, 0..9_usize), 0..5),
        alternate in prop::option::of(0..9_usize),
        postmaster in prop::option::of(0..9_usize),
        away in prop::option::weighted(0.3, 1..3_usize),
        old in any::<bool>(),
        deferred in any::<bool>(),
    ) {
        let mut world = world(|_, peers| {
            for terms in peers[0].iter_mut().filter(|_| old) {
                terms.profile = Profile::Y1984;
            }
        });
        world.down.extend(away);
        for (from, to) in redirected {
            let users = &mut world.mtas[from / 3].site.users;
            let user = users.entry(["x", "y", "nobody"][from % 3].to_owned()).or_default();
            // Reports reach the originator.
            if from != 0 {
                user.redirect_to = Some(somebody(to));
            }
        }
        for mta in &mut world.mtas {
            mta.site.alternate = postmaster.map(somebody);
        }
        let addresses: Vec<_> = recipients.iter().map(|one| somebody(*one)).collect();
        let id = world.send(&addresses, |submission| {
            submission.alternate = alternate.map(somebody);
            submission.indicators = PerMessageIndicators::ALTERNATE_RECIPIENT_ALLOWED;
            submission.not_before = deferred.then(|| time(HOUR));
        });
        world.run();
        for number in 1..=recipients.len() {
            let key = (id.clone(), u32::try_from(number).unwrap());
            let ends = world.ends.get(&key).map_or(0, Vec::len);
            prop_assert_eq!(ends, 1, "recipient {}: {:?}", number, world.ends);
        }
        prop_assert_eq!(world.ends.len(), recipients.len());
        prop_assert_eq!(&world.ended, &Vec::new());
    }
}
