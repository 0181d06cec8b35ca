//! The choice of the signatures that are checked.
//!
//! Each costs a question and a verification, so that their number is bounded. Whoever passes a message on can write more above the author's own:
//! signatures that may be aligned with the author count first, then others, then those that are malformed, and in each class the upper ones.

use crate::name::is_within;
use crate::signature::Found;

/// Most signatures of DKIM that are checked. Messages of today have 4 at most.
pub const SIGNATURES_MAX: usize = 10;

/// The class of a signature; the first one is checked first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// The domain is that of the author.
    Author,
    /// The domain is above or below that of the author.
    Line,
    /// The domain has the last two labels of the author's domain, and may belong to the same organization.
    Kin,
    /// Another domain.
    Other,
    /// The signature cannot pass.
    Malformed,
}

impl Class {
    /// Returns the class of a domain, with the domain of the author.
    pub(crate) fn of(domain: &str, author: &str) -> Self {
        match () {
            () if domain == author => Self::Author,
            () if is_within(domain, author) || is_within(author, domain) => Self::Line,
            () if last_two(domain).is_some_and(|name| is_within(author, name)) => Self::Kin,
            () => Self::Other,
        }
    }

    fn of_found(found: &Found, author: Option<&str>) -> Self {
        match (&found.signature, author) {
            (Ok(signature), Some(author)) => Self::of(&signature.domain, author),
            (Ok(_), None) => Self::Other,
            (Err(_), _) => Self::Malformed,
        }
    }
}

fn last_two(name: &str) -> Option<&str> {
    let dot = name.rmatch_indices('.').nth(1);
    match dot {
        Some((at, _)) => name.get(at.saturating_add(1)..),
        None => Some(name).filter(|name| name.contains('.')),
    }
}

/// The signatures of a header that are checked.
#[derive(Debug, Default)]
pub(crate) struct Chosen {
    kept: Vec<(Class, Found)>,
    /// The number of signatures that are not checked.
    pub(crate) ignored: usize,
}

impl Chosen {
    /// Takes the next signature of a header.
    pub(crate) fn take(&mut self, found: Found, author: Option<&str>) {
        let class = Class::of_found(&found, author);
        self.kept.push((class, found));
        if self.kept.len() <= SIGNATURES_MAX {
            return;
        }
        self.ignored = self.ignored.saturating_add(1);
        let places = self.kept.iter().enumerate();
        // Of one class, the last one is the lowest in the header.
        let worst = places.max_by_key(|(_, (class, _))| *class);
        if let Some((place, _)) = worst {
            self.kept.remove(place);
        }
    }

    /// Returns the signatures, the first class first.
    pub(crate) fn into_signatures(mut self) -> Vec<Found> {
        self.kept.sort_by_key(|(class, _)| *class);
        self.kept.into_iter().map(|(_, found)| found).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::Kind;

    #[test]
    fn domains_have_classes() {
        for (domain, author, expected) in [
            ("a.example", "a.example", Class::Author),
            ("b.a.example", "a.example", Class::Line),
            ("a.example", "b.a.example", Class::Line),
            ("c.a.example", "b.a.example", Class::Kin),
            ("d.c.a.example", "b.a.example", Class::Kin),
            ("b.example", "a.example", Class::Other),
            ("ba.example", "a.example", Class::Other),
            ("example", "a.example", Class::Line),
            ("other", "a.example", Class::Other),
        ] {
            assert_eq!(Class::of(domain, author), expected, "{domain} {author}");
        }
    }

    #[test]
    fn the_best_are_kept_and_the_upper_ones_of_a_class() {
        let mut chosen = Chosen::default();
        let mut take = |index, domain: &str| {
            let value = format!("v=1; a=rsa-sha256; d={domain}; s=s; h=from; bh=YQ; b=YQ");
            let found = Found::of(index, value.as_bytes(), Kind::Dkim);
            chosen.take(found, Some("a.example"));
        };
        for index in 0..8 {
            take(index, "");
        }
        for index in 8..20 {
            take(index, "b.example");
        }
        take(20, "x.a.example");
        take(21, "a.example");
        assert_eq!(chosen.ignored, 12);
        let kept = chosen.into_signatures();
        let kept: Vec<_> = kept.iter().map(|found| found.index).collect();
        assert_eq!(kept, [21, 20, 8, 9, 10, 11, 12, 13, 14, 15]);
    }
}
