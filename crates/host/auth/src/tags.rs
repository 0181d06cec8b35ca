//! Lists of tags, in signatures and keys (RFC 6376 section 3.2) and in policies of DMARC (RFC 9989 section 4.8).
//!
//! ```text
//! tag-list = tag-spec *( ";" tag-spec ) [ ";" ]
//! tag-spec = [FWS] tag-name [FWS] "=" [FWS] tag-value [FWS]
//! tag-name = ALPHA *( ALPHA / DIGIT / "_" )
//! ```

use std::ops::Range;

/// Most tags of a list; the standards define 17.
const TAGS_MAX: usize = 64;

/// The text is no list of tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// A tag.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Tag<'a> {
    name: &'a [u8],
    /// The value without white space around it.
    value: &'a [u8],
    /// Place of everything between `=` and `;` in the list.
    place: Range<usize>,
}

/// The tags of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tags<'a>(Vec<Tag<'a>>);

impl<'a> Tags<'a> {
    /// Parses a list.
    ///
    /// # Errors
    /// [`Malformed`] for a text outside the grammar, a name that is there twice, or too many tags.
    pub(crate) fn of(list: &'a [u8]) -> Result<Self, Malformed> {
        let mut tags = Vec::<Tag<'a>>::new();
        let mut specs = specs(list).peekable();
        while let Some((place, spec)) = specs.next() {
            if spec.trim_ascii().is_empty() && specs.peek().is_none() && !tags.is_empty() {
                break;
            }
            let tag = tag(place, spec).ok_or(Malformed)?;
            if tags.len() >= TAGS_MAX || tags.iter().any(|other| other.name == tag.name) {
                return Err(Malformed);
            }
            tags.push(tag);
        }
        Ok(Self(tags))
    }

    /// Parses the tags of a list that are inside the grammar, the first of each name.
    pub(crate) fn lenient(list: &'a [u8]) -> Self {
        let tags = specs(list).take(TAGS_MAX);
        Self(tags.filter_map(|(place, spec)| tag(place, spec)).collect())
    }

    /// Returns the name and the value of the first tag.
    pub(crate) fn first(&self) -> Option<(&'a [u8], &'a [u8])> {
        self.0.first().map(|tag| (tag.name, tag.value))
    }

    /// Returns the value of a tag.
    pub(crate) fn value(&self, name: &str) -> Option<&'a [u8]> {
        self.tag(name).map(|tag| tag.value)
    }

    /// Returns the value of a tag whose name may have any case.
    pub(crate) fn value_in_any_case(&self, name: &str) -> Option<&'a [u8]> {
        let is = |tag: &&Tag<'_>| tag.name.eq_ignore_ascii_case(name.as_bytes());
        self.0.iter().find(is).map(|tag| tag.value)
    }

    /// Returns the value of a tag without any white space.
    pub(crate) fn compact(&self, name: &str) -> Option<Vec<u8>> {
        let octets = self.value(name)?.iter().copied();
        Some(
            octets
                .filter(|octet| !octet.is_ascii_whitespace())
                .collect(),
        )
    }

    /// Returns the place in the list of everything behind the `=` of a tag.
    pub(crate) fn place(&self, name: &str) -> Option<Range<usize>> {
        self.tag(name).map(|tag| tag.place.clone())
    }

    fn tag(&self, name: &str) -> Option<&Tag<'a>> {
        self.0.iter().find(|tag| tag.name == name.as_bytes())
    }
}

/// The texts between semicolons, with their places.
fn specs(list: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut next = 0_usize;
    list.split(|octet| *octet == b';').map(move |spec| {
        let place = next;
        next = next.saturating_add(spec.len()).saturating_add(1);
        (place, spec)
    })
}

fn tag(place: usize, spec: &[u8]) -> Option<Tag<'_>> {
    let equals = memchr::memchr(b'=', spec)?;
    let (name, value) = spec.split_at_checked(equals)?;
    let value = value.get(1..)?;
    let name = name.trim_ascii();
    let is_letter = |octet: &u8| octet.is_ascii_alphanumeric() || *octet == b'_';
    let is_name = name.first().is_some_and(u8::is_ascii_alphabetic) && name.iter().all(is_letter);
    let begin = place.saturating_add(equals).saturating_add(1);
    is_name.then(|| Tag {
        name,
        value: value.trim_ascii(),
        place: begin..begin.saturating_add(value.len()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_tags() {
        let list = b" v = 1; b= x\r\n y ;p=; ";
        let tags = Tags::of(list).unwrap();
        assert_eq!(tags.first(), Some((&b"v"[..], &b"1"[..])));
        assert_eq!(tags.value("b"), Some(&b"x\r\n y"[..]));
        assert_eq!(tags.compact("b"), Some(b"xy".to_vec()));
        assert_eq!(tags.value("p"), Some(&b""[..]));
        assert_eq!(&list[tags.place("b").unwrap()], b" x\r\n y ");
        assert_eq!(tags.value("B"), None);
    }

    #[test]
    fn other_texts_are_no_lists() {
        let many = "a1=".to_owned() + &(2..=65).map(|n| format!(";a{n}=")).collect::<String>();
        for list in [
            "", ";", "a", "a=1;;b=2", "a=1;a=2", "=1", "1a=2", "a=1; b", "a=1;;", &many,
        ] {
            assert_eq!(Tags::of(list.as_bytes()), Err(Malformed), "{list}");
        }
        let tags = Tags::lenient(b"v=DMARC1; x; p=reject;; P=none");
        assert_eq!(tags.value_in_any_case("p"), Some(&b"reject"[..]));
    }
}
