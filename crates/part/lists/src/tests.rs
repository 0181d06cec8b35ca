//! Lists of a name server that answers, lies, or holds still.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::task::LocalSet;
use vere_faults::names::{A, AAAA, Asked, NameServer, Said, TXT, code, text};
use vere_settings::{BlockList, ListTreatment};
use vere_units::{ByteSize, Span};

use super::*;

fn list(zone: &str, maps: ListMaps) -> BlockList {
    BlockList {
        maps,
        ..BlockList::of_zone(zone)
    }
}

fn of(lists: Vec<BlockList>) -> BlockLists {
    BlockLists {
        lists,
        threshold: 1,
        allow_threshold: None,
        treatment: ListTreatment::Refuse,
        defers_unavailable: false,
        timeout: Span::from_millis(3_000),
        adds_text: true,
        ttl_min: Span::from_millis(60_000),
        ttl_max: Span::from_millis(86_400_000),
        cache: ByteSize::new(1 << 20),
        asks_private: false,
    }
}

fn settings(server: SocketAddr) -> Settings {
    let text = format!(
        "version = 1\nhostname = \"mx.example.org\"\n[resolver]\nservers = [\"{server}\"]\n"
    );
    Settings::parse(&text, "vere.toml").unwrap()
}

fn served(answer: impl Fn(&str, u16) -> Said + Send + 'static) -> NameServer {
    NameServer::start(answer).unwrap()
}

/// Runs a test against lists of a server.
fn with<T>(server: &NameServer, lists: &BlockLists, test: impl AsyncFnOnce(Lists) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let lists = Lists::new(&settings(server.address), lists).unwrap();
    LocalSet::new().block_on(&runtime.unwrap(), test(lists))
}

fn client(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A list with 192.0.2.1 and 192.0.2.9, and a text.
fn classic(name: &str, kind: u16) -> Said {
    match (name, kind) {
        ("1.2.0.192.bl.test" | "9.2.0.192.bl.test", A) => {
            Said::Records(300, vec![code(2), code(4)])
        }
        ("1.2.0.192.bl.test", TXT) => Said::Records(300, vec![text("see https://bl.test/\r\n")]),
        ("1.2.0.192.bl.test" | "9.2.0.192.bl.test", _) => Said::NoData(300),
        _ => Said::NoSuchName(300),
    }
}

/// A list with maps: 127.0.0.2, 192.0.2.1 and 2001:db8:0:1::/64.
fn mapped(name: &str, kind: u16) -> Said {
    let map = |neighbours: &[u8]| {
        let mut map = vere_dnsbl::Map::EMPTY;
        neighbours
            .iter()
            .for_each(|neighbour| map.insert(*neighbour));
        vec![std::net::Ipv6Addr::from(map).octets().to_vec()]
    };
    match (name, kind) {
        ("0.0.0.127.bl.test", AAAA) => Said::Records(60, map(&[2])),
        ("0.2.0.192.bl.test", AAAA) => Said::Records(60, map(&[1, 7])),
        ("0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.bl.test", AAAA) => Said::Records(60, map(&[1])),
        ("1.2.0.192.bl.test", A) => Said::Records(60, vec![code(4)]),
        ("7.2.0.192.bl.test", A) => Said::Records(60, vec![code(2)]),
        _ => Said::NoSuchName(60),
    }
}

#[test]
fn a_listing_has_codes_weight_and_text_and_is_kept() {
    let server = served(classic);
    with(
        &server,
        &of(vec![list("bl.test", ListMaps::No)]),
        async |lists| {
            for round in 0..3 {
                let found = lists.ask(client("::ffff:192.0.2.1")).await;
                assert!(found.is_listed && found.is_complete, "{found:?}");
                assert_eq!(
                    (found.sum, found.worst, found.listings()),
                    (1, Some(0), "bl.test=1".into())
                );
                assert_eq!(found.text, "see https://bl.test/??");
                let codes = vec![[127, 0, 0, 2].into(), [127, 0, 0, 4].into()];
                let by_map = false;
                assert_eq!(found.entries[0].outcome, Outcome::Listed { codes, by_map });
                let origin = [Origin::Asked, Origin::Kept, Origin::Kept][round];
                assert_eq!(found.entries[0].origin, origin);
                let found = lists.ask(client("192.0.2.2")).await;
                assert!(!found.is_listed && found.is_complete && found.text.is_empty());
            }
            for (name, kind, count) in [
                ("1.2.0.192.bl.test", A, 1),
                ("1.2.0.192.bl.test", TXT, 1),
                ("2.2.0.192.bl.test", A, 1),
                ("2.2.0.192.bl.test", TXT, 0),
            ] {
                assert_eq!(server.count(name, kind), count, "{name} {kind}");
            }
            assert_eq!(lists.kept("BL.test", client("192.0.2.1")), Kept::Codes);
            assert_eq!(lists.kept("bl.test", client("192.0.2.3")), Kept::Nothing);
            assert_eq!(lists.kept("no.test", client("192.0.2.1")), Kept::NoSuchList);
            let figures = lists.figures(0).unwrap();
            // The check has two of the queries.
            assert_eq!(
                (figures.queries, figures.listed, figures.failures),
                (5, 3, 0)
            );
            assert_eq!((figures.hits, figures.cache_entries), (6, 3));
            assert_eq!(figures.within.iter().sum::<u64>(), 5);
            assert_eq!(lists.figures(1), None);
        },
    );
}

#[test]
fn one_map_answers_for_all_neighbours_and_punishes_none() {
    let server = served(mapped);
    with(
        &server,
        &of(vec![list("bl.test", ListMaps::Auto)]),
        async |lists| {
            lists.probe().await;
            // All at once, as when many clients of one network connect.
            let asked = (0..128).map(|last| lists.ask(client(&format!("192.0.2.{last}"))));
            let found = join_all(asked).await;
            let listed: Vec<_> = (0..128).filter(|last| found[*last].is_listed).collect();
            assert_eq!(listed, [1, 7]);
            assert_eq!(server.count("0.2.0.192.bl.test", AAAA), 1);
            assert_eq!(server.count("1.2.0.192.bl.test", A), 0);
            assert_eq!(lists.kept("bl.test", client("192.0.2.99")), Kept::Map);
            let figures = lists.figures(0).unwrap();
            // Four of the check, the map, two texts.
            assert_eq!((figures.queries, figures.shared), (7, 127));
            // The other half of the /24 has another map, which is none.
            assert!(!lists.ask(client("192.0.2.129")).await.is_listed);
            assert_eq!(server.count("1.2.0.192.bl.test", AAAA), 1);
        },
    );
}

#[test]
fn codes_are_asked_for_behind_a_bit_alone() {
    let server = served(mapped);
    let mut only = list("bl.test", ListMaps::Yes);
    only.answers = vec!["127.0.0.[3..9]".parse().unwrap()];
    with(&server, &of(vec![only]), async |lists| {
        for (last, is_listed, queries) in [(1, true, 1), (7, false, 1), (5, false, 0)] {
            let found = lists.ask(client(&format!("192.0.2.{last}"))).await;
            assert_eq!(found.is_listed, is_listed, "{last}");
            let name = format!("{last}.2.0.192.bl.test");
            assert_eq!(server.count(&name, A), queries, "{last}");
        }
        for (name, kind, queries) in [
            ("0.0.0.127.bl.test", AAAA, 1),
            ("1.0.0.127.bl.test", AAAA, 1),
            ("1.0.0.127.bl.test", A, 0),
        ] {
            assert_eq!(
                server.count(name, kind),
                queries,
                "{name}: maps are checked alone"
            );
        }
    });
}

/// The test entries are of IPv4: `auto` asks for the 32 nibbles.
#[test]
fn networks_of_ipv6_have_maps_where_the_settings_say_so() {
    let server = served(mapped);
    for (maps, is_listed) in [(ListMaps::Yes, true), (ListMaps::Auto, false)] {
        with(&server, &of(vec![list("bl.test", maps)]), async |lists| {
            lists.probe().await;
            assert_eq!(
                lists.ask(client("2001:db8:0:1::5")).await.is_listed,
                is_listed
            );
            assert!(!lists.ask(client("2001:db8:0:2::5")).await.is_listed);
        });
    }
    let nibbles = "5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.bl.test";
    assert_eq!(server.count(nibbles, A), 1);
}

#[test]
fn a_parked_domain_has_no_maps() {
    // A broken server, and an ordinary host: as a map it has 127.0.0.2 and not 127.0.0.1.
    for map in [0xff, 0x20] {
        let server = served(move |_, kind| match kind {
            AAAA => Said::Records(60, vec![vec![map; 16]]),
            A => Said::Records(60, vec![vec![192, 0, 2, 80]]),
            _ => Said::NoSuchName(60),
        });
        let settings = of(vec![list("bl.test", ListMaps::Auto)]);
        with(&server, &settings, async |lists| {
            lists.probe().await;
            for last in 0..8 {
                let found = lists.ask(client(&format!("192.0.2.{last}"))).await;
                // The host of a parked domain is no code.
                assert!(!found.is_listed && found.is_complete, "{found:?}");
                let by_map = false;
                assert_eq!(found.entries[0].outcome, Outcome::Unlisted { by_map });
            }
            assert!(lists.lacks_test_entry("bl.test"));
        });
    }
}

/// A dead list whose domain was bought answers everything: no mail is refused by it, not even the first.
#[test]
fn a_list_of_everybody_lists_nobody() {
    for (maps, queries) in [(ListMaps::No, 2), (ListMaps::Auto, 3), (ListMaps::Yes, 2)] {
        let server = served(|name, kind| match kind {
            _ if name.ends_with(".bl.test") => classic(name, kind),
            A => Said::Records(60, vec![code(2)]),
            AAAA => Said::Records(60, vec![vec![0x2a; 16]]),
            _ => Said::Records(60, vec![text("for sale")]),
        });
        let settings = of(vec![list("dead.test", maps), list("bl.test", ListMaps::No)]);
        with(&server, &settings, async |lists| {
            // 2, 4, 6 and 10 have bits in 0x2a.
            for last in [2, 4, 6, 10, 2, 4] {
                let found = lists.ask(client(&format!("192.0.2.{last}"))).await;
                assert!(
                    !found.is_listed && !found.is_complete,
                    "{maps:?}: {found:?}"
                );
                assert_eq!(found.entries[0].outcome, Outcome::ListsEverybody);
                assert!(found.entries[1].outcome.is_answer());
                assert_eq!((found.sum, &*found.text), (0, ""));
            }
            assert_eq!(
                lists.kept("dead.test", client("192.0.2.4")),
                Kept::ListsEverybody
            );
            let figures = lists.figures(0).unwrap();
            assert_eq!((figures.untrusted, figures.listed), (6, 0));
            let of_check = |asked: &&Asked| {
                let name = asked.name.to_ascii_lowercase();
                name.ends_with(".0.0.127.dead.test")
            };
            let of_dead = |asked: &&Asked| asked.name.to_ascii_lowercase().ends_with(".dead.test");
            let asked = server.asked();
            assert!(asked.iter().filter(of_check).count() >= queries);
            // The first client alone is asked about.
            assert!(
                asked
                    .iter()
                    .filter(of_dead)
                    .filter(|asked| !of_check(asked))
                    .count()
                    <= 1
            );
        });
    }
}

/// The list answers, but not the check: its entries prove nothing.
#[test]
fn entries_of_an_unchecked_list_do_not_count() {
    let server = served(|name, kind| match name {
        "1.0.0.127.bl.test" => Said::Failure,
        _ => classic(name, kind),
    });
    let settings = of(vec![list("bl.test", ListMaps::No)]);
    with(&server, &settings, async |lists| {
        for _ in 0..2 {
            let found = lists.ask(client("192.0.2.1")).await;
            assert_eq!(found.entries[0].outcome, Outcome::Unchecked);
            assert!(!found.is_listed && !found.is_complete);
            // The answer about others is as good as before.
            let found = lists.ask(client("192.0.2.2")).await;
            assert!(found.is_complete, "{found:?}");
        }
        assert_eq!(lists.figures(0).unwrap().skipped, 2);
    });
}

/// A check that takes long makes clients wait whom the list has, and nobody else.
#[test]
fn only_listed_clients_wait_for_the_first_check() {
    let server = served(|name, kind| match name {
        "1.0.0.127.bl.test" => Said::Silence,
        _ => classic(name, kind),
    });
    let mut settings = of(vec![list("bl.test", ListMaps::No)]);
    settings.timeout = Span::from_millis(2_000);
    with(&server, &settings, async |lists| {
        let begin = Instant::now();
        for last in 2..9 {
            let found = lists.ask(client(&format!("192.0.2.{last}"))).await;
            assert!(found.is_complete, "{found:?}");
        }
        assert!(begin.elapsed() < Duration::from_millis(1_000));
        let found = lists.ask(client("192.0.2.1")).await;
        let outcome = &found.entries[0].outcome;
        assert!(
            matches!(outcome, Outcome::Unchecked | Outcome::Late),
            "{found:?}"
        );
        assert!(begin.elapsed() < Duration::from_millis(4_000));
    });
}

/// A list that is good again is asked again, and its answers from before are forgotten.
#[test]
fn a_list_comes_back_without_its_old_answers() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    let is_dead = Arc::new(AtomicBool::new(true));
    let dies = Arc::clone(&is_dead);
    let server = served(move |name, kind| match dies.load(Ordering::Relaxed) {
        true => Said::Records(86_400, vec![code(2)]),
        false => classic(name, kind),
    });
    with(
        &server,
        &of(vec![list("bl.test", ListMaps::No)]),
        async |lists| {
            let found = lists.ask(client("192.0.2.2")).await;
            assert_eq!(found.entries[0].outcome, Outcome::ListsEverybody);
            while lists.with_site(0, |site| site.probe.is_open()) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            is_dead.store(false, Ordering::Relaxed);
            lists.with_site(0, |site| {
                site.probe.doubt(Timestamp::from_millis(0));
            });
            lists.probe().await;
            let found = lists.ask(client("192.0.2.2")).await;
            assert!(!found.is_listed && found.is_complete, "{found:?}");
            assert!(lists.ask(client("192.0.2.1")).await.is_listed);
        },
    );
}

/// Knowledge about addresses says nothing about maps.
#[test]
fn another_use_of_a_list_is_checked_anew() {
    let server = served(|name, kind| match kind {
        AAAA => Said::Records(60, vec![vec![0xff; 16]]),
        _ => classic(name, kind),
    });
    let before = of(vec![list("bl.test", ListMaps::No)]);
    with(&server, &before, async |lists| {
        assert!(lists.ask(client("192.0.2.1")).await.is_listed);
        let after = of(vec![list("bl.test", ListMaps::Yes)]);
        lists
            .set_settings(&settings(server.address), &after)
            .unwrap();
        let found = lists.ask(client("192.0.2.1")).await;
        assert_eq!(found.entries[0].outcome, Outcome::ListsEverybody);
    });
}

#[test]
fn weights_are_added_and_a_zone_is_asked_once() {
    let server = served(classic);
    let weighted = |weight, answers: &str| BlockList {
        weight,
        answers: vec![answers.parse().unwrap()],
        ..list("bl.test", ListMaps::No)
    };
    let mut settings = of(vec![
        weighted(2, "127.0.0.2"),
        weighted(5, "127.0.0.3"),
        weighted(3, "127.0.0.4"),
        weighted(-4, "127.0.0.[2..4]"),
    ]);
    for (threshold, is_listed) in [(1, true), (2, false)] {
        settings.threshold = threshold;
        with(&server, &settings, async |lists| {
            let found = lists.ask(client("192.0.2.9")).await;
            assert_eq!((found.sum, found.worst), (1, Some(2)));
            assert_eq!(found.is_listed, is_listed);
            let answer = found.answer();
            let listings: Vec<_> = answer
                .listings()
                .iter()
                .map(|l| (l.list, l.weight))
                .collect();
            assert_eq!(listings, [(0, 2), (2, 3), (3, -4)]);
            assert_eq!(answer.name(), "bl.test");
        });
    }
    assert_eq!(
        server.count("9.2.0.192.bl.test", A),
        2,
        "once for each of the caches"
    );
}

#[test]
fn private_clients_are_not_asked_about() {
    let server = served(|name, _| match name {
        "1.0.0.127.bl.test" => Said::NoSuchName(60),
        _ => Said::Records(60, vec![code(2)]),
    });
    let mut settings = of(vec![list("bl.test", ListMaps::No)]);
    with(&server, &settings, async |lists| {
        for text in [
            "127.0.0.2",
            "10.0.0.1",
            "::1",
            "fe80::1",
            "::ffff:192.168.1.1",
        ] {
            let found = lists.ask(client(text)).await;
            assert!(!found.is_listed && found.is_complete, "{text}");
        }
    });
    assert_eq!(server.asked(), []);
    settings.asks_private = true;
    with(&server, &settings, async |lists| {
        assert!(lists.ask(client("127.0.0.2")).await.is_listed);
    });
}

/// Codes for unwelcome resolvers would refuse all mail.
#[test]
fn a_list_that_refuses_to_answer_lists_nobody() {
    let server = served(|_, _| Said::Records(60, vec![vec![127, 255, 255, 254]]));
    with(
        &server,
        &of(vec![list("bl.test", ListMaps::No)]),
        async |lists| {
            let found = lists.ask(client("192.0.2.1")).await;
            assert!(!found.is_listed && !found.is_complete);
            let code = [127, 255, 255, 254].into();
            assert_eq!(found.entries[0].outcome, Outcome::Refused(code));
        },
    );
}

#[test]
fn a_silent_list_holds_up_nobody_else_and_rests() {
    let server = served(|name, kind| match name.ends_with(".dead.test") {
        true => Said::Silence,
        false => classic(name, kind),
    });
    let mut settings = of(vec![
        list("dead.test", ListMaps::No),
        list("bl.test", ListMaps::No),
    ]);
    settings.timeout = Span::from_millis(300);
    with(&server, &settings, async |lists| {
        let asked = (0..5).map(|last| lists.ask(client(&format!("192.0.2.{last}"))));
        let found = join_all(asked).await;
        for found in &found {
            assert_eq!(found.entries[0].outcome, Outcome::Late);
            assert!(found.entries[1].outcome.is_answer() && !found.is_complete);
        }
        assert!(found[1].is_listed, "the other list counts");
        // The queries end with the deadline as well.
        while !lists.0.waiting.borrow().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let (before, begin) = (server.asked().len(), Instant::now());
        for last in 10..200 {
            let found = lists.ask(client(&format!("192.0.2.{last}"))).await;
            if found.entries[0].origin == Origin::NotAsked {
                assert_eq!(found.entries[0].outcome, Outcome::Skipped);
            }
        }
        let of_dead = |asked: &Asked| asked.name.to_ascii_lowercase().ends_with(".dead.test");
        let asked = server.asked().split_off(before);
        let dead = asked.iter().filter(|asked| of_dead(asked)).count();
        // At most a trial a second, with its repetitions; each of 190 clients would be as many without the rest.
        let trials = usize::try_from(begin.elapsed().as_secs()).unwrap() + 1;
        assert!(dead <= 4 * trials, "{dead} {trials}");
        let figures = lists.figures(0).unwrap();
        assert!(figures.skipped >= 5 + 150, "{figures:?}");
        assert!(figures.failures >= 5 && figures.hits == 0, "{figures:?}");
    });
}

#[test]
fn clients_that_wait_have_a_bound() {
    let server = served(|_, _| Said::Silence);
    let mut settings = of(vec![list("bl.test", ListMaps::No)]);
    settings.timeout = Span::from_millis(1_000);
    with(&server, &settings, async |lists| {
        let asked = (0..=ASKING_MAX).map(|_| lists.ask(client("192.0.2.1")));
        let found = join_all(asked).await;
        let asked = found.iter().filter(|found| !found.entries.is_empty());
        assert_eq!(asked.count(), ASKING_MAX);
        assert!(found.iter().all(|found| !found.is_complete));
        // One query and its repetitions.
        assert!(server.count("1.2.0.192.bl.test", A) <= 4);
    });
}

#[test]
fn an_error_is_kept_for_a_moment() {
    let server = served(|_, _| Said::Failure);
    with(
        &server,
        &of(vec![list("bl.test", ListMaps::No)]),
        async |lists| {
            let found = lists.ask(client("192.0.2.1")).await;
            assert_eq!(found.entries[0].outcome, Outcome::Failed);
            let asked = server.asked().len();
            let found = lists.ask(client("192.0.2.1")).await;
            let entry = &found.entries[0];
            assert_eq!(
                (&entry.outcome, entry.origin),
                (&Outcome::Failed, Origin::Kept)
            );
            assert_eq!(server.asked().len(), asked);
            assert_eq!(lists.kept("bl.test", client("192.0.2.1")), Kept::Failure);
        },
    );
}

/// Answers of strangers do not count: a wrong id, a wrong port, a question in another case; broken messages do not either.
#[test]
fn lies_and_broken_answers_list_nobody() {
    let server = served(|name, kind| match (name, kind) {
        ("1.2.0.192.bl.test", A) => Said::Forged(code(2), Said::NoSuchName(60).into()),
        ("2.2.0.192.bl.test", A) => Said::WrongCase(code(2)),
        ("3.2.0.192.bl.test", A) => Said::LoopingPointer,
        ("4.2.0.192.bl.test", A) => Said::Garbage,
        // More than a datagram has room for, and nobody listens for TCP.
        ("5.2.0.192.bl.test", A) => Said::Records(60, (0..200).map(code).collect()),
        ("6.2.0.192.bl.test", A) => Said::Records(60, (0..40).map(code).collect()),
        _ => Said::NoSuchName(60),
    });
    with(
        &server,
        &of(vec![list("bl.test", ListMaps::No)]),
        async |lists| {
            let mut outcomes = Vec::new();
            for last in 1..7 {
                let found = lists.ask(client(&format!("192.0.2.{last}"))).await;
                outcomes.push(found.entries[0].outcome.clone());
            }
            assert_eq!(outcomes[0], Outcome::Unlisted { by_map: false });
            for broken in &outcomes[1..5] {
                assert!(
                    matches!(broken, Outcome::Failed | Outcome::Late),
                    "{outcomes:?}"
                );
            }
            let Outcome::Listed { codes, .. } = &outcomes[5] else {
                panic!("{outcomes:?}");
            };
            assert_eq!(codes.len(), policy::CODES_MAX);
        },
    );
}

/// Ids, ports and the case of names are those of chance.
#[test]
fn questions_are_hard_to_guess() {
    let server = served(|_, _| Said::NoSuchName(60));
    let zone = "a-list-with-a-long-name.example.test";
    with(
        &server,
        &of(vec![list(zone, ListMaps::No)]),
        async |lists| {
            for last in 1..65 {
                lists.ask(client(&format!("192.0.2.{last}"))).await;
            }
        },
    );
    let asked = server.asked();
    assert_eq!(asked.len(), 64 + 2, "those of the check as well");
    let different = |of: fn(&Asked) -> String| {
        let mut all: Vec<_> = asked.iter().map(of).collect();
        all.sort_unstable();
        all.dedup();
        all.len()
    };
    assert!(different(|asked| asked.id.to_string()) > 60);
    assert!(different(|asked| asked.port.to_string()) > 60);
    let zone_as_written = |asked: &Asked| {
        let labels = asked.name.split('.').skip(4);
        labels.collect::<Vec<_>>().join(".")
    };
    assert!(different(zone_as_written) > 60, "{asked:?}");
}

#[test]
fn a_reload_keeps_the_answers_of_zones_that_stay() {
    let server = served(classic);
    let before = of(vec![
        list("bl.test", ListMaps::No),
        list("old.test", ListMaps::No),
    ]);
    let after = of(vec![
        list("new.test", ListMaps::No),
        list("bl.test", ListMaps::No),
    ]);
    with(&server, &before, async |lists| {
        assert!(lists.ask(client("192.0.2.1")).await.is_listed);
        lists
            .set_settings(&settings(server.address), &after)
            .unwrap();
        let found = lists.ask(client("192.0.2.1")).await;
        let origins: Vec<_> = found.entries.iter().map(|entry| entry.origin).collect();
        assert_eq!(origins, [Origin::Asked, Origin::Kept]);
        assert_eq!(found.worst, Some(1));
        assert_eq!(
            lists.kept("old.test", client("192.0.2.1")),
            Kept::NoSuchList
        );
        assert_eq!(lists.figures(0).unwrap().name, "new.test");
    });
    assert_eq!(server.count("1.2.0.192.bl.test", A), 1);
}
