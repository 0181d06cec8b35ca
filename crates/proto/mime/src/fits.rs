//! Checks whether a parse result is possible for a message.

use std::ops::Range;

use crate::address::Address;
use crate::envelope::Envelope;
use crate::structure::{Part, PartKind};
use crate::{ADDRESSES_MAX, DEPTH_MAX, PARTS_MAX, PREVIEW_CHARS, Parsed, REFERENCES_MAX};

impl Parsed {
    /// Whether the parse result is possible for a message of this many octets: every range lies in the
    /// message, each part lies in its parent, and no limit is exceeded. The check does not prove the
    /// result true.
    #[must_use]
    pub fn fits(&self, octets: usize) -> bool {
        let root = self.parts.first().is_some_and(|root| {
            root.parent == 0
                && root.header.start == 0
                && root.body.end == octets
                && root.envelope.is_some()
        });
        root && self.parts.len() <= PARTS_MAX
            && self.references.len() <= REFERENCES_MAX.saturating_add(1)
            && self.preview.chars().count() <= PREVIEW_CHARS
            && !self.preview.chars().any(char::is_control)
            && self.parts.iter().all(|part| is_in(part, octets))
            && self.lies_in_order()
    }

    /// Whether the parts come behind their parents, within their parents, and within the depth limit.
    fn lies_in_order(&self) -> bool {
        let mut depths: Vec<usize> = Vec::with_capacity(self.parts.len());
        for (index, part) in self.parts.iter().enumerate() {
            let depth = match (index, depths.get(part.parent), self.parts.get(part.parent)) {
                (0, ..) => 0,
                (_, Some(depth), Some(parent)) if lies_within(part, parent) => {
                    depth.saturating_add(1)
                }
                _ => return false,
            };
            if depth > DEPTH_MAX {
                return false;
            }
            depths.push(depth);
        }
        true
    }
}

fn lies_within(part: &Part, parent: &Part) -> bool {
    // A part may end before its header does: the line end before a boundary belongs to the boundary.
    parent.kind != PartKind::Single
        && part.header.start >= parent.body.start
        && part.body.end <= parent.body.end.max(part.body.start)
}

/// Whether the body follows the header directly, within the message.
fn is_in(part: &Part, octets: usize) -> bool {
    let Range { start, end } = part.body;
    let body = end.saturating_sub(start);
    part.header.start <= part.header.end
        && part.header.end == start
        && start <= end
        && end <= octets
        && usize::try_from(part.lines).is_ok_and(|lines| lines <= body)
        && part.envelope.as_deref().is_none_or(is_bounded)
}

fn is_bounded(envelope: &Envelope) -> bool {
    let lists: [&[Address]; 6] = [
        &envelope.from,
        &envelope.sender,
        &envelope.reply_to,
        &envelope.to,
        &envelope.cc,
        &envelope.bcc,
    ];
    lists.into_iter().all(|list| list.len() <= ADDRESSES_MAX)
}
