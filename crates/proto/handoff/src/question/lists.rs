//! LISTS: the entries of a client on lists in the DNS, the counts of a list, and kept answers about a client.

use std::net::IpAddr;

use super::resolve::Name;
use super::wire::{self, Content, WireError};

/// Maximum of entries in an answer.
pub const LISTINGS_MAX: usize = 32;
/// Maximum octets of the name of a list, and of its text.
const SHORT_OCTETS_MAX: usize = 255;

/// An entry of the client on a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listing {
    /// The place of the list in the settings of the broker.
    pub list: u8,
    /// The weight of the entry, below zero in favour of the client.
    pub weight: i16,
}

/// The entries of a client on all lists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListsAnswer {
    complete: bool,
    listings: Vec<Listing>,
    name: String,
    text: String,
}

impl ListsAnswer {
    /// Takes the entries; name and text are those of the list with the largest weight, and empty without it. Entries beyond
    /// [`LISTINGS_MAX`] are left off, and names and texts are cut to 255 octets of printable ASCII.
    #[must_use]
    pub fn new(complete: bool, mut listings: Vec<Listing>, name: &str, text: &str) -> Self {
        listings.truncate(LISTINGS_MAX);
        let short = |text: &str| {
            let octets = text.bytes().filter(|octet| is_printable(*octet));
            octets.take(SHORT_OCTETS_MAX).map(char::from).collect()
        };
        Self {
            complete,
            listings,
            name: short(name),
            text: short(text),
        }
    }

    /// Whether every list has answered.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.complete
    }

    /// Returns the entries.
    #[must_use]
    pub fn listings(&self) -> &[Listing] {
        &self.listings
    }

    /// Returns the name of the list with the largest weight; empty without a weight above zero.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the text of that list about the client; empty if there is none.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.complete));
        out.push(u8::try_from(self.listings.len()).unwrap_or(u8::MAX));
        for listing in &self.listings {
            out.push(listing.list);
            out.extend_from_slice(&listing.weight.to_le_bytes());
        }
        put_short(&self.name, out);
        put_short(&self.text, out);
    }

    pub(super) fn decode(content: &mut Content<'_>) -> Result<Self, WireError> {
        let complete = match content.array()? {
            [0] => false,
            [1] => true,
            _ => return Err(WireError::Content),
        };
        let [count] = content.array()?;
        if usize::from(count) > LISTINGS_MAX {
            return Err(WireError::Content);
        }
        let listing = |_| {
            let [list] = content.array()?;
            let weight = i16::from_le_bytes(content.array()?);
            Ok(Listing { list, weight })
        };
        let listings = (0..count).map(listing).collect::<Result<_, WireError>>()?;
        Ok(Self {
            complete,
            listings,
            name: short(content)?,
            text: short(content)?,
        })
    }
}

/// A question about kept answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keeping<'a> {
    /// The zone of the list.
    pub zone: Name<'a>,
    /// The address of the client.
    pub client: IpAddr,
}

impl<'a> Keeping<'a> {
    pub(super) fn encode(self, out: &mut Vec<u8>) {
        wire::encode_client(self.client, out);
        self.zone.encode(out);
    }

    pub(super) fn decode(content: &mut Content<'a>) -> Result<Self, WireError> {
        let client = wire::decode_client(content)?;
        let zone = Name::decode(content)?;
        Ok(Self { zone, client })
    }
}

/// The kept answer about a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// The broker does not ask this list.
    NoSuchList,
    /// Nothing.
    Nothing,
    /// The answer about the client alone.
    Codes,
    /// The map of the client's neighbours.
    Map,
    /// The list did not answer a moment ago.
    Failure,
    /// Nothing that counts: the list lists everybody.
    ListsEverybody,
}

impl Kept {
    /// Every case, in the order of the numbers.
    pub const ALL: &[Self] = &[
        Self::NoSuchList,
        Self::Nothing,
        Self::Codes,
        Self::Map,
        Self::Failure,
        Self::ListsEverybody,
    ];

    pub(super) const fn number(self) -> u8 {
        match self {
            Self::NoSuchList => 0,
            Self::Nothing => 1,
            Self::Codes => 2,
            Self::Map => 3,
            Self::Failure => 4,
            Self::ListsEverybody => 5,
        }
    }

    pub(super) fn of_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

macro_rules! counts {
    ($($(#[$doc:meta])+ $name:ident,)+) => {
        /// Counts of a list since the start of the broker, and of the cache that all lists share.
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        pub struct ListFigures {
            /// The name of the list.
            pub name: String,
            /// Answers of the list by the time they took, for each of [`ListFigures::WITHIN_MILLIS`], and later ones.
            pub within: [u64; 8],
            $($(#[$doc])+ pub $name: u64,)+
        }

        impl ListFigures {
            /// Upper bounds of times in milliseconds, each not counted in the bound before.
            pub const WITHIN_MILLIS: [u64; 7] = [1, 3, 10, 30, 100, 300, 1_000];

            pub(super) fn encode(&self, out: &mut Vec<u8>) {
                put_short(&self.name, out);
                for count in self.within.iter().chain(&[$(self.$name),+]) {
                    out.extend_from_slice(&count.to_le_bytes());
                }
            }

            pub(super) fn decode(content: &mut Content<'_>) -> Result<Self, WireError> {
                let name = short(content)?;
                let mut within = [0; 8];
                for count in &mut within {
                    *count = u64::from_le_bytes(content.array()?);
                }
                Ok(Self {
                    name,
                    within,
                    $($name: u64::from_le_bytes(content.array()?),)+
                })
            }
        }
    };
}

counts! {
    /// Queries sent.
    queries,
    /// Questions whose answers were kept.
    hits,
    /// Questions that shared a query.
    shared,
    /// Clients with an entry.
    listed,
    /// Queries without a usable answer.
    failures,
    /// Questions for which the list was left out: it rests after failures, has too many queries under way, or was too slow.
    skipped,
    /// Questions for which the list was left out because it lists 127.0.0.1, and so everybody.
    untrusted,
    /// Questions that the cache could answer, of all lists.
    cache_hits,
    /// Questions that the cache could not answer, of all lists.
    cache_misses,
    /// Entries that made room, of all lists.
    cache_evicted,
    /// Entries of the cache.
    cache_entries,
    /// Octets of the cache.
    cache_octets,
}

const fn is_printable(octet: u8) -> bool {
    matches!(octet, b' '..=b'~')
}

fn put_short(text: &str, out: &mut Vec<u8>) {
    let text = text.as_bytes();
    let text = text.get(..SHORT_OCTETS_MAX).unwrap_or(text);
    out.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
    out.extend_from_slice(text);
}

fn short(content: &mut Content<'_>) -> Result<String, WireError> {
    let [octets] = content.array()?;
    let text = content.text(octets.into())?;
    match text.bytes().all(is_printable) {
        true => Ok(text.to_owned()),
        false => Err(WireError::Content),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Answer, FRAME_OCTETS_MAX, Frame, Question};
    use super::*;

    fn question(question: &Question<'_>) -> Vec<u8> {
        let mut octets = Vec::new();
        question.encode(0x0102, &mut octets);
        let frame = Frame::read(&octets).unwrap().expect("whole");
        assert_eq!(Question::decode(&frame), Ok(*question));
        octets[4..].to_vec()
    }

    fn answer(answer: &Answer) -> Vec<u8> {
        let mut octets = Vec::new();
        answer.encode(0x0102, &mut octets);
        assert!(octets.len() <= FRAME_OCTETS_MAX);
        let frame = Frame::read(&octets).unwrap().expect("whole");
        assert_eq!(Answer::decode(&frame).as_ref(), Ok(answer));
        octets[4..].to_vec()
    }

    fn head(kind: u8) -> Vec<u8> {
        vec![3, kind, 2, 1, 0, 0, 0, 0, 0, 0]
    }

    #[test]
    fn frames_have_their_octets() {
        let client = [192, 0, 2, 1].into();
        let octets = [head(5), vec![4, 192, 0, 2, 1]].concat();
        assert_eq!(question(&Question::Lists(client)), octets);
        let octets = [head(6), vec![3]].concat();
        assert_eq!(question(&Question::ListFigures(3)), octets);
        let zone = Name::new("bl.a").unwrap();
        let octets = [head(7), vec![4, 192, 0, 2, 1, 4], b"bl.a".to_vec()].concat();
        let keeping = Keeping { zone, client };
        assert_eq!(question(&Question::Keeping(keeping)), octets);
        let listings = vec![Listing {
            list: 2,
            weight: -2,
        }];
        let told = ListsAnswer::new(true, listings, "bl.a", "t\r\n");
        let expected = [
            head(136),
            vec![1, 1, 2, 0xfe, 0xff, 4],
            b"bl.a\x01t".to_vec(),
        ];
        assert_eq!(answer(&Answer::Lists(told)), expected.concat());
        let figures = ListFigures {
            name: "a".to_owned(),
            within: [1, 0, 0, 0, 0, 0, 0, 0],
            cache_octets: 2,
            ..ListFigures::default()
        };
        let octets = answer(&Answer::ListFigures(figures));
        assert_eq!(octets.len(), 10 + 2 + 8 * 20);
        assert_eq!((octets[12], octets[10 + 2 + 8 * 19]), (1, 2));
        for kept in Kept::ALL {
            let octets = [head(138), vec![kept.number()]].concat();
            assert_eq!(answer(&Answer::Kept(*kept)), octets);
        }
    }

    #[test]
    fn an_answer_has_bounds() {
        let listing = Listing {
            list: 255,
            weight: i16::MIN,
        };
        let long = "a".repeat(300);
        let told = ListsAnswer::new(false, vec![listing; 300], &long, &long);
        assert_eq!(told.listings().len(), LISTINGS_MAX);
        assert_eq!((told.name().len(), told.text().len()), (255, 255));
        let octets = answer(&Answer::Lists(told));
        for (place, octet) in [(10, 2), (11, 33), (10 + 2 + 96 + 1, b'\r')] {
            let mut octets = octets.clone();
            octets[place] = octet;
            let length = u32::try_from(octets.len()).unwrap().to_le_bytes();
            let whole = [&length[..], &octets].concat();
            let frame = Frame::read(&whole).unwrap().expect("whole");
            assert_eq!(Answer::decode(&frame), Err(WireError::Content), "{place}");
        }
    }
}
