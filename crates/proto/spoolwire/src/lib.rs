//! The spool protocol, version 5: frames between a gateway and its spool nodes.
//!
//! A node keeps queues of records; the gateway that owns a group of queues changes the group by
//! numbered transactions in pipelined frames, and gets a cumulative acknowledgement for each block
//! read by the node. This crate encodes and decodes frames, keeps no state and reserves no memory for
//! an unchecked length. The engines of both sides are in `vere-spool` and `vere-owner`; the layouts are drawn in
//! `docs/internals/spoolwire.md`.
//!
//! Reading order: [`Header`] and [`Frame`] (the common parts of all frames), [`Greeting`], [`Hello`]
//! and [`Welcome`] (the beginning of a connection), [`Mutation`] (changes of queues), [`Request`] and
//! [`Answer`] (queries), [`encode_reset`] and [`encode_kept_create`] (rebuilding a group),
//! [`Charter`] and [`QueueCharter`] (the rights in a group and in a queue), [`Batch`] and [`Block`] (what an owner
//! submits and reads).
//!
//! Not covered: encryption, which is the task of TLS around the connection.
//!
//! ```
//! use vere_spoolwire::{Change, Frame, Mutation, QueueId, RecordId, Txn, encode_change};
//!
//! let mut octets = Vec::new();
//! let change = Change::Put { queue: QueueId(3), id: RecordId(7), meta: b"m", body: Some(b"hello") };
//! encode_change(&mut octets, Txn(1), &change, 0);
//! let frame = Frame::read(&octets, 1024)?.expect("a whole frame");
//! assert!(matches!(Mutation::decode(&frame)?, Mutation::Change(read) if read == change));
//! # Ok::<(), vere_spoolwire::WireError>(())
//! ```
#![cfg_attr(
    not(test),
    warn(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation
    )
)]

mod answer;
mod batch;
mod charter;
mod frame;
mod handshake;
mod kept;
mod logged;
mod mutation;
mod plain;
mod refusal;
mod request;
mod types;

#[cfg(test)]
mod tests;

pub use answer::{ANSWER_FRAME_MAX, Answer, BLOCK_FRAME_LEN, BlockHead, encode_ack};
pub use batch::{Batch, Block, Committed, Operation, Record, SpoolError};
pub use charter::{
    ACCOUNT_MAX, Charter, DEFAULT_ACCOUNT, GRANTS_MAX, Grants, KeptGrants, QueueCharter, Right,
    decode_chartered, encode_chartered, read_chartered, write_chartered,
};
pub use frame::{
    CHECKSUM_LEN, FLAG_DAMAGED, FLAG_DROP, FLAG_END, FLAG_FULL, FLAG_INCOMPLETE, FLAG_KEPT,
    FLAG_LOG, FLAG_NEW_META, FLAG_NO_LOG, FLAG_SAME_BODY, FLAG_SYNCED, FLAG_SYNCING, FLAG_UNKNOWN,
    FRAME_MIN, Frame, HEADER_LEN, Header, ITEM_HEADER_LEN, Op, WireError,
};
pub use handshake::{
    Greeting, HANDSHAKE_FRAME_MAX, Hello, Role, SECRET_LEN, SharedSecret, VERSION,
    WELCOME_FRAME_MAX, Welcome,
};
pub use kept::{decode_reset, encode_kept_create, encode_reset};
pub use logged::{REFUSED_FRAME_LEN, decode_owned, decode_refused, encode_owned, encode_refused};
pub use mutation::{
    BATCH_HEAD_LEN, Change, Changes, Mutation, TARGET_LEN, change_len, encode_batch, encode_change,
    encode_create, encode_purge,
};
pub use plain::{Plain, PlainPut};
pub use refusal::{CloseReason, NodeRefusal};
pub use request::{REQUEST_FRAME_MAX, Request};
pub use types::{
    META_MAX, NAME_MAX, NodeStat, QUEUES_MAX, QueueLimits, QueueStat, WINDOW_TXNS_MAX,
};
pub use vere_units::{Incarnation, QueueId, RecordId, Seq, Txn};
