//! The octets of a volume: mails with their sealed frames, key slots, commit records, indexes, facts, subjects, encodings.
//!
//! Every value of this module is a pure function of its arguments: salts, nonces and times come from the caller. Octets from
//! an account are hostile: bounds are checked before memory is taken, and each refusal names what was expected and found.
//!
//! A [`Builder`] takes the frames of a mail and seals all of them at the end; [`open`] verifies a whole mail, [`open_frame`] a
//! single frame that was read along with the head of its mail.
#![cfg_attr(
    not(test),
    warn(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation
    )
)]

mod bounds;
mod codec;
pub mod commit;
mod encoding;
mod error;
mod frames;
mod head;
mod ids;
mod index;
mod keys;
mod locator;
pub mod mail;
pub mod page;
mod rows;
pub mod seal;
pub mod slot;
pub mod subject;
pub mod volume;
pub(crate) mod wire;

pub use bounds::{
    ANCESTORS_MAX, CONTENT_OCTETS_MAX, EPOCHS_MAX, FRAME_OCTETS_MAX, FRAMES_MAX, KEY_OCTETS_MAX,
    LABEL_OCTETS_MAX, MAIL_OCTETS_MAX, MERGED_MAX, ROW_OCTETS_MAX, ROWS_MAX, VALUE_OCTETS_MAX,
};
pub use codec::Codec;
pub use encoding::{Encoding, Span};
pub use error::FormatError;
pub use frames::{
    Builder, FRAME_OVERHEAD, Opened, Place, Sealed, open, open_frame, open_frame_in_place,
};
pub use head::{HEAD_OCTETS, Head, Kind};
pub use ids::{ChunkId, MailId, PackNumber, VolumeId};
pub use index::{Index, IndexEntry};
pub use keys::{Keys, VolumeKey};
pub use locator::{Locator, MailCopy};
pub use subject::Subject;

#[cfg(test)]
mod tests;
