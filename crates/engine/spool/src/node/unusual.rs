//! Uncommon frames: reads, orders about the group, and copies from another node. Also the use of
//! reserved memory.

use vere_spoolwire::{
    Change, CloseReason, FLAG_KEPT, Frame, Mutation, Op, Request, Seq, Txn, WireError,
    decode_reset, encode_reset,
};

use super::block::{Event, Terms, reason};
use super::cursor::Cursor;
use super::memory::Memory;
use super::place::RecordPlace;
use super::store::Store;

/// Decodes a frame that is no mutation.
pub(super) fn other(frame: &Frame<'_>) -> Result<Event, CloseReason> {
    if frame.header.op == Op::Reset {
        return decode_reset(frame).map(Event::Reset).map_err(reason);
    }
    let request = Request::decode(frame).map_err(reason)?;
    Ok(Event::Request(Seq(frame.header.number), request))
}

/// Keeps a frame for the log in place of a RESET, or of a COMPLETE with the transaction as its
/// number.
pub(super) fn keep_other(
    event: Event,
    store: &Store,
    terms: &Terms,
    octets: &mut [u8],
    cursor: &mut Cursor,
) {
    let mut frame = Vec::new();
    match event {
        Event::Reset(txn) if terms.logged => encode_reset(&mut frame, txn),
        Event::Request(_, Request::Complete) if terms.completes && store.syncing => {
            Request::Complete.encode(&mut frame, Seq(store.processed.0));
        }
        _ => {}
    }
    // No longer than the received frame.
    octets[cursor.keep..cursor.keep + frame.len()].copy_from_slice(&frame);
    cursor.keep += frame.len();
}

/// Executes a copy from another node; a complete group accepts no copies. `error`: the result of
/// decoding the frame as an ordinary mutation.
#[cold]
pub(super) fn take_over(
    store: &mut Store,
    memory: &mut Memory,
    terms: &Terms,
    frame: &Frame<'_>,
    home: RecordPlace,
    error: WireError,
) -> Result<(), CloseReason> {
    let header = frame.header;
    let kept = header.flags & FLAG_KEPT != 0 && matches!(header.op, Op::Create | Op::Put);
    if !store.syncing || !kept {
        return Err(reason(error));
    }
    let mutation = Mutation::decode_logged(frame).map_err(reason)?;
    if Txn(header.number) != store.processed {
        return Err(CloseReason::TxnGap);
    }
    store.check_kept(&mutation, terms.disk_full || memory.is_full(0))?;
    store.execute(memory, &mutation, home, true);
    Ok(())
}

/// Whether a mutation may use reserved memory: a BATCH that ends or moves a record.
#[cold]
pub(super) fn has_reserve(memory: &Memory, terms: &Terms, mutation: &Mutation<'_>) -> bool {
    let Mutation::Batch(mut changes) = *mutation else {
        return false;
    };
    let ends = |(_, change)| matches!(change, Change::Delete { .. } | Change::Move { .. });
    !terms.disk_full && !memory.is_exhausted() && changes.any(ends)
}
