//! Subjects: words that find a mail by SEARCH and tell its place without its body.
//!
//! ```text
//! verefs1 v3f9c0a11 kcommit i5d41402abc4b2a76b9719d911017c592 p<parent id> g00000000a1b2 w0012 s000000000031 r0003
//!         volume's  kind    mail id                           of commits   generation    writer sequence     group
//!         tag
//! ```
//!
//! Numbers are hexadecimal digits of a fixed count; a generation above 2^48 - 1 has more than 12. The words come in this order,
//! `p` and `g` only where they apply. A subject repeats what the body authenticates and proves nothing.

use std::fmt;

use super::error::FormatError;
use super::head::{Head, Kind};
use super::ids::{MailId, PackNumber};

/// The first word: the format and its version.
const FORMAT: &str = "verefs1";
/// Octets of the longest subject that is looked at.
const OCTETS_MAX: usize = 255;
/// Characters of a foreign word in an error.
const SHOWN: usize = 40;
/// Digits of a generation, unless the generation needs more.
const GENERATION_DIGITS: usize = 12;

/// The subject of a mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    /// The tag of the volume.
    pub volume: u32,
    /// The kind.
    pub kind: Kind,
    /// The mail.
    pub mail: MailId,
    /// The parent of a commit.
    pub parent: Option<MailId>,
    /// The generation of a commit, the newest generation known to facts of a volume, the covered generation of pages.
    pub generation: Option<u64>,
    /// Writer and sequence.
    pub pack: PackNumber,
    /// The group.
    pub group: u16,
}

/// The word of a mail's id in subjects, for SEARCH.
#[must_use]
pub fn id_word(mail: MailId) -> String {
    format!("i{mail}")
}

impl Subject {
    /// The subject of a mail with this head.
    #[must_use]
    pub const fn of(head: &Head, parent: Option<MailId>, generation: Option<u64>) -> Self {
        Self {
            volume: head.volume.tag(),
            kind: head.kind,
            mail: head.mail,
            parent,
            generation,
            pack: head.pack,
            group: head.group,
        }
    }

    /// The Message-ID, in angle brackets: a retry has an equal one.
    #[must_use]
    pub fn message_id(&self) -> String {
        let Self {
            mail, kind, volume, ..
        } = self;
        format!("<{mail}.{kind}.{volume:08x}@verefs.invalid>")
    }

    /// Compares with the head of the mail's body, which counts.
    ///
    /// # Errors
    ///
    /// If a word says something else than the head.
    pub fn check(&self, head: &Head) -> Result<(), FormatError> {
        if self.mail != head.mail {
            return Err(FormatError::Mail {
                expected: head.mail,
                found: self.mail,
            });
        }
        let numbers = [
            (
                "volume of the subject",
                head.volume.tag().into(),
                self.volume.into(),
            ),
            ("kind of the subject", head.kind as u64, self.kind as u64),
            ("pack of the subject", head.pack.0, self.pack.0),
            ("group of the subject", head.group.into(), self.group.into()),
        ];
        for (what, expected, found) in numbers {
            if expected != found {
                return Err(FormatError::Differs {
                    what,
                    expected,
                    found,
                });
            }
        }
        Ok(())
    }

    /// Reads a subject, unfolded; blanks between words may be more than one.
    ///
    /// # Errors
    ///
    /// If the text is not the subject of a mail of this format and version.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        if text.len() > OCTETS_MAX {
            return Err(FormatError::Above {
                what: "octets of a subject",
                max: OCTETS_MAX as u64,
                found: text.len() as u64,
            });
        }
        let mut words = Words(text.split_ascii_whitespace().peekable());
        if words.0.peek() != Some(&FORMAT) {
            return Err(words.unexpected("the word verefs1"));
        }
        words.0.next();
        let volume = words.take('v', "a word v of 8 digits", |digits| hex(digits, 8, 8))?;
        let kind = words.take('k', "a word k of a kind", kind)?;
        let mail = words.take('i', "a word i of 32 digits", id)?;
        let parent = words.optional('p', "a word p of 32 digits", id)?;
        let generation = words.optional('g', "a word g of 12 digits or more", generation)?;
        let writer = words.take('w', "a word w of 4 digits", |digits| hex(digits, 4, 4))?;
        let sequence = words.take('s', "a word s of 12 digits", |digits| hex(digits, 12, 12))?;
        let group = words.take('r', "a word r of 4 digits", |digits| hex(digits, 4, 4))?;
        if words.0.peek().is_some() {
            return Err(words.unexpected("the end"));
        }
        let narrow = |number| u16::try_from(number).unwrap_or(u16::MAX);
        Ok(Self {
            volume: u32::try_from(volume).unwrap_or(u32::MAX),
            kind,
            mail,
            parent,
            generation,
            pack: PackNumber::new(narrow(writer), sequence).unwrap_or_default(),
            group: narrow(group),
        })
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            volume, kind, mail, ..
        } = self;
        write!(f, "{FORMAT} v{volume:08x} k{kind} i{mail}")?;
        if let Some(parent) = self.parent {
            write!(f, " p{parent}")?;
        }
        if let Some(generation) = self.generation {
            write!(f, " g{generation:0GENERATION_DIGITS$x}")?;
        }
        let (writer, sequence) = (self.pack.writer(), self.pack.sequence());
        write!(f, " w{writer:04x} s{sequence:012x} r{:04x}", self.group)
    }
}

struct Words<'a>(std::iter::Peekable<std::str::SplitAsciiWhitespace<'a>>);

impl<'a> Words<'a> {
    /// Takes the next word, which begins with `letter`.
    fn take<T>(
        &mut self,
        letter: char,
        expected: &'static str,
        read: impl Fn(&'a str) -> Option<T>,
    ) -> Result<T, FormatError> {
        let word = self.0.peek().and_then(|word| word.strip_prefix(letter));
        let value = word.and_then(read);
        let value = value.ok_or_else(|| self.unexpected(expected))?;
        self.0.next();
        Ok(value)
    }

    /// Takes the next word if the word begins with `letter`.
    fn optional<T>(
        &mut self,
        letter: char,
        expected: &'static str,
        read: impl Fn(&'a str) -> Option<T>,
    ) -> Result<Option<T>, FormatError> {
        match self.0.peek() {
            Some(word) if word.starts_with(letter) => self.take(letter, expected, read).map(Some),
            _ => Ok(None),
        }
    }

    fn unexpected(&mut self, expected: &'static str) -> FormatError {
        let word = self.0.peek().copied().unwrap_or("the end");
        FormatError::Word {
            what: "subject",
            expected,
            found: word.chars().take(SHOWN).collect(),
        }
    }
}

/// A number of small hexadecimal digits.
fn hex(digits: &str, least: usize, most: usize) -> Option<u64> {
    let fits = (least..=most).contains(&digits.len());
    let small = |octet: u8| matches!(octet, b'0'..=b'9' | b'a'..=b'f');
    (fits && digits.bytes().all(small))
        .then(|| u64::from_str_radix(digits, 16).ok())
        .flatten()
}

fn generation(digits: &str) -> Option<u64> {
    let padded = digits.len() > GENERATION_DIGITS && digits.starts_with('0');
    hex(digits, GENERATION_DIGITS, 16).filter(|_| !padded)
}

fn kind(word: &str) -> Option<Kind> {
    Kind::ALL.into_iter().find(|kind| kind.word() == word)
}

fn id(digits: &str) -> Option<MailId> {
    let (high, low) = digits.split_at_checked(16)?;
    let (high, low) = (hex(high, 16, 16)?, hex(low, 16, 16)?);
    let number = u128::from(high) << 64 | u128::from(low);
    Some(MailId(number.to_be_bytes()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::format::ids::VolumeId;

    const COMMIT: &str = "verefs1 v3f9c0a11 kcommit i5d41402abc4b2a76b9719d911017c592 \
        p000102030405060708090a0b0c0d0e0f g00000000a1b2 w0012 s000000000031 r0003";
    const DATA: &str =
        "verefs1 v3f9c0a11 kdata i5d41402abc4b2a76b9719d911017c592 wffff sffffffffffff rfffe";

    fn head() -> Head {
        Head {
            kind: Kind::Commit,
            volume: VolumeId(*b"\x3f\x9c\x0a\x11............"),
            mail: MailId(*b"\x5d\x41\x40\x2a\xbc\x4b\x2a\x76\xb9\x71\x9d\x91\x10\x17\xc5\x92"),
            epoch: 1,
            group: 3,
            frames: 1,
            last_sealed_len: 20,
            pack: PackNumber::new(0x12, 0x31).unwrap(),
        }
    }

    fn commit() -> Subject {
        let parent = MailId([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
        Subject::of(&head(), Some(parent), Some(0xa1b2))
    }

    #[test]
    fn known_subjects() {
        assert_eq!(commit().to_string(), COMMIT);
        assert_eq!(Subject::parse(COMMIT), Ok(commit()));
        let data = Subject {
            kind: Kind::Data,
            parent: None,
            generation: None,
            pack: PackNumber(u64::MAX),
            group: 0xfffe,
            ..commit()
        };
        assert_eq!(data.to_string(), DATA);
        assert_eq!(Subject::parse(DATA), Ok(data));
        assert!(COMMIT.contains(&id_word(head().mail)));
    }

    #[test]
    fn message_ids_are_those_of_the_page() {
        assert_eq!(
            commit().message_id(),
            "<5d41402abc4b2a76b9719d911017c592.commit.3f9c0a11@verefs.invalid>"
        );
    }

    #[test]
    fn blanks_may_be_more() {
        let folded = format!(" {}\t", COMMIT.replace(' ', "\r\n \t"));
        assert_eq!(Subject::parse(&folded), Ok(commit()));
    }

    #[test]
    fn other_words_are_refused_by_name() {
        let text = |subject: &str| Subject::parse(subject).unwrap_err().to_string();
        assert_eq!(
            text("Re: lunch"),
            "subject: expected the word verefs1; found `Re:`"
        );
        assert_eq!(
            text(""),
            "subject: expected the word verefs1; found `the end`"
        );
        assert_eq!(
            text(&COMMIT.replace("verefs1", "verefs2")),
            "subject: expected the word verefs1; found `verefs2`"
        );
        assert_eq!(
            text(&COMMIT.replace("kcommit", "kcommits")),
            "subject: expected a word k of a kind; found `kcommits`"
        );
        assert_eq!(
            text(&COMMIT.replace(" w0012", "")),
            "subject: expected a word w of 4 digits; found `s000000000031`"
        );
        assert_eq!(
            text(&format!("{COMMIT} r0003")),
            "subject: expected the end; found `r0003`"
        );
        assert_eq!(
            text(&format!("{}äxyz", "ä".repeat(60))),
            format!(
                "subject: expected the word verefs1; found `{}`",
                "ä".repeat(40)
            )
        );
        assert_eq!(
            text(&"x".repeat(256)),
            "octets of a subject: expected at most 255; found 256"
        );
        assert!(matches!(
            Subject::parse(&"x".repeat(255)),
            Err(FormatError::Word { .. })
        ));
    }

    #[test]
    fn digits_are_counted_and_small() {
        for (right, wrong) in [
            ("v3f9c0a11", "v3f9c0a1"),
            ("v3f9c0a11", "v03f9c0a11"),
            ("v3f9c0a11", "v3F9c0a11"),
            ("v3f9c0a11", "v+f9c0a11"),
            ("v3f9c0a11", "v3f9c0g11"),
            (" i5d41", " i05d41"),
            (" i5d41", " iäd41"),
            (" p0001", " p001"),
            (" g0000", " g000"),
            (" g0000", " g00000"),
            (" w0012", " w00012"),
            (" s0000", " s00000"),
            (" r0003", " r003"),
            (" r0003", " r00003"),
        ] {
            let text = COMMIT.replace(right, wrong);
            assert!(Subject::parse(&text).is_err(), "{text}");
        }
    }

    #[test]
    fn large_generations_need_more_digits() {
        for generation in [0, (1 << 48) - 1, 1 << 48, u64::MAX] {
            let subject = Subject {
                generation: Some(generation),
                ..commit()
            };
            assert_eq!(Subject::parse(&subject.to_string()), Ok(subject));
        }
    }

    #[test]
    fn subjects_are_compared_with_the_head() {
        assert_eq!(commit().check(&head()), Ok(()));
        let text = |head: Head| commit().check(&head).unwrap_err().to_string();
        assert_eq!(
            text(Head {
                mail: MailId([0x22; 16]),
                ..head()
            }),
            "mail id: expected 22222222222222222222222222222222; found 5d41402abc4b2a76b9719d911017c592"
        );
        assert_eq!(
            text(Head {
                volume: VolumeId::default(),
                ..head()
            }),
            "volume of the subject: expected 0; found 1067190801"
        );
        assert_eq!(
            text(Head {
                kind: Kind::Data,
                ..head()
            }),
            "kind of the subject: expected 5; found 3"
        );
        assert_eq!(
            text(Head {
                pack: PackNumber(1),
                ..head()
            }),
            "pack of the subject: expected 1; found 5066549580791857"
        );
        assert_eq!(
            text(Head { group: 4, ..head() }),
            "group of the subject: expected 4; found 3"
        );
    }

    proptest! {
        #[test]
        fn subjects_there_and_back(
            volume: u32,
            kind in 0_usize..6,
            mail: [u8; 16],
            parent: Option<[u8; 16]>,
            generation: Option<u64>,
            pack: u64,
            group: u16,
        ) {
            let subject = Subject {
                volume,
                kind: Kind::ALL[kind],
                mail: MailId(mail),
                parent: parent.map(MailId),
                generation,
                pack: PackNumber(pack),
                group,
            };
            prop_assert_eq!(Subject::parse(&subject.to_string()), Ok(subject));
        }

        #[test]
        fn any_text_is_read_without_a_panic(text: String) {
            prop_assert!(Subject::parse(&text).is_err());
        }
    }
}
