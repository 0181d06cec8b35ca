//! Frames that are neither of those that come all the time nor plain mutations: reads and what governs a
//! group, what is carried over from another node, and who may use memory that is set aside.

use vere_spoolwire::{
    Change, CloseReason, FLAG_KEPT, Frame, Mutation, Op, Request, Seq, Txn, WireError,
    decode_reset, encode_reset,
};

use super::block::{Event, Terms, reason};
use super::cursor::Cursor;
use super::memory::Memory;
use super::place::Place;
use super::store::Store;

/// Reads what is no mutation.
pub(super) fn other(frame: &Frame<'_>) -> Result<Event, CloseReason> {
    if frame.header.op == Op::Reset {
        return decode_reset(frame).map(Event::Reset).map_err(reason);
    }
    let request = Request::decode(frame).map_err(reason)?;
    Ok(Event::Request(Seq(frame.header.number), request))
}

/// Leaves in its place what the log has to know: RESET, and COMPLETE with a transaction as its number.
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
    // As long as what came.
    octets[cursor.keep..cursor.keep + frame.len()].copy_from_slice(&frame);
    cursor.keep += frame.len();
}

/// Does a frame that carries over what another node holds; it says nothing to a group that is whole.
/// `error`: why it is nothing else.
#[cold]
pub(super) fn take_over(
    store: &mut Store,
    memory: &mut Memory,
    terms: &Terms,
    frame: &Frame<'_>,
    home: Place,
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

/// Whether a mutation may use memory that is set aside: a BATCH that ends something.
#[cold]
pub(super) fn has_reserve(memory: &Memory, terms: &Terms, mutation: &Mutation<'_>) -> bool {
    let Mutation::Batch(mut changes) = *mutation else {
        return false;
    };
    let ends = |(_, change)| matches!(change, Change::Delete { .. } | Change::Move { .. });
    !terms.disk_full && !memory.is_exhausted() && changes.any(ends)
}
