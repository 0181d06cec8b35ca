//! The encoding of facts, kept with a message for `vere explain`.
//!
//! Format version 1, little endian; version 2 is the same, and says that the author is learned. A text is its length and UTF-8; a list is its length (u16) and its entries; an optional value is
//! an octet 0, or 1 and the value; an optional word of a list of words is its number, 0 without. The table in
//! docs/internals/judging.md has every field. Everything else is an error: surplus octets, lengths beyond the bounds, unknown
//! numbers. Octets that decode are those that the decoded facts encode to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use vere_settings::Verdict;
use vere_units::Score;

use crate::facts::{
    ADDRESS_OCTETS_MAX, ATTACHMENTS_MAX, AUTHORS_MAX, Arc, Attachment, AuthResult, Author,
    DOMAIN_OCTETS_MAX, Dmarc, DmarcPolicy, FILTERS_MAX, Facts, Filter, Greylist, HeloForm,
    LISTINGS_MAX, Listing, NAME_OCTETS_MAX, SIGNATURES_MAX, SYMBOL_SCORE_MAX, SYMBOLS_MAX,
    Signature, Structure, Symbol, VIRUSES_MAX, Virus, WEIGHT_MAX, WORD_OCTETS_MAX, is_word,
};

/// The newest version that this code writes and reads.
pub const FACTS_VERSION: u8 = 2;

/// The version of facts about an author who is not learned.
const PLAIN: u8 = 1;

/// Why octets are no facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FactsError {
    /// The facts have a version that this program cannot read.
    #[error("expected facts of version {PLAIN} or {FACTS_VERSION}; found version {0}")]
    Version(u8),
    /// The octets end within a field.
    #[error("expected {0}; found the end of the facts")]
    Short(&'static str),
    /// A field has a value that no facts have.
    #[error("expected {wanted}; found another value at octet {at}")]
    Value {
        /// The expected field.
        wanted: &'static str,
        /// The octet behind the value.
        at: usize,
    },
    /// Octets follow the last field.
    #[error("expected the end of the facts; found {0} more octets")]
    Surplus(usize),
}

impl Facts {
    /// Encodes the facts, within their bounds.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let facts = self.clone().bounded();
        let version = match facts.learned {
            true => FACTS_VERSION,
            false => PLAIN,
        };
        let mut out = Writer(vec![version]);
        out.client(facts.client);
        out.maybe(facts.login.as_deref(), Writer::text);
        out.maybe(facts.reverse_path.as_deref(), Writer::text);
        out.u32(facts.recipients);
        out.number(facts.helo, HeloForm::number);
        for result in [facts.iprev, facts.spf, facts.spf_helo] {
            out.number(result, AuthResult::number);
        }
        out.maybe(facts.dkim.as_deref(), |out, signatures| {
            out.list(signatures, Writer::signature);
        });
        out.maybe(facts.dmarc.as_ref(), Writer::dmarc);
        out.maybe(facts.arc.as_ref(), Writer::arc);
        out.list(&facts.listings, Writer::listing);
        out.number(facts.greylist, Greylist::number);
        out.maybe(facts.author.as_ref(), Writer::author);
        out.maybe(facts.structure.as_ref(), Writer::structure);
        out.list(&facts.filters, Writer::filter);
        out.list(&facts.viruses, |out, virus| {
            out.text(&virus.filter);
            out.text(&virus.name);
        });
        out.flag(facts.cut);
        out.0
    }

    /// Decodes facts.
    ///
    /// # Errors
    /// [`FactsError`] with the field that is wrong.
    pub fn decode(octets: &[u8]) -> Result<Self, FactsError> {
        let mut from = Reader { octets, at: 0 };
        let learned = match from.u8("a version")? {
            PLAIN => false,
            FACTS_VERSION => true,
            version => return Err(FactsError::Version(version)),
        };
        let facts = Self {
            learned,
            client: from.client()?,
            login: from.maybe(|from| from.text(ADDRESS_OCTETS_MAX, "a login"))?,
            reverse_path: from.maybe(|from| from.text(ADDRESS_OCTETS_MAX, "a reverse-path"))?,
            recipients: from.u32("a number of recipients")?,
            helo: from.number(HeloForm::of_number, "a form of HELO")?,
            iprev: from.number(AuthResult::of_number, "a result of iprev")?,
            spf: from.number(AuthResult::of_number, "a result of SPF")?,
            spf_helo: from.number(AuthResult::of_number, "a result of SPF for HELO")?,
            dkim: from.maybe(|from| from.list(SIGNATURES_MAX, Reader::signature))?,
            dmarc: from.maybe(Reader::dmarc)?,
            arc: from.maybe(Reader::arc)?,
            listings: from.list(LISTINGS_MAX, Reader::listing)?,
            greylist: from.number(Greylist::of_number, "a state of the greylist")?,
            author: from.maybe(Reader::author)?,
            structure: from.maybe(Reader::structure)?,
            filters: from.list(FILTERS_MAX, Reader::filter)?,
            viruses: from.list(VIRUSES_MAX, Reader::virus)?,
            cut: from.flag("whether facts were cut")?,
        };
        match octets.len().saturating_sub(from.at) {
            0 => Ok(facts),
            surplus => Err(FactsError::Surplus(surplus)),
        }
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn u16(&mut self, number: usize) {
        // Everything that is counted is within the bounds of facts.
        let number = u16::try_from(number).unwrap_or(u16::MAX);
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn u32(&mut self, number: u32) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn flag(&mut self, flag: bool) {
        self.0.push(u8::from(flag));
    }

    fn text(&mut self, text: &str) {
        self.u16(text.len());
        self.0.extend_from_slice(text.as_bytes());
    }

    fn number<T>(&mut self, value: Option<T>, number: fn(T) -> u8) {
        self.0.push(value.map_or(0, number));
    }

    fn maybe<T>(&mut self, value: Option<T>, write: impl Fn(&mut Self, T)) {
        self.flag(value.is_some());
        if let Some(value) = value {
            write(self, value);
        }
    }

    fn list<T>(&mut self, list: &[T], write: impl Fn(&mut Self, &T)) {
        self.u16(list.len());
        for entry in list {
            write(self, entry);
        }
    }

    fn client(&mut self, client: Option<IpAddr>) {
        match client {
            None => self.0.push(0),
            Some(IpAddr::V4(address)) => {
                self.0.push(4);
                self.0.extend_from_slice(&address.octets());
            }
            Some(IpAddr::V6(address)) => {
                self.0.push(6);
                self.0.extend_from_slice(&address.octets());
            }
        }
    }

    fn signature(&mut self, signature: &Signature) {
        self.text(&signature.domain);
        self.0.push(signature.result.number());
    }

    fn dmarc(&mut self, dmarc: &Dmarc) {
        self.text(&dmarc.domain);
        self.0.push(dmarc.result.number());
        self.0.push(dmarc.policy.number());
        self.flag(dmarc.spf_aligned);
        self.flag(dmarc.dkim_aligned);
    }

    fn arc(&mut self, arc: &Arc) {
        self.0.push(arc.result.number());
        self.text(&arc.sealer);
        self.flag(arc.dmarc_passed);
    }

    fn listing(&mut self, listing: &Listing) {
        self.text(&listing.list);
        self.0.extend_from_slice(&listing.weight.to_le_bytes());
    }

    fn author(&mut self, author: &Author) {
        self.u32(author.fields);
        self.u32(author.total);
        self.list(&author.addresses, |out, address| out.text(address));
    }

    fn structure(&mut self, structure: &Structure) {
        self.u32(structure.depth);
        self.u32(structure.parts);
        self.0
            .extend_from_slice(&structure.header_octets.to_le_bytes());
        self.u32(structure.total);
        self.list(&structure.attachments, |out, attachment| {
            out.text(&attachment.name);
            out.text(&attachment.media_type);
        });
    }

    fn filter(&mut self, filter: &Filter) {
        self.text(&filter.name);
        self.number(filter.action, verdict_number);
        self.list(&filter.symbols, |out, symbol| {
            out.text(&symbol.name);
            // A bounded score fits.
            let score = i32::try_from(symbol.score.as_hundredths()).unwrap_or_default();
            out.0.extend_from_slice(&score.to_le_bytes());
        });
    }
}

const fn verdict_number(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Accept => 1,
        Verdict::Tag => 2,
        Verdict::Quarantine => 3,
        Verdict::Defer => 4,
        Verdict::Reject => 5,
    }
}

fn verdict_of_number(number: u8) -> Option<Verdict> {
    let mut all = Verdict::ALL.iter().copied();
    all.find(|verdict| verdict_number(*verdict) == number)
}

struct Reader<'a> {
    octets: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, octets: usize, wanted: &'static str) -> Result<&'a [u8], FactsError> {
        let end = self.at.saturating_add(octets);
        let taken = self.octets.get(self.at..end);
        let taken = taken.ok_or(FactsError::Short(wanted))?;
        self.at = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, wanted: &'static str) -> Result<[u8; N], FactsError> {
        let taken = self.take(N, wanted)?;
        taken.try_into().map_err(|_| FactsError::Short(wanted))
    }

    fn wrong<T>(&self, wanted: &'static str) -> Result<T, FactsError> {
        let at = self.at;
        Err(FactsError::Value { wanted, at })
    }

    fn u8(&mut self, wanted: &'static str) -> Result<u8, FactsError> {
        let [octet] = self.array(wanted)?;
        Ok(octet)
    }

    fn u32(&mut self, wanted: &'static str) -> Result<u32, FactsError> {
        self.array(wanted).map(u32::from_le_bytes)
    }

    fn length(&mut self, max: usize, wanted: &'static str) -> Result<usize, FactsError> {
        let length = usize::from(u16::from_le_bytes(self.array(wanted)?));
        match length <= max {
            true => Ok(length),
            false => self.wrong(wanted),
        }
    }

    fn flag(&mut self, wanted: &'static str) -> Result<bool, FactsError> {
        match self.u8(wanted)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => self.wrong(wanted),
        }
    }

    fn text(&mut self, max: usize, wanted: &'static str) -> Result<String, FactsError> {
        let length = self.length(max, wanted)?;
        match std::str::from_utf8(self.take(length, wanted)?) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => self.wrong(wanted),
        }
    }

    fn word(&mut self, wanted: &'static str) -> Result<String, FactsError> {
        let text = self.text(WORD_OCTETS_MAX, wanted)?;
        match is_word(&text) {
            true => Ok(text),
            false => self.wrong(wanted),
        }
    }

    /// Reads a number that stands for a value, or 0.
    fn number<T>(
        &mut self,
        of_number: fn(u8) -> Option<T>,
        wanted: &'static str,
    ) -> Result<Option<T>, FactsError> {
        match self.u8(wanted)? {
            0 => Ok(None),
            number => match of_number(number) {
                Some(value) => Ok(Some(value)),
                None => self.wrong(wanted),
            },
        }
    }

    fn value<T>(
        &mut self,
        of_number: fn(u8) -> Option<T>,
        wanted: &'static str,
    ) -> Result<T, FactsError> {
        match self.number(of_number, wanted)? {
            Some(value) => Ok(value),
            None => self.wrong(wanted),
        }
    }

    fn maybe<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, FactsError>,
    ) -> Result<Option<T>, FactsError> {
        let is_there = self.flag("whether a value follows")?;
        is_there.then(|| read(self)).transpose()
    }

    fn list<T>(
        &mut self,
        max: usize,
        read: impl Fn(&mut Self) -> Result<T, FactsError>,
    ) -> Result<Vec<T>, FactsError> {
        let length = self.length(max, "the length of a list")?;
        (0..length).map(|_| read(self)).collect()
    }

    fn client(&mut self) -> Result<Option<IpAddr>, FactsError> {
        const WANTED: &str = "the address of a client";
        Ok(match self.u8(WANTED)? {
            0 => None,
            4 => Some(Ipv4Addr::from(self.array(WANTED)?).into()),
            6 => {
                let address = Ipv6Addr::from(self.array(WANTED)?);
                if address.to_ipv4_mapped().is_some() {
                    return self.wrong(WANTED);
                }
                Some(address.into())
            }
            _ => return self.wrong(WANTED),
        })
    }

    fn signature(&mut self) -> Result<Signature, FactsError> {
        Ok(Signature {
            domain: self.text(DOMAIN_OCTETS_MAX, "the domain of a signature")?,
            result: self.value(AuthResult::of_number, "a result of DKIM")?,
        })
    }

    fn dmarc(&mut self) -> Result<Dmarc, FactsError> {
        Ok(Dmarc {
            domain: self.text(DOMAIN_OCTETS_MAX, "the domain of DMARC")?,
            result: self.value(AuthResult::of_number, "a result of DMARC")?,
            policy: self.value(DmarcPolicy::of_number, "a policy of DMARC")?,
            spf_aligned: self.flag("whether SPF is aligned")?,
            dkim_aligned: self.flag("whether DKIM is aligned")?,
        })
    }

    fn arc(&mut self) -> Result<Arc, FactsError> {
        Ok(Arc {
            result: self.value(AuthResult::of_number, "a result of ARC")?,
            sealer: self.text(DOMAIN_OCTETS_MAX, "a sealer of ARC")?,
            dmarc_passed: self.flag("whether the sealer saw DMARC pass")?,
        })
    }

    fn listing(&mut self) -> Result<Listing, FactsError> {
        const WANTED: &str = "the weight of a list";
        let list = self.word("the name of a list")?;
        let weight = i16::from_le_bytes(self.array(WANTED)?);
        match (-WEIGHT_MAX..=WEIGHT_MAX).contains(&weight) {
            true => Ok(Listing { list, weight }),
            false => self.wrong(WANTED),
        }
    }

    fn author(&mut self) -> Result<Author, FactsError> {
        let address = |from: &mut Self| from.text(ADDRESS_OCTETS_MAX, "an address of an author");
        Ok(Author {
            fields: self.u32("a number of From fields")?,
            total: self.u32("a number of authors")?,
            addresses: self.list(AUTHORS_MAX, address)?,
        })
    }

    fn structure(&mut self) -> Result<Structure, FactsError> {
        let attachment = |from: &mut Self| {
            Ok(Attachment {
                name: from.text(NAME_OCTETS_MAX, "the name of an attachment")?,
                media_type: from.text(NAME_OCTETS_MAX, "a media type")?,
            })
        };
        Ok(Structure {
            depth: self.u32("the depth of parts")?,
            parts: self.u32("a number of parts")?,
            header_octets: self.array("octets of the header").map(u64::from_le_bytes)?,
            total: self.u32("a number of attachments")?,
            attachments: self.list(ATTACHMENTS_MAX, attachment)?,
        })
    }

    fn filter(&mut self) -> Result<Filter, FactsError> {
        Ok(Filter {
            name: self.word("the name of a filter")?,
            action: self.number(verdict_of_number, "the action of a filter")?,
            symbols: self.list(SYMBOLS_MAX, Self::symbol)?,
        })
    }

    fn symbol(&mut self) -> Result<Symbol, FactsError> {
        const WANTED: &str = "the score of a symbol";
        let name = self.word("the name of a symbol")?;
        let hundredths = i64::from(i32::from_le_bytes(self.array(WANTED)?));
        match hundredths.abs() <= SYMBOL_SCORE_MAX.as_hundredths() {
            true => Ok(Symbol {
                name,
                score: Score::from_hundredths(hundredths),
            }),
            false => self.wrong(WANTED),
        }
    }

    fn virus(&mut self) -> Result<Virus, FactsError> {
        Ok(Virus {
            filter: self.word("the name of a filter")?,
            name: self.text(NAME_OCTETS_MAX, "the name of a virus")?,
        })
    }
}

#[cfg(test)]
mod tests;
