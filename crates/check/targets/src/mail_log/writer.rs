//! Writes a log as a mail store does, and as none should.

use std::collections::BTreeMap;

use vere_faults::MemoryMeta;
use vere_store::{
    Flags, InternalDate, MailboxId, OperationId, Prepared, QuotaLimit, RecipientFields, Store,
    Target,
};

use crate::choice::choice;
use crate::disk::Disk;

pub(super) const LOG_ID: u64 = 0x1122_3344_5566_7788;
/// The account of the mailbox.
pub(super) const ACCOUNT: &str = "ann@demo.test";
/// The mailbox: the position of the record that creates the mailbox.
pub(super) const MAILBOX: u64 = 64;

const SEGMENT_HEAD: usize = 64;
const FIRST_POSITION: u64 = 64;
/// Records of a rewritten segment between two entries of the index.
const INDEXED: usize = 8;
const BODY: u8 = 1;
const BATCH: u8 = 2;

/// The file of a segment.
struct Segment {
    first: u64,
    octets: Vec<u8>,
    /// The places of the records: offset and octets.
    records: Vec<(usize, usize)>,
}

/// A partition as the batches say.
#[derive(Default)]
struct Partition {
    version: u64,
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// The log in the making.
pub(super) struct Writer {
    segments: Vec<Segment>,
    position: u64,
    synced: u64,
    account: Partition,
    mailbox: Partition,
    messages: u32,
}

impl Writer {
    pub(super) fn new() -> Self {
        let mut writer = Self {
            segments: Vec::new(),
            position: FIRST_POSITION,
            synced: FIRST_POSITION,
            account: Partition::default(),
            mailbox: Partition::default(),
            messages: 0,
        };
        writer.segment();
        writer
    }

    pub(super) fn run(mut self, mut input: &[u8]) -> Disk {
        while let Some((instruction, rest)) = input.split_first() {
            input = rest;
            self.instruction(*instruction, &mut input);
        }
        let disk = Disk::default();
        for segment in self.segments {
            disk.put(&format!("{:016x}.log", segment.first), segment.octets);
        }
        disk
    }

    fn instruction(&mut self, instruction: u8, input: &mut &[u8]) {
        match instruction {
            0 => self.segment(),
            1 => self.message(),
            2 => self.create(),
            3 => self.synced = self.position,
            // A row of any kind, in a batch that is right.
            4 => {
                let of_account = number(input).is_multiple_of(2);
                let row = (counted(input).to_vec(), counted(input).to_vec());
                self.batch(of_account, vec![row]);
            }
            5 => {
                let kind = number(input);
                let payload = counted(input);
                self.record(kind, payload, (0, 0, 0));
            }
            6 => self.flags(),
            7 => self.flip(input),
            8 => self.snapshot(number(input).is_multiple_of(2)),
            9 => {
                let count = usize::from(number(input));
                if let Some(last) = self.segments.last_mut() {
                    let left = last.octets.len().saturating_sub(count);
                    last.octets.truncate(left);
                }
            }
            10 => {
                let more = u32::from(number(input)) << (number(input) % 25);
                self.record(BATCH, b"", (more, 0, 0));
            }
            11 => self.again(input),
            12 => {
                let which = usize::from(number(input));
                if self.segments.len() > 1 {
                    self.segments.remove(which % self.segments.len());
                }
            }
            // A record with a wrong position, or a wrong synced position.
            13 => {
                let (skew, boast) = (u64::from(number(input)), u64::from(number(input)));
                self.record(BODY, b"", (0, skew, boast * boast));
            }
            14 => self.position += u64::from(number(input)),
            _ => {}
        }
    }

    fn segment(&mut self) {
        let first = self.position;
        // Of two segments with the same name the later is kept.
        self.segments.retain(|segment| segment.first != first);
        self.segments.push(Segment {
            first,
            octets: segment_head(first, 0),
            records: Vec::new(),
        });
    }

    /// A record; `more` octets are announced and missing, the position is wrong by `skew`, and the synced
    /// position is too high by `boast` octets.
    fn record(&mut self, kind: u8, payload: &[u8], (more, skew, boast): (u32, u64, u64)) -> u64 {
        let position = self.position;
        let mut octets = Vec::new();
        octets.extend_from_slice(&LOG_ID.to_le_bytes());
        octets.extend_from_slice(&(position + skew).to_le_bytes());
        octets.extend_from_slice(&(self.synced + boast).to_le_bytes());
        octets.extend_from_slice(&[kind, 0, 0, 0]);
        octets.extend_from_slice(&(payload.len() as u32).saturating_add(more).to_le_bytes());
        octets.extend_from_slice(&vere_checksum::crc32(payload).to_le_bytes());
        octets.extend_from_slice(&vere_checksum::crc32(&octets).to_le_bytes());
        octets.extend_from_slice(payload);
        if let Some(last) = self.segments.last_mut() {
            last.records.push((last.octets.len(), octets.len()));
            last.octets.extend_from_slice(&octets);
        }
        self.position += octets.len() as u64;
        position
    }

    fn create(&mut self) {
        let head = self.head(1);
        self.batch(false, vec![(vec![1], ACCOUNT.into()), (vec![2], head)]);
        let inbox = [&[1, 0][..], &MAILBOX.to_le_bytes()].concat();
        let list = vec![
            (vec![1], vec![1, 7, 0, 0, 0]),
            (b"\x02INBOX".to_vec(), inbox),
        ];
        self.batch(true, list);
    }

    /// The counters of the mailbox: all messages unseen.
    fn head(&self, mod_seq: u64) -> Vec<u8> {
        let mut head = vec![1];
        let (messages, octets) = (self.messages, u64::from(self.messages) * 100);
        head.extend_from_slice(&7_u32.to_le_bytes());
        head.extend_from_slice(&(messages + 1).to_le_bytes());
        head.extend_from_slice(&mod_seq.to_le_bytes());
        head.extend_from_slice(&1_u64.to_le_bytes());
        for number in [messages, messages, 0, 1] {
            head.extend_from_slice(&number.to_le_bytes());
        }
        head.extend_from_slice(&octets.to_le_bytes());
        head.extend_from_slice(&[0; 20]);
        head
    }

    fn message(&mut self) {
        let text = message(self.messages);
        let mut body = vec![1, 0, 0, 0];
        let (header, rest) = text.split_at(vere_mime::header_len(&text));
        for part in [b"".as_slice(), header, rest] {
            body.extend_from_slice(&(part.len() as u32).to_le_bytes());
        }
        for part in [b"".as_slice(), header] {
            body.extend_from_slice(&vere_checksum::crc32(part).to_le_bytes());
        }
        body.extend_from_slice(blake3::hash(&text).as_bytes());
        body.extend_from_slice(&text);
        let body = self.record(BODY, &body, (0, 0, 0));
        self.messages += 1;
        self.change(0, body);
    }

    /// Marks the message that came last as answered, over and over.
    fn flags(&mut self) {
        let key = [&[4][..], &self.messages.to_be_bytes()].concat();
        let row = self.mailbox.rows.get(&key).cloned().unwrap_or_default();
        // Behind version, flags, mod-sequence and keywords of an octet each.
        let body = row.get(18..).and_then(|rest| Some(variable(rest)?.0));
        self.change(2, body.unwrap_or(FIRST_POSITION));
    }

    /// A batch that puts the row of the last message, whose body lies at `body`.
    fn change(&mut self, flags: u8, body: u64) {
        let mod_seq = 2 + u64::from(self.messages % 100);
        let mut row = vec![1, flags, mod_seq as u8, 0];
        row.extend_from_slice(&[0; 10]);
        row.extend_from_slice(&100_u32.to_le_bytes());
        let mut left = body;
        while left >= 0x80 {
            row.push(left as u8 | 0x80);
            left >>= 7;
        }
        row.push(left as u8);
        row.extend_from_slice(&1_u64.to_le_bytes());
        let key = [&[4][..], &self.messages.to_be_bytes()].concat();
        let head = self.head(mod_seq);
        self.batch(false, vec![(key, row), (vec![2], head)]);
    }

    /// A batch that follows the batch before.
    fn batch(&mut self, of_account: bool, rows: Vec<(Vec<u8>, Vec<u8>)>) {
        self.state(of_account).rows.extend(rows.iter().cloned());
        self.put(of_account, 0, &rows);
    }

    /// A snapshot with all rows, and the row that names its position.
    fn snapshot(&mut self, of_account: bool) {
        let own = [&[1][..], &self.position.to_le_bytes()].concat();
        let state = self.state(of_account);
        state.rows.insert(vec![9], own);
        let rows: Vec<_> = state.rows.clone().into_iter().collect();
        self.put(of_account, 1, &rows);
    }

    fn state(&mut self, of_account: bool) -> &mut Partition {
        match of_account {
            true => &mut self.account,
            false => &mut self.mailbox,
        }
    }

    fn put(&mut self, of_account: bool, flags: u8, rows: &[(Vec<u8>, Vec<u8>)]) {
        let name = match of_account {
            true => [b"a", ACCOUNT.as_bytes(), b"\0"].concat(),
            false => [&b"m"[..], &MAILBOX.to_be_bytes()].concat(),
        };
        let mut payload = vec![1, flags];
        payload.extend_from_slice(&(name.len() as u16).to_le_bytes());
        payload.extend_from_slice(&(rows.len() as u32).to_le_bytes());
        payload.extend_from_slice(&self.state(of_account).version.to_le_bytes());
        payload.extend_from_slice(&name);
        for (key, value) in rows {
            payload.extend_from_slice(&(key.len() as u16).to_le_bytes());
            payload.extend_from_slice(&(value.len() as u32).to_le_bytes());
            payload.extend_from_slice(key);
            payload.extend_from_slice(value);
        }
        let version = self.record(BATCH, &payload, (0, 0, 0));
        self.state(of_account).version = version;
    }

    /// Changes an octet of a segment.
    fn flip(&mut self, input: &mut &[u8]) {
        let which = usize::from(number(input));
        let at = usize::from(u16::from_le_bytes([number(input), number(input)]));
        let count = self.segments.len().max(1);
        let octet = self
            .segments
            .get_mut(which % count)
            .and_then(|segment| segment.octets.get_mut(at));
        if let Some(octet) = octet {
            *octet ^= 1 << (which % 8);
        }
    }

    /// Writes a segment again without the records of a mask, with an index.
    fn again(&mut self, input: &mut &[u8]) {
        let (which, mask) = (usize::from(number(input)), number(input));
        let which = which % self.segments.len().max(1);
        let next = self.segments.get(which + 1).map(|next| next.first);
        let end = next.unwrap_or(self.position);
        let Some(segment) = self.segments.get_mut(which) else {
            return;
        };
        let mut octets = segment_head(segment.first, end);
        let (mut index, mut records) = (Vec::new(), Vec::new());
        let stay = segment.records.iter().enumerate();
        let stay = stay.filter(|(at, _)| mask >> (at % 8) & 1 == 0);
        for (_, (offset, len)) in stay {
            let Some(record) = segment.octets.get(*offset..offset + len) else {
                continue;
            };
            if records.len() % INDEXED == 0 {
                index.extend_from_slice(&record[8..16]);
                index.extend_from_slice(&(octets.len() as u64).to_le_bytes());
            }
            records.push((octets.len(), *len));
            octets.extend_from_slice(record);
        }
        let mut trailer = Vec::new();
        trailer.extend_from_slice(&(octets.len() as u64).to_le_bytes());
        trailer.extend_from_slice(&((index.len() / 16) as u64).to_le_bytes());
        trailer.extend_from_slice(&vere_checksum::crc32(&index).to_le_bytes());
        trailer.extend_from_slice(&vere_checksum::crc32(&trailer).to_le_bytes());
        octets.extend_from_slice(&index);
        octets.extend_from_slice(&trailer);
        (segment.octets, segment.records) = (octets, records);
    }
}

fn segment_head(first: u64, end: u64) -> Vec<u8> {
    let mut octets = b"VERESTOR\x01\0\0\0\0\0\0\0".to_vec();
    for field in [LOG_ID, first, end] {
        octets.extend_from_slice(&field.to_le_bytes());
    }
    octets.resize(SEGMENT_HEAD - 4, 0);
    octets.extend_from_slice(&vere_checksum::crc32(&octets).to_le_bytes());
    octets
}

/// A message of a hundred octets.
fn message(number: u32) -> Vec<u8> {
    let mut text = format!("Subject: {number}\r\n\r\n").into_bytes();
    text.resize(100, b'x');
    text
}

fn variable(octets: &[u8]) -> Option<(u64, &[u8])> {
    let len = octets.iter().position(|octet| octet & 0x80 == 0)? + 1;
    let (own, rest) = octets.split_at(len);
    let number = own.iter().rev().try_fold(0_u64, |number, octet| {
        Some(number.checked_mul(128)? | u64::from(octet & 0x7F))
    })?;
    Some((number, rest))
}

/// The next octet as a number.
fn number(input: &mut &[u8]) -> u8 {
    let (number, rest) = choice(input);
    *input = rest;
    number
}

/// Takes as many octets as the first octet says, or all remaining octets.
fn counted<'a>(input: &mut &'a [u8]) -> &'a [u8] {
    let count = usize::from(number(input)).min(input.len());
    let (text, rest) = input.split_at(count);
    *input = rest;
    text
}

/// Delivers a message, if the store accepts the message.
pub(super) fn deliver(store: &mut Store<Disk, MemoryMeta>, mailbox: MailboxId, number: u8) {
    let target = Target {
        mailbox,
        flags: Flags::default(),
        internal_date: InternalDate {
            seconds: 0,
            zone_minutes: 0,
        },
        fields: RecipientFields::default(),
        quota: QuotaLimit::default(),
    };
    if let Ok(message) = Prepared::new(&message(number.into()), b"", &[]) {
        let _ = store.deliver(&message, &[target], OperationId([number; 16]));
    }
}
