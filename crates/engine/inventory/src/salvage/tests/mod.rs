//! Salvage by pages made for each test.

mod choices;
mod pasts;
mod restores;

use std::num::NonZeroU64;
use std::sync::Arc;

use super::choice::Choice;
use super::pages::{At, Below, PageSeen};
use super::past::Past;
use crate::format::commit::{Record, RecordKind, RowChange};
use crate::format::{Index, Keys, MailId, VolumeKey};

fn keys() -> Arc<Keys> {
    Arc::new(Keys::derive(&VolumeKey([7; 32])))
}

/// A page of a mail with this number.
fn at(mail: u8, frame: u32) -> At {
    (MailId([mail; 16]), frame)
}

fn leaf(place: At, covers: u64, first: &[u8], last: &[u8]) -> PageSeen {
    PageSeen {
        at: place,
        level: 0,
        covers,
        is_last: false,
        first: first.to_vec(),
        last: last.to_vec(),
        below: Vec::new(),
        writer: 0,
        mark: None,
    }
}

/// An inner page that ends its mail.
fn inner(place: At, (level, covers): (u8, u64), below: &[(&[u8], At)]) -> PageSeen {
    PageSeen {
        level,
        is_last: true,
        first: below.first().unwrap().0.to_vec(),
        last: below.last().unwrap().0.to_vec(),
        below: below
            .iter()
            .map(|(key, at)| Below {
                key: key.to_vec(),
                at: *at,
            })
            .collect(),
        ..leaf(place, covers, b"", b"")
    }
}

fn record(generation: u64, rows: Vec<RowChange>) -> Record {
    Record {
        kind: RecordKind::Change,
        lead_epoch: 0,
        generation,
        parent: MailId::NONE,
        time: 0,
        checkpoint: None,
        merged: Vec::new(),
        ancestors: Vec::new(),
        rows,
        index: Index::default(),
    }
}

fn change(key: &[u8], value: Option<&[u8]>) -> RowChange {
    RowChange {
        key: key.to_vec(),
        value: value.map(<[u8]>::to_vec),
    }
}

/// A past state of these rows.
fn past_of(rows: &[(Vec<u8>, Vec<u8>)], is_whole: bool) -> Past {
    let choice = Choice {
        covers: NonZeroU64::MIN.get(),
        is_whole,
        ..Choice::default()
    };
    let mut past = Past::new(choice, keys());
    let rows = rows.iter().map(|(key, value)| change(key, Some(value)));
    past.take_later(&record(2, rows.collect()), (2, std::cmp::Reverse(1)));
    past
}
