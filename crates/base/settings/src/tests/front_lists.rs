//! Lists of clients.

use vere_units::Span;

use super::{one_error, parse};
use crate::{BlockList, ListMaps, ListTreatment};

#[test]
fn lists_have_their_terms() {
    let settings = parse(
        "[front.lists]\nthreshold = 3\nallow_threshold = -2\ntreatment = \"note\"\nunavailable = \"defer\"\n\
         [[front.list]]\nzone = \"BL.example\"\n\
         [[front.list]]\nzone = \"key.example\"\nname = \"good.example\"\nweight = -3\n\
         answers = [\"127.0.0.[2..4]\"]\nmaps = \"no\"\n",
    )
    .unwrap();
    let lists = settings.front.expect("a front").lists;
    assert_eq!((lists.threshold, lists.allow_threshold), (3, Some(-2)));
    assert_eq!(lists.treatment, ListTreatment::Note);
    assert!(lists.defers_unavailable && lists.adds_text && !lists.asks_private);
    assert_eq!(lists.timeout, Span::from_millis(10_000));
    let [first, second] = &lists.lists[..] else {
        panic!("{lists:?}");
    };
    assert_eq!(*first, BlockList::of_zone("bl.example"));
    assert_eq!(
        (&*second.zone, &*second.name),
        ("key.example", "good.example")
    );
    assert_eq!((second.weight, second.maps), (-3, ListMaps::No));
    assert!(second.answers[0].matches([127, 0, 0, 4].into()));
}

#[test]
fn contradictions_are_found() {
    let long = format!("{}.example", "a.".repeat(100) + "a");
    let section = |zone: &str| format!("[[front.list]]\nzone = \"{zone}\"\n");
    one_error(
        &section(&long),
        4,
        "front.list[1].zone",
        "at most 189 bytes",
    );
    let many: String = (0..33).map(|n| section(&format!("l{n}.example"))).collect();
    one_error(
        &many,
        68,
        "front.list[33].zone",
        "at most 32 sections; found 33",
    );
    let named = |zone: &str| format!("{}name = \"good.example\"\n", section(zone));
    one_error(
        &(named("a.example") + &named("b.example")),
        8,
        "front.list[2].name",
        "found the name of a.example",
    );
    let bounds = "[front.lists]\nttl_min = \"1h\"\nttl_max = \"1m\"\n";
    one_error(
        bounds,
        4,
        "front.lists.ttl_min",
        "at most front.lists.ttl_max",
    );
    let connected = format!(
        "[front]\nhand_over = \"connected\"\n{}",
        section("bl.example")
    );
    one_error(
        &connected,
        6,
        "front.list[1].zone",
        "not understood by workers",
    );
}
