//! Questions that need the DNS: from a zone, and from a name server that says nothing.

use std::net::UdpSocket;

use tokio::time::Instant;
use vere_handoff::question::{
    Name, NoRecords, Record, RecordType, Records, Sender, Spf, SpfResults,
};
use vere_net::resolver::ResolverOptions;

use super::*;
use crate::lookups::{Lookup, Lookups};

const ZONE: &str = "
example.org             TXT  v=spf1 a:mx.example.org ip4:198.51.100.0/24 ~all
strict.example          TXT  v=spf1 -all
wrong.example           TXT  v=spf1 what
down.example            FAIL
mx.example.org          A    192.0.2.1
helo.example            TXT  v=spf1 ip4:192.0.2.1 -all
1.2.0.192.list.example  A    127.0.0.2
1.2.0.192.list.example  TXT  listed, see https://list.example
";

fn zone() -> Resolver {
    Resolver::from_zone(Zone::parse(ZONE).unwrap())
}

fn spf(client: &str, helo: &str, path: &str, id: u64, out: &mut Vec<u8>) {
    let sender = Sender::new(client.parse().unwrap(), helo, path).unwrap();
    Question::Spf(sender).encode(id, out);
}

fn resolve(name: &str, kind: RecordType, id: u64, out: &mut Vec<u8>) {
    let name = Name::new(name).unwrap();
    // Each question is of another network.
    let [.., high, low] = id.to_be_bytes();
    let client = [10, high, low, 1].into();
    Question::Resolve { client, name, kind }.encode(id, out);
}

/// A resolver that asks a name server of this test, which never answers while the socket lives.
fn silent() -> (UdpSocket, Resolver) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let options = ResolverOptions {
        servers: vec![socket.local_addr().unwrap()],
        ..ResolverOptions::default()
    };
    (socket, Resolver::new(&options).unwrap())
}

#[test]
fn spf_has_every_result() {
    let answers = asking(filled(Arc::new(MemoryStore::default())), zone());
    let cases = [
        ("192.0.2.1", "a@example.org", Spf::Pass),
        ("::ffff:192.0.2.1", "a@example.org", Spf::Pass),
        ("198.51.100.7", "a@example.org", Spf::Pass),
        ("192.0.2.2", "a@example.org", Spf::SoftFail),
        ("192.0.2.1", "a@strict.example", Spf::Fail),
        ("192.0.2.1", "a@wrong.example", Spf::PermError),
        ("192.0.2.1", "a@down.example", Spf::TempError),
        ("192.0.2.1", "a@nowhere.example", Spf::None),
        ("192.0.2.1", "", Spf::Pass),
        ("192.0.2.2", "", Spf::Fail),
    ];
    connected(&answers, async move |mut stream| {
        let mut octets = Vec::new();
        for (id, (client, path, _)) in (0..).zip(&cases) {
            // A name without a policy beside a reverse-path.
            let helo = if path.is_empty() {
                "helo.example"
            } else {
                "mx.example"
            };
            spf(client, helo, path, id, &mut octets);
        }
        stream.write_all(&octets).await.unwrap();
        let mut read = read(&mut stream, cases.len()).await;
        read.sort_by_key(|(id, _)| *id);
        let results = |path: &str, sender| SpfResults {
            sender,
            helo: (!path.is_empty()).then_some(Spf::None),
        };
        let spf = |(_, path, result): (_, &str, _)| Answer::Spf(results(path, result));
        let expected = (0..).zip(cases.map(spf));
        assert_eq!(read, expected.collect::<Vec<_>>());
    });
}

/// "fail" of the HELO name ends the check; any other result leaves the decision to the sender's domain.
#[test]
fn spf_has_the_result_of_the_helo_name_beside_the_senders() {
    let answers = asking(filled(Arc::new(MemoryStore::default())), zone());
    let of = |sender, helo| SpfResults {
        sender,
        helo: Some(helo),
    };
    let cases = [
        ("helo.example", "a@example.org", of(Spf::Pass, Spf::Pass)),
        ("strict.example", "a@example.org", of(Spf::None, Spf::Fail)),
        ("strict.example", "a@down.example", of(Spf::None, Spf::Fail)),
        (
            "down.example",
            "a@example.org",
            of(Spf::Pass, Spf::TempError),
        ),
        (
            "wrong.example",
            "a@example.org",
            of(Spf::Pass, Spf::PermError),
        ),
        ("helo.example", "a@strict.example", of(Spf::Fail, Spf::Pass)),
        ("localhost", "a@example.org", of(Spf::Pass, Spf::None)),
        ("[192.0.2.1]", "a@example.org", of(Spf::Pass, Spf::None)),
        ("strict.example", "", Spf::Fail.into()),
    ];
    connected(&answers, async move |mut stream| {
        let mut octets = Vec::new();
        for (id, (helo, path, _)) in (0..).zip(&cases) {
            spf("192.0.2.1", helo, path, id, &mut octets);
        }
        stream.write_all(&octets).await.unwrap();
        let mut read = read(&mut stream, cases.len()).await;
        read.sort_by_key(|(id, _)| *id);
        let expected = (0..).zip(cases.map(|(.., results)| Answer::Spf(results)));
        assert_eq!(read, expected.collect::<Vec<_>>());
    });
    for (results, decisive) in [
        (of(Spf::Pass, Spf::Fail), Spf::Fail),
        (of(Spf::TempError, Spf::Fail), Spf::Fail),
        (of(Spf::Fail, Spf::Pass), Spf::Fail),
        (of(Spf::None, Spf::SoftFail), Spf::None),
        (of(Spf::Pass, Spf::TempError), Spf::Pass),
    ] {
        assert_eq!(results.decisive(), decisive, "{results:?}");
    }
}

#[test]
fn records_are_found_absent_or_unavailable() {
    let answers = asking(filled(Arc::new(MemoryStore::default())), zone());
    let found = |record| Answer::Records(Records::new([record]));
    let text = b"listed, see https://list.example".to_vec();
    let cases = [
        (
            "1.2.0.192.list.example",
            RecordType::A,
            found(Record::A([127, 0, 0, 2].into())),
        ),
        (
            "1.2.0.192.list.example.",
            RecordType::Txt,
            found(Record::Txt(text)),
        ),
        (
            "1.2.0.192.list.example",
            RecordType::Aaaa,
            Answer::Nothing(NoRecords::NoData),
        ),
        (
            "2.2.0.192.list.example",
            RecordType::A,
            Answer::Nothing(NoRecords::NoSuchName),
        ),
        (
            "down.example",
            RecordType::Mx,
            Answer::Nothing(NoRecords::Unavailable),
        ),
    ];
    connected(&answers, async move |mut stream| {
        let mut octets = Vec::new();
        for (id, (name, kind, _)) in (0..).zip(&cases) {
            resolve(name, *kind, id, &mut octets);
        }
        stream.write_all(&octets).await.unwrap();
        let mut read = read(&mut stream, cases.len()).await;
        read.sort_by_key(|(id, _)| *id);
        let expected = (0..).zip(cases.map(|(.., answer)| answer));
        assert_eq!(read, expected.collect::<Vec<_>>());
    });
}

/// Questions about recipients do not wait for the DNS, and a name server that is silent costs one answer.
#[test]
fn recipients_are_answered_before_the_dns() {
    let (_socket, resolver) = silent();
    let answers = asking(filled(Arc::new(MemoryStore::default())), resolver);
    connected(&answers, async move |mut stream| {
        let mut octets = Vec::new();
        spf("192.0.2.1", "mx.example", "a@example.org", 1, &mut octets);
        resolve("1.2.0.192.list.example", RecordType::A, 2, &mut octets);
        for id in 3..100 {
            recipient("ann@example.org", false, id, &mut octets);
        }
        stream.write_all(&octets).await.unwrap();
        let first = read(&mut stream, 97).await;
        let expected = (3..100).map(|id| (id, Answer::Accepted));
        assert_eq!(first, expected.collect::<Vec<_>>());
        // Nobody waits for the patience itself.
        tokio::time::pause();
        let mut last = read(&mut stream, 2).await;
        last.sort_by_key(|(id, _)| *id);
        let expected = [
            (
                1,
                Answer::Spf(SpfResults {
                    sender: Spf::TempError,
                    helo: Some(Spf::TempError),
                }),
            ),
            (2, Answer::Nothing(NoRecords::Unavailable)),
        ];
        assert_eq!(last, expected);
    });
}

/// Questions beyond the bound are answered at once; those of a connection that is closed make room.
#[test]
fn questions_that_wait_are_bounded() {
    let (_socket, resolver) = silent();
    let answers = asking(filled(Arc::new(MemoryStore::default())), resolver);
    let shared = Rc::clone(&answers);
    connected(&answers, async move |mut stream| {
        let mut octets = Vec::new();
        let full = lookups::PENDING_MAX as u64;
        for id in 0..full + 3 {
            resolve("list.example", RecordType::A, id, &mut octets);
        }
        stream.write_all(&octets).await.unwrap();
        let unavailable = |id| (id, Answer::Nothing(NoRecords::Unavailable));
        let expected: Vec<_> = (full..full + 3).map(unavailable).collect();
        assert_eq!(read(&mut stream, 3).await, expected);
        drop(stream);
        let lookup = || {
            let name = Name::new("x.example").unwrap();
            Lookup::from(([198, 51, 100, 1].into(), name, RecordType::A))
        };
        while shared.lookups.ask(0, lookup()).is_ok() {
            tokio::task::yield_now().await;
        }
    });
}

/// A large sender begins many sessions at once: its questions wait for their turns, and none is lost.
#[test]
fn a_burst_of_one_network_has_all_results() {
    let answers = asking(filled(Arc::new(MemoryStore::default())), zone());
    connected(&answers, async move |mut stream| {
        const BURST: u64 = 200;
        let mut octets = Vec::new();
        for id in 0..BURST {
            let path = format!("a{id}@example.org");
            spf("192.0.2.1", "mx.example.org", &path, id, &mut octets);
        }
        stream.write_all(&octets).await.unwrap();
        let count = usize::try_from(BURST).unwrap();
        for (_, answer) in read(&mut stream, count).await {
            let Answer::Spf(results) = answer else {
                panic!("{answer:?}");
            };
            assert_eq!(results.sender, Spf::Pass);
        }
    });
}

/// Strangers with many networks and silent name servers leave places to honest sites, among them one with more questions than its turns.
#[tokio::test]
async fn silent_names_of_many_networks_leave_room() {
    let (_socket, resolver) = silent();
    let lookups = Rc::new(Lookups::new(resolver));
    let ask = |client: [u8; 4], name: &str| {
        let lookup = Lookup::from((client.into(), Name::new(name).unwrap(), RecordType::A));
        let pending = lookups.ask(0, lookup).expect_err("a question that waits");
        Rc::clone(&lookups).answer(*pending)
    };
    let local = tokio::task::LocalSet::new();
    let hostile = (0..10).flat_map(|network| [[10, 0, network, 1]; 40]);
    for client in hostile {
        local.spawn_local(ask(client, "silent.example"));
    }
    let begun = Instant::now();
    let honest = local.run_until(async {
        while lookups.asking() < lookups::RUNNING_MAX - 16 {
            tokio::task::yield_now().await;
        }
        // As the resolver of a reload, which answers about names of honest sites.
        lookups.set_resolver(zone());
        let asked = (0..20).map(|_| ask([192, 0, 2, 1], "mx.example.org"));
        let asked: Vec<_> = asked.map(tokio::task::spawn_local).collect();
        for answer in asked {
            let (_, answer) = answer.await.unwrap();
            assert!(matches!(answer, Answer::Records(_)), "{answer:?}");
        }
    });
    honest.await;
    // Places of silent questions are free after five seconds.
    assert!(begun.elapsed().as_secs() < 4, "{:?}", begun.elapsed());
}

/// A few sites hold the waiting questions, and others still have some of their own.
#[test]
fn waiting_questions_of_few_sites_leave_room() {
    let lookups = Lookups::new(zone());
    let ask = |client: [u8; 4]| {
        let lookup = Lookup::from((
            client.into(),
            Name::new("x.example").unwrap(),
            RecordType::A,
        ));
        lookups.ask(0, lookup).err()
    };
    let held = |client| (0..600).filter_map(|_| ask(client)).collect::<Vec<_>>();
    let hostile: Vec<_> = (0..3).map(|site| held([10, 0, site, 1])).collect();
    let counts: Vec<_> = hostile.iter().map(Vec::len).collect();
    assert_eq!(counts, [512, 512, 512]);
    let more = held([10, 0, 3, 1]);
    assert_eq!(more.len(), 64);
    assert_eq!(held([192, 0, 2, 1]).len(), 64);
    // SPF has places of its own.
    let spf = Sender::new([10, 0, 0, 1].into(), "mx.example", "a@x.example").unwrap();
    assert!(lookups.ask(0, Lookup::from(spf)).is_err());
    drop(hostile);
    assert_eq!(held([192, 0, 3, 1]).len(), 512);
}

#[test]
fn one_network_does_not_take_the_places_of_all() {
    let lookups = Lookups::new(zone());
    let of = |client: &str, number: u32| {
        let path = format!("a@{number}.example");
        Lookup::from(Sender::new(client.parse().unwrap(), "mx.example", &path).unwrap())
    };
    for (near, far) in [
        (["192.0.2.1", "192.0.2.254"], "192.0.3.1"),
        (["2001:db8::1", "2001:db8::ffff:1"], "2001:db8:0:1::1"),
    ] {
        let mut pending = Vec::new();
        for number in 0..lookups::SHARE_MAX {
            let client = near[number as usize % 2];
            pending.extend(lookups.ask(0, of(client, number)).err());
        }
        assert_eq!(pending.len() as u32, lookups::SHARE_MAX);
        let more = lookups.ask(0, of(near[0], lookups::SHARE_MAX)).ok();
        assert_eq!(more, Some(Answer::Spf(Spf::TempError.into())));
        assert!(lookups.ask(0, of(far, 0)).is_err());
        // An answered question leaves its place to the next.
        pending.pop();
        assert!(lookups.ask(0, of(near[1], lookups::SHARE_MAX)).is_err());
        // Records have a share of their own.
        let records = |client: &str| {
            let name = Name::new("x.example").unwrap();
            Lookup::from((client.parse().unwrap(), name, RecordType::Txt))
        };
        let share = lookups::SHARE_MAX;
        let taken = (0..share).filter_map(|_| lookups.ask(0, records(near[0])).err());
        let taken: Vec<_> = taken.collect();
        assert_eq!(taken.len() as u32, share);
        let more = lookups.ask(0, records(near[1])).ok();
        assert_eq!(more, Some(Answer::Nothing(NoRecords::Unavailable)));
        assert!(lookups.ask(0, records(far)).is_err());
    }
}

/// Name servers of the HELO name that never answer cost the result of the sender two seconds, and neither defers it.
#[tokio::test]
async fn a_silent_helo_name_holds_up_the_result_of_the_sender_shortly() {
    let (helo, sender) = (std::future::pending(), std::future::ready(Spf::Pass));
    tokio::time::pause();
    let begun = Instant::now();
    let results = lookups::both(helo, sender).await;
    assert_eq!(
        (results.sender, results.helo),
        (Spf::Pass, Some(Spf::TempError))
    );
    assert_eq!(begun.elapsed().as_secs(), 2);
    let late = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Spf::Fail
    };
    let results = lookups::both(late, std::future::ready(Spf::Pass)).await;
    assert_eq!(results.helo, Some(Spf::Fail), "within the two seconds");
}

#[tokio::test(start_paused = true)]
async fn results_of_spf_are_kept_for_a_while_and_failures_are_not() {
    let lookups = Rc::new(Lookups::new(zone()));
    let of = |path| Lookup::from(Sender::new([192, 0, 2, 1].into(), "mx.example", path).unwrap());
    let answer = async |path| {
        let pending = lookups.ask(7, of(path)).expect_err("unknown");
        Rc::clone(&lookups).answer(*pending).await
    };
    let of_sender = |sender| {
        let helo = Some(Spf::None);
        Answer::Spf(SpfResults { sender, helo })
    };
    let pass = of_sender(Spf::Pass);
    assert_eq!(answer("a@example.org").await, (7, pass.clone()));
    assert_eq!(lookups.ask(8, of("a@example.org")).ok(), Some(pass.clone()));
    assert!(lookups.ask(8, of("b@example.org")).is_err());
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(answer("a@example.org").await, (7, pass));
    lookups.set_resolver(Resolver::from_zone(Zone::default()));
    assert_eq!(answer("a@example.org").await, (7, of_sender(Spf::None)));
    lookups.set_resolver(zone());
    let failed = of_sender(Spf::TempError);
    assert_eq!(answer("a@down.example").await, (7, failed));
    assert!(lookups.ask(8, of("a@down.example")).is_err());
}
