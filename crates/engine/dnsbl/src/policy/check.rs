//! Whether the entries of a list count: every list has 127.0.0.2, and none has 127.0.0.1 (RFC 5782 section 5).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Codes, is_refusal, labels, serves_maps, test_map};
use crate::map::{Map, MapName};

/// The address that no list has.
const OUTSIDER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
/// The address that every list has.
const TEST_ENTRY: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// An address of the /25 behind that of the test entries: no list has a map there that looks like [`test_map`].
const BEHIND: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 128);

/// Whether the entries of a list count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trust {
    /// The list has not answered a check yet.
    #[default]
    Unchecked,
    /// The list does not have 127.0.0.1.
    Good,
    /// The list has 127.0.0.1, and so everybody: a dead list whose domain belongs to somebody else answers like this.
    ListsEverybody,
}

/// The use of a list, which decides what is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope {
    /// Whether the list is asked by addresses.
    pub addresses: bool,
    /// Whether the list is asked for maps, if it serves them.
    pub maps: bool,
}

/// A question of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The codes of 127.0.0.1 (A).
    Outsider,
    /// The codes of 127.0.0.2 (A).
    TestEntry,
    /// The map of the test entries (AAAA).
    TestMap,
    /// The map of 127.0.0.128/25 (AAAA): an ordinary host, such as that of a parked domain, has an address within
    /// 2000::/3 (RFC 4291 section 2.4), which as a map has 127.0.0.2 and not 127.0.0.1; but the host has the address everywhere.
    MapBehind,
}

impl Step {
    /// Returns the labels to put before the zone of the list.
    #[must_use]
    pub fn labels(self) -> String {
        match self {
            Self::Outsider => labels(IpAddr::V4(OUTSIDER)),
            Self::TestEntry => labels(IpAddr::V4(TEST_ENTRY)),
            Self::TestMap => test_map().to_string(),
            Self::MapBehind => MapName::of(BEHIND.into()).0.to_string(),
        }
    }

    /// Whether the question is about a map (AAAA), and not about codes (A).
    #[must_use]
    pub const fn is_of_map(self) -> bool {
        matches!(self, Self::TestMap | Self::MapBehind)
    }
}

/// The records of an answer to a [`Step`]; absent for a name without such records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// The codes.
    Codes(Vec<Ipv4Addr>),
    /// The maps.
    Maps(Vec<Ipv6Addr>),
}

/// The questions of a check, in turn, and their answers. The first of them decide about [`Trust`]; a list
/// that does not answer these is asked nothing else.
#[derive(Debug, Clone)]
pub struct Check {
    scope: Scope,
    next: Option<Step>,
    trust: Trust,
    has_test_entry: Option<bool>,
    serves_maps: Option<bool>,
    refusal: Option<Ipv4Addr>,
}

impl Check {
    /// A check of a list.
    #[must_use]
    pub const fn new(scope: Scope) -> Self {
        let next = match scope {
            Scope {
                addresses: true, ..
            } => Some(Step::Outsider),
            Scope { maps: true, .. } => Some(Step::TestMap),
            _ => None,
        };
        Self {
            scope,
            next,
            trust: Trust::Unchecked,
            has_test_entry: None,
            serves_maps: None,
            refusal: None,
        }
    }

    /// Returns the use of the list that is checked.
    #[must_use]
    pub const fn scope(&self) -> Scope {
        self.scope
    }

    /// Returns the next question; `None` at the end of the check.
    #[must_use]
    pub const fn step(&self) -> Option<Step> {
        self.next
    }

    /// Takes the answer to the present question; `None` if the list does not answer.
    pub fn answered(&mut self, told: Option<Told>) {
        self.next = match (self.next, told) {
            (Some(Step::Outsider), Some(Told::Codes(codes))) => self.outsider(codes),
            (Some(Step::TestEntry), told) => {
                if let Some(Told::Codes(codes)) = told {
                    self.has_test_entry = self.has(codes);
                }
                self.scope.maps.then_some(Step::TestMap)
            }
            (Some(Step::TestMap), Some(Told::Maps(maps))) => self.test_map(&maps),
            (Some(Step::MapBehind), Some(Told::Maps(maps))) => {
                let is_everywhere = serves_maps(&maps);
                self.serves_maps = Some(!is_everywhere);
                self.by_maps(is_everywhere);
                None
            }
            // A question without an answer ends the check.
            _ => None,
        };
    }

    /// Whether the entries of the list count, as far as the answers go.
    #[must_use]
    pub const fn trust(&self) -> Trust {
        self.trust
    }

    /// Whether the list has 127.0.0.2; `None` without an answer.
    #[must_use]
    pub const fn has_test_entry(&self) -> Option<bool> {
        self.has_test_entry
    }

    /// Whether the list serves maps; `None` without an answer.
    #[must_use]
    pub const fn serves_maps(&self) -> Option<bool> {
        self.serves_maps
    }

    /// Whether the list has not answered a question about maps.
    pub(super) const fn is_silent_about_maps(&self) -> bool {
        self.scope.maps && self.serves_maps.is_none()
    }

    /// Returns the code by which the list refuses to answer this resolver.
    #[must_use]
    pub const fn refusal(&self) -> Option<Ipv4Addr> {
        self.refusal
    }

    fn outsider(&mut self, codes: Vec<Ipv4Addr>) -> Option<Step> {
        self.trust = match self.has(codes)? {
            true => Trust::ListsEverybody,
            false => Trust::Good,
        };
        Some(Step::TestEntry)
    }

    fn test_map(&mut self, maps: &[Ipv6Addr]) -> Option<Step> {
        let has = |neighbour| matches!(maps, [map] if Map::from(*map).contains(neighbour));
        if !self.scope.addresses {
            self.has_test_entry = Some(has(2));
        }
        if serves_maps(maps) {
            return Some(Step::MapBehind);
        }
        self.serves_maps = Some(false);
        self.by_maps(has(1));
        None
    }

    /// Draws the conclusion from maps, where these are all that the list is asked for.
    const fn by_maps(&mut self, has_everybody: bool) {
        if !self.scope.addresses {
            self.trust = match has_everybody {
                true => Trust::ListsEverybody,
                false => Trust::Good,
            };
        }
    }

    /// Whether codes are an entry; `None` for a refusal to answer.
    fn has(&mut self, codes: Vec<Ipv4Addr>) -> Option<bool> {
        let codes = Codes::of(codes).good;
        if codes.iter().any(|code| !is_refusal(*code)) {
            return Some(true);
        }
        self.refusal = self.refusal.or(codes.first().copied());
        codes.is_empty().then_some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Scope = Scope {
        addresses: true,
        maps: true,
    };
    const ADDRESSES: Scope = Scope {
        addresses: true,
        maps: false,
    };
    const MAPS: Scope = Scope {
        addresses: false,
        maps: true,
    };

    fn codes(texts: &[&str]) -> Option<Told> {
        let codes = texts.iter().map(|text| text.parse().expect("a code"));
        Some(Told::Codes(codes.collect()))
    }

    fn maps(texts: &[&str]) -> Option<Told> {
        let maps = texts.iter().map(|text| text.parse().expect("a map"));
        Some(Told::Maps(maps.collect()))
    }

    /// The end of a check of a list with these answers, and the questions.
    fn checked(scope: Scope, answer: impl Fn(Step) -> Option<Told>) -> (Check, Vec<Step>) {
        let mut check = Check::new(scope);
        let mut asked = Vec::new();
        while let Some(step) = check.step() {
            asked.push(step);
            check.answered(answer(step));
        }
        (check, asked)
    }

    #[test]
    fn questions_have_their_names() {
        let name = |step: Step| (step.labels(), step.is_of_map());
        assert_eq!(name(Step::Outsider), ("1.0.0.127".to_owned(), false));
        assert_eq!(name(Step::TestEntry), ("2.0.0.127".to_owned(), false));
        assert_eq!(name(Step::TestMap), ("0.0.0.127".to_owned(), true));
        assert_eq!(name(Step::MapBehind), ("1.0.0.127".to_owned(), true));
    }

    #[test]
    fn a_good_list_is_trusted() {
        let good = |step| match step {
            Step::TestEntry => codes(&["127.0.0.2"]),
            Step::TestMap => maps(&["2000::"]),
            Step::Outsider => codes(&[]),
            Step::MapBehind => maps(&[]),
        };
        for (scope, steps, serves) in [
            (BOTH, 4, Some(true)),
            (ADDRESSES, 2, None),
            (MAPS, 2, Some(true)),
        ] {
            let (check, asked) = checked(scope, good);
            assert_eq!(asked.len(), steps);
            assert_eq!(check.trust(), Trust::Good);
            assert_eq!(check.has_test_entry(), Some(true));
            assert_eq!((check.serves_maps(), check.refusal()), (serves, None));
        }
    }

    #[test]
    fn a_list_of_everybody_is_found_by_each_way() {
        let everybody = |map: &'static str| {
            move |step: Step| match step.is_of_map() {
                true => maps(&[map]),
                false => codes(&["127.0.0.2"]),
            }
        };
        for map in [
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "4000::",
            // An ordinary host: as a map it has 127.0.0.2 and not 127.0.0.1.
            "2001:db8::1",
            "2a00:db8::1",
        ] {
            for scope in [BOTH, ADDRESSES, MAPS] {
                let (check, _) = checked(scope, everybody(map));
                assert_eq!(check.trust(), Trust::ListsEverybody, "{map} {scope:?}");
                assert_ne!(check.serves_maps(), Some(true), "{map} {scope:?}");
            }
        }
    }

    /// The host of a parked domain is no code; its address is no map.
    #[test]
    fn a_parked_domain_has_no_maps_and_no_test_entry() {
        let parked = |step: Step| match step.is_of_map() {
            true => maps(&["2001:db8::1"]),
            false => codes(&["192.0.2.80"]),
        };
        for (scope, serves) in [(BOTH, Some(false)), (ADDRESSES, None)] {
            let (check, _) = checked(scope, parked);
            assert_eq!(check.trust(), Trust::Good, "nobody is listed by an address");
            assert_eq!(
                (check.serves_maps(), check.has_test_entry()),
                (serves, Some(false))
            );
        }
    }

    #[test]
    fn an_empty_list_is_trusted_without_its_test_entry() {
        let empty = |step: Step| match step.is_of_map() {
            true => maps(&[]),
            false => codes(&[]),
        };
        for scope in [BOTH, ADDRESSES, MAPS] {
            let (check, _) = checked(scope, empty);
            assert_eq!(
                (check.trust(), check.has_test_entry()),
                (Trust::Good, Some(false))
            );
        }
    }

    #[test]
    fn a_list_that_does_not_answer_is_asked_nothing_else() {
        for scope in [BOTH, ADDRESSES, MAPS] {
            let (check, asked) = checked(scope, |_| None);
            assert_eq!((check.trust(), asked.len()), (Trust::Unchecked, 1));
        }
        // Silence to AAAA alone, as of old servers, says nothing about addresses.
        let (check, _) = checked(BOTH, |step| match step.is_of_map() {
            true => None,
            false => codes(&[]),
        });
        assert_eq!((check.trust(), check.serves_maps()), (Trust::Good, None));
        // The second map decides.
        let (check, _) = checked(MAPS, |step| match step {
            Step::TestMap => maps(&["2000::"]),
            _ => None,
        });
        assert_eq!(
            (check.trust(), check.serves_maps()),
            (Trust::Unchecked, None)
        );
    }

    #[test]
    fn a_refusal_is_no_entry() {
        let (check, asked) = checked(ADDRESSES, |_| codes(&["127.255.255.254"]));
        assert_eq!((check.trust(), asked.len()), (Trust::Unchecked, 1));
        assert_eq!(check.refusal(), Some([127, 255, 255, 254].into()));
    }
}
