//! Making a segment's octets.

use vere_mime::Zone;

use crate::codec::{put, put_postings, zigzag};
use crate::document::Document;
use crate::format::{
    BLOCK, GROUP, HEAD, MAGIC, MARK, Origin, SECTIONS, SUMMARIES, VERSION, ZONE_SECTIONS,
};
use crate::summary::SummaryWriter;

/// The sections of a zone in the making; runs come sorted.
#[derive(Debug, Default)]
pub(crate) struct ZoneWriter {
    runs: Vec<u8>,
    groups: Vec<u8>,
    postings: Vec<u8>,
    long: Vec<u8>,
    crossed: Vec<u8>,
    places: Vec<u8>,
    count: usize,
    next_long: u32,
}

impl ZoneWriter {
    pub(crate) fn run(&mut self, run: &[u8], ordinals: &[u32]) {
        if self.runs.is_empty() {
            self.runs.push(MARK);
        }
        if self.count.is_multiple_of(GROUP) {
            self.groups
                .extend_from_slice(&(self.runs.len() as u32).to_le_bytes());
            self.groups
                .extend_from_slice(&(self.postings.len() as u32).to_le_bytes());
        }
        self.count += 1;
        self.runs.extend_from_slice(run);
        self.runs.push(MARK);
        put_postings(&mut self.postings, ordinals);
    }

    pub(crate) fn long(&mut self, ordinal: u32, signature: &[u8]) {
        put(&mut self.long, u64::from(ordinal - self.next_long));
        put(&mut self.long, signature.len() as u64);
        self.long.extend_from_slice(signature);
        self.next_long = ordinal + 1;
    }

    /// Takes the signature of the crossings of the next message, which may be empty.
    pub(crate) fn crossed(&mut self, signature: &[u8]) {
        self.crossed.extend_from_slice(signature);
        self.places
            .extend_from_slice(&(self.crossed.len() as u32).to_le_bytes());
    }

    /// The sections of the zone, in the order of their numbers.
    fn sections(mut self) -> [Vec<u8>; ZONE_SECTIONS] {
        if self.crossed.is_empty() {
            self.places.clear();
        }
        let Self {
            runs, groups, long, ..
        } = self;
        [runs, groups, long, self.postings, self.places, self.crossed]
    }
}

fn documents(documents: &[Document]) -> Vec<u8> {
    let mut out = Vec::new();
    let (mut uid, mut body) = (0, 0_u64);
    for document in documents {
        put(&mut out, u64::from(document.uid - uid));
        put(&mut out, zigzag(document.body.wrapping_sub(body) as i64));
        put(
            &mut out,
            document.sent.map_or(0, |day| zigzag(day).saturating_add(1)),
        );
        (uid, body) = (document.uid, document.body);
    }
    out
}

/// Sections by their place in the file: small sections needed first come first, so that the first
/// search of an uncached file finds the sections within the read that opened the file.
fn order() -> Vec<usize> {
    let large = |zone: &Zone| matches!(zone, Zone::Body | Zone::Header);
    let (large, small): (Vec<Zone>, Vec<Zone>) = Zone::ALL.into_iter().partition(large);
    let of_zone = |zone: Zone| {
        let first = 1 + zone as usize * ZONE_SECTIONS;
        first..first + ZONE_SECTIONS
    };
    let zones = small.into_iter().chain(large).flat_map(of_zone);
    std::iter::once(0)
        .chain(zones)
        .chain(SUMMARIES..SECTIONS)
        .collect()
}

/// The checksums of the blocks formed by the sections.
fn sums<'a>(sections: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut sums = Vec::new();
    let (mut hasher, mut room) = (vere_checksum::Crc32::default(), BLOCK);
    for mut rest in sections {
        while !rest.is_empty() {
            let (now, later) = rest.split_at(room.min(rest.len()));
            hasher.update(now);
            room -= now.len();
            rest = later;
            if room == 0 {
                sums.extend_from_slice(&std::mem::take(&mut hasher).finish().to_le_bytes());
                room = BLOCK;
            }
        }
    }
    if room < BLOCK {
        sums.extend_from_slice(&hasher.finish().to_le_bytes());
    }
    sums
}

/// Puts a segment together; `zones` has one for each of [`Zone::ALL`].
pub(crate) fn segment(
    owner: Origin,
    of: &[Document],
    zones: Vec<ZoneWriter>,
    summaries: SummaryWriter,
) -> Vec<u8> {
    let mut sections = vec![documents(of)];
    sections.extend(zones.into_iter().flat_map(ZoneWriter::sections));
    sections.extend(summaries.finish());
    let data: usize = sections.iter().map(Vec::len).sum();
    let mut out = Vec::with_capacity(HEAD + data + data / BLOCK * 4 + 8);
    let uid = |document: Option<&Document>| document.map_or(0, |document| document.uid);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&(of.len() as u32).to_le_bytes());
    out.extend_from_slice(&owner.log.0.to_le_bytes());
    out.extend_from_slice(&owner.mailbox.0.to_le_bytes());
    out.extend_from_slice(&uid(of.first()).to_le_bytes());
    out.extend_from_slice(&uid(of.last()).to_le_bytes());
    out.extend_from_slice(&(data as u64).to_le_bytes());
    let order = order();
    let mut starts = [0; SECTIONS];
    let mut at = 0;
    for number in &order {
        starts[*number] = at;
        at += sections[*number].len();
    }
    for (section, start) in sections.iter().zip(starts) {
        out.extend_from_slice(&(start as u64).to_le_bytes());
        out.extend_from_slice(&(section.len() as u64).to_le_bytes());
    }
    out.extend_from_slice(&vere_checksum::crc32(&out).to_le_bytes());
    let sums = sums(order.iter().map(|number| sections[*number].as_slice()));
    out.extend_from_slice(&sums);
    out.extend_from_slice(&vere_checksum::crc32(&sums).to_le_bytes());
    for number in order {
        out.extend_from_slice(&sections[number]);
    }
    out
}
