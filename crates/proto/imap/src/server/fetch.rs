//! FETCH (RFC 9051 section 6.4.5, RFC 7162 sections 3.1.4 and 3.2.6).

use std::sync::Arc;

use bytes::Bytes;

use crate::ModSeq;
use crate::command::{FetchCommand, FetchItem, StoreAction};
use crate::flags::{Flag, SystemFlag};
use crate::set::UidSet;

use super::answer::{Changes, FlagsChanged, Messages, Row};
use super::asked;
use super::output::SHARED_OCTETS_MIN;
use super::question::{FetchQuery, Need, PieceQuery, Question, StoreQuery};
use super::refusal::Refusal;
use super::row::{self, RowWork, RowWriter, Written};
use super::sync::vanished;
use super::{About, Phase, Server, Session};

/// A FETCH under way.
#[derive(Debug)]
pub(super) struct FetchWork {
    tag: String,
    uid: bool,
    items: Vec<FetchItem>,
    /// The labels of the items.
    labels: Vec<String>,
    /// The UIDs that the host has not given yet.
    uids: UidSet,
    /// Rows from the host that are not written yet; the octets of the first row may be incomplete.
    rows: std::vec::IntoIter<Row>,
    row: Option<RowWork>,
    /// The requested UIDs, existing or not.
    named: UidSet,
    need: Need,
    fields: Option<Arc<[String]>>,
    /// Whether the content of a row is the section that is asked for.
    is_cut: bool,
    changed_since: Option<ModSeq>,
    /// Messages that get `\Seen` by this FETCH.
    seen: UidSet,
    /// How many are still to come.
    missing: u32,
    /// Number of damaged messages, and of messages that cannot be read now.
    damaged: u32,
    unavailable: u32,
    unknown_encoding: bool,
}

impl FetchWork {
    /// Octets of memory of unwritten rows.
    pub(super) fn memory(&self) -> usize {
        let rows = self.rows.as_slice().iter().map(Row::memory);
        let row = self.row.as_ref().map_or(0, RowWork::memory);
        rows.fold(row, usize::saturating_add)
    }
}

/// Octets of a response beside the parsed structure and the content of the message.
const ROW_OCTETS: usize = 128;

/// Octets of the expected responses, in the common case; long content is not copied into the output.
fn expected(rows: &[Row]) -> usize {
    let each = rows.iter().map(|row| {
        let copied = row.content.len().min(SHARED_OCTETS_MIN);
        ROW_OCTETS
            .saturating_add(row.parsed.len())
            .saturating_add(copied)
    });
    each.fold(0, usize::saturating_add)
}

impl Server {
    pub(super) fn fetch(&mut self, tag: String, command: FetchCommand) {
        if command.vanished && !self.enabled.qresync {
            return self.bad(Some(&tag), "enable QRESYNC first");
        }
        // To ask for the numbers of changes is to want them (RFC 7162 section 3.1).
        if command.changed_since.is_some() || command.items.contains(&FetchItem::ModSeq) {
            self.want_mod_seqs();
        }
        let Some(selected) = self.selected() else {
            return;
        };
        let Some(uids) = selected.resolve(&command.set, command.uid) else {
            return self.bad(Some(&tag), "there is no message of this number");
        };
        let named = command.set.resolve(selected.view.last());
        let mut items = command.items;
        if command.uid && !items.contains(&FetchItem::Uid) {
            items.insert(0, FetchItem::Uid);
        }
        if command.changed_since.is_some() && !items.contains(&FetchItem::ModSeq) {
            items.push(FetchItem::ModSeq);
        }
        let fields = asked::fields_alone(&items);
        let with_content = items
            .iter()
            .filter(|item| asked::need(item) != Need::Nothing);
        let work = FetchWork {
            tag,
            uid: command.uid,
            need: items.iter().map(asked::need).max().unwrap_or_default(),
            is_cut: fields.is_some() && with_content.count() == 1,
            fields,
            labels: items.iter().map(asked::label).collect(),
            items,
            missing: uids.len(),
            uids,
            rows: Vec::new().into_iter(),
            row: None,
            named,
            changed_since: command.changed_since,
            seen: UidSet::new(),
            unknown_encoding: false,
            damaged: 0,
            unavailable: 0,
        };
        if command.vanished {
            self.ask_vanished(work);
        } else {
            self.fetch_seen(work);
        }
    }

    fn ask_vanished(&mut self, work: FetchWork) {
        let Some(selected) = self.selected() else {
            return;
        };
        let question = Question::Changes {
            mailbox: selected.key,
            since: work.changed_since.unwrap_or_default(),
            uid_next: selected.uid_next,
            // A query for old changes must not claim `\Recent`.
            read_only: true,
        };
        self.ask(question, About::Vanished(work));
    }

    pub(super) fn vanished_answered(&mut self, work: FetchWork, result: Result<Changes, Refusal>) {
        let changes = match result {
            Ok(changes) => changes,
            Err(refusal) => return self.no(work.tag, refusal),
        };
        let Session::Selected {
            mailbox: selected, ..
        } = &mut self.session
        else {
            return;
        };
        selected.shown(changes.mod_seq);
        let known = UidSet::range(1, selected.uid_next.saturating_sub(1)).intersection(&work.named);
        // Messages still in the session's view are reported later, once, without EARLIER.
        let gone = vanished(changes.gone, &known).difference(&selected.view.uids());
        if !gone.is_empty() {
            self.output.line(&format!("* VANISHED (EARLIER) {gone}"));
        }
        self.fetch_seen(work);
    }

    /// Marks as seen what is fetched to be seen, and then fetches.
    fn fetch_seen(&mut self, work: FetchWork) {
        let Some(selected) = self.selected() else {
            return;
        };
        if selected.read_only
            || work.uids.is_empty()
            || !work.items.iter().any(FetchItem::sets_seen)
        {
            return self.fetch_rows(work);
        }
        let query = StoreQuery {
            mailbox: selected.key,
            uids: work.uids.clone(),
            action: StoreAction::Add,
            flags: vec![Flag::System(SystemFlag::Seen)],
            unchanged_since: None,
        };
        self.ask(Question::Store(query), About::Seen(work));
    }

    pub(super) fn seen_answered(
        &mut self,
        mut work: FetchWork,
        result: Result<FlagsChanged, Refusal>,
    ) {
        match result {
            Ok(done) => work.seen = done.changed,
            Err(refusal) => return self.no(work.tag, refusal),
        }
        if let Some(selected) = self.selected() {
            selected.dirty |= !work.seen.is_empty();
        }
        self.fetch_rows(work);
    }

    fn fetch_rows(&mut self, work: FetchWork) {
        let octets_max = self.config.limits.fetch_octets_max;
        let Some(selected) = self.selected() else {
            return;
        };
        if work.uids.is_empty() {
            return self.fetched(work);
        }
        let query = FetchQuery {
            mailbox: selected.key,
            uids: work.uids.clone(),
            changed_since: work.changed_since,
            need: work.need,
            parsed: work.items.iter().any(asked::needs_parsed),
            fields: work.fields.clone(),
            octets_max,
            large_from: work
                .items
                .iter()
                .all(asked::lies_in_message)
                .then_some(octets_max),
        };
        self.ask(Question::Fetch(query), About::Fetch(work));
    }

    pub(super) fn fetch_answered(
        &mut self,
        mut work: FetchWork,
        result: Result<Messages, Refusal>,
    ) {
        let messages = match result {
            Ok(messages) => messages,
            Err(refusal) => return self.no(work.tag, refusal),
        };
        let expected = expected(&messages.rows).min(self.config.limits.output_octets_max);
        self.output.reserve(expected);
        work.damaged = work.damaged.saturating_add(messages.damaged);
        work.unavailable = work.unavailable.saturating_add(messages.unavailable);
        work.uids = messages.rest;
        work.rows = messages.rows.into_iter();
        self.write_rows(work);
    }

    /// Goes on where the client had to read first.
    pub(super) fn write_on(&mut self) {
        if self.output.len() >= self.config.limits.output_octets_max {
            return;
        }
        match std::mem::replace(&mut self.phase, Phase::Command) {
            Phase::Writing(work) => {
                let expected = expected(work.rows.as_slice());
                let most = self.config.limits.output_octets_max;
                self.output.reserve(expected.min(most));
                self.write_rows(*work);
                self.end_if_shutting_down();
            }
            other => self.phase = other,
        }
    }

    /// Writes what the host gave until as much waits as may; then the rest is kept, and not made before.
    fn write_rows(&mut self, mut work: FetchWork) {
        let octets_max = self.config.limits.output_octets_max;
        while let Some(mut row) = work.row.take().or_else(|| self.next_row(&mut work)) {
            let Session::Selected { mailbox, .. } = &mut self.session else {
                return;
            };
            let mut writer = RowWriter {
                output: &mut self.output,
                selected: mailbox,
                enabled: self.enabled,
                is_cut: work.is_cut,
                is_header: work.need == Need::Header && work.fields.is_none(),
                work: &mut row,
                unknown_encoding: false,
            };
            let written = writer.write(&work.items, &work.labels, octets_max);
            work.unknown_encoding |= writer.unknown_encoding;
            match written {
                Written::Whole => {}
                Written::Full => {
                    work.row = Some(row);
                    self.phase = Phase::Writing(Box::new(work));
                    return;
                }
                Written::UntilPiece => {
                    work.row = Some(row);
                    return self.ask_piece(work);
                }
            }
        }
        self.fetch_rows(work);
    }

    /// Asks for the next octets of the literal that is begun.
    fn ask_piece(&mut self, work: FetchWork) {
        let octets_max = self.config.limits.piece_octets_max;
        let Some(selected) = self.selected() else {
            return;
        };
        let Some((uid, piece)) = work.row.as_ref().map(|row| row.next_piece(octets_max)) else {
            return self.write_rows(work);
        };
        let query = PieceQuery {
            mailbox: selected.key,
            uid,
            first: piece.start,
            octets: piece.len(),
        };
        self.ask(Question::Piece(query), About::Piece(work));
    }

    pub(super) fn piece_answered(&mut self, mut work: FetchWork, result: Result<Bytes, Refusal>) {
        let octets_max = self.config.limits.piece_octets_max;
        let wanted = work.row.as_mut().zip(result.ok()).filter(|(row, octets)| {
            let (_, piece) = row.next_piece(octets_max);
            octets.len() == piece.len()
        });
        let Some((row, octets)) = wanted else {
            // The client was told how long the literal is: no response can be told from its octets any more.
            self.output.discard();
            return self.close();
        };
        let more = row.piece_came(octets.len());
        self.output.content(row::without_nul(octets));
        match more {
            true => self.ask_piece(work),
            false => self.write_rows(work),
        }
    }

    /// The next row of a message in the client's view.
    fn next_row(&mut self, work: &mut FetchWork) -> Option<RowWork> {
        let selected = self.selected()?;
        let row = work.rows.find_map(|row| {
            let number = selected.view.number(row.flags.uid)?;
            let seen = work.seen.contains(row.flags.uid);
            Some(RowWork::new(row, number, seen))
        })?;
        work.missing = work.missing.saturating_sub(1);
        Some(row)
    }

    fn fetched(&mut self, work: FetchWork) {
        let text = if work.damaged > 0 {
            // A client that believed such messages expunged would delete good copies.
            "NO [CORRUPTION] some of them are damaged here, the administrator can tell more"
        } else if work.unavailable > 0 {
            // A retry may help here, but not with damaged messages (RFC 5530).
            "NO [UNAVAILABLE] some of them cannot be read now"
        } else if work.unknown_encoding {
            "NO [UNKNOWN-CTE] a part is encoded in a way that is not known"
        } else if work.missing > 0 && work.changed_since.is_none() {
            "OK [EXPUNGEISSUED] some of them are gone"
        } else {
            "OK done"
        };
        if work.uid {
            self.complete(work.tag, text);
        } else {
            self.complete_numbered(work.tag, text);
        }
    }
}
