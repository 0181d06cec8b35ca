//! Bounds of facts. Strangers choose texts and numbers; the bounds keep memory and records small.

use super::{Attachment, Facts, Filter};
use vere_units::Score;

/// Octets of an address: a path of RFC 5321 section 4.5.3.1.3 with room for international local parts.
pub const ADDRESS_OCTETS_MAX: usize = 320;
/// Octets of a domain.
pub const DOMAIN_OCTETS_MAX: usize = 255;
/// Octets of a word: names of filters, symbols and lists.
pub const WORD_OCTETS_MAX: usize = 64;
/// Octets of the name of an attachment or a virus, and of a media type.
pub const NAME_OCTETS_MAX: usize = 128;
/// Addresses of authors.
pub const AUTHORS_MAX: usize = 8;
/// DKIM signatures.
pub const SIGNATURES_MAX: usize = 16;
/// Lists in the DNS.
pub const LISTINGS_MAX: usize = 32;
/// Filters.
pub const FILTERS_MAX: usize = 16;
/// Symbols of a filter.
pub const SYMBOLS_MAX: usize = 128;
/// Viruses.
pub const VIRUSES_MAX: usize = 16;
/// Attachments.
pub const ATTACHMENTS_MAX: usize = 256;
/// The weight of a list, on both sides of zero.
pub const WEIGHT_MAX: i16 = 1_000;
/// The score of a symbol, on both sides of zero.
pub const SYMBOL_SCORE_MAX: Score = Score::from_points(10_000);

/// Whether a text is a word: letters, digits and a few marks of ASCII, so that header fields and replies can have it.
pub(crate) fn is_word(text: &str) -> bool {
    let is_fit = |octet: u8| octet.is_ascii_alphanumeric() || b"_.-".contains(&octet);
    (1..=WORD_OCTETS_MAX).contains(&text.len()) && text.bytes().all(is_fit)
}

/// The score of a symbol within its bounds.
pub(crate) fn bounded_score(score: Score) -> Score {
    let most = SYMBOL_SCORE_MAX.as_hundredths();
    Score::from_hundredths(score.as_hundredths().clamp(-most, most))
}

impl Facts {
    /// Cuts texts and lists to their bounds and notes so in [`Facts::cut`]; makes names of filters, symbols and lists words. Names of attachments keep their ends, which have the
    /// kind of file.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        let mut cut = Cut(self.cut);
        self.client = self.client.map(|client| client.to_canonical());
        for text in self.login.iter_mut().chain(&mut self.reverse_path) {
            cut.text(text, ADDRESS_OCTETS_MAX);
        }
        if let Some(signatures) = &mut self.dkim {
            cut.list(signatures, SIGNATURES_MAX);
            for signature in signatures {
                cut.text(&mut signature.domain, DOMAIN_OCTETS_MAX);
            }
        }
        if let Some(dmarc) = &mut self.dmarc {
            cut.text(&mut dmarc.domain, DOMAIN_OCTETS_MAX);
        }
        if let Some(arc) = &mut self.arc {
            cut.text(&mut arc.sealer, DOMAIN_OCTETS_MAX);
        }
        cut.list(&mut self.listings, LISTINGS_MAX);
        for listing in &mut self.listings {
            Cut::word(&mut listing.list);
            listing.weight = listing.weight.clamp(-WEIGHT_MAX, WEIGHT_MAX);
        }
        if let Some(author) = &mut self.author {
            cut.list(&mut author.addresses, AUTHORS_MAX);
            for address in &mut author.addresses {
                cut.text(address, ADDRESS_OCTETS_MAX);
            }
        }
        if let Some(structure) = &mut self.structure {
            cut.attachments(&mut structure.attachments);
        }
        cut.filters(&mut self.filters);
        cut.list(&mut self.viruses, VIRUSES_MAX);
        for virus in &mut self.viruses {
            Cut::word(&mut virus.filter);
            cut.text(&mut virus.name, NAME_OCTETS_MAX);
        }
        self.cut = cut.0;
        self
    }
}

/// Whether something was cut.
struct Cut(bool);

impl Cut {
    fn text(&mut self, text: &mut String, max: usize) {
        if text.len() > max {
            text.truncate(text.floor_char_boundary(max));
            self.0 = true;
        }
    }

    /// Makes a text a word, an empty text too. Words are of this system and its filters: a sender cannot make them long.
    fn word(text: &mut String) {
        if !is_word(text) {
            let fit = |c: char| {
                if is_word(c.encode_utf8(&mut [0; 4])) {
                    c
                } else {
                    '_'
                }
            };
            *text = text.chars().map(fit).take(WORD_OCTETS_MAX).collect();
            if text.is_empty() {
                text.push('_');
            }
        }
    }

    fn list<T>(&mut self, list: &mut Vec<T>, max: usize) {
        if list.len() > max {
            list.truncate(max);
            self.0 = true;
        }
    }

    fn attachments(&mut self, attachments: &mut Vec<Attachment>) {
        self.list(attachments, ATTACHMENTS_MAX);
        for attachment in attachments {
            let name = &mut attachment.name;
            if name.len() > NAME_OCTETS_MAX {
                let from = name.ceil_char_boundary(name.len() - NAME_OCTETS_MAX);
                name.drain(..from);
                self.0 = true;
            }
            self.text(&mut attachment.media_type, NAME_OCTETS_MAX);
        }
    }

    fn filters(&mut self, filters: &mut Vec<Filter>) {
        self.list(filters, FILTERS_MAX);
        for filter in filters {
            Self::word(&mut filter.name);
            self.list(&mut filter.symbols, SYMBOLS_MAX);
            for symbol in &mut filter.symbols {
                Self::word(&mut symbol.name);
                symbol.score = bounded_score(symbol.score);
            }
        }
    }
}
