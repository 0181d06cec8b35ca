//! What the journal knows about the chain before the log is read.

use vere_keep::record::{Part, Won};

use crate::replay::{Records, newest_known};

/// The newest commit of the chain that a journal knows. Absent if the journal knows commits on the way only, so that any commit
/// of the log may be one of these.
#[must_use]
pub fn remembered(records: &Records) -> Option<Option<Won>> {
    let parts = || records.iter().flat_map(|(_, parts)| parts);
    let newest = newest_known(records);
    let has_begun = parts().any(|part| matches!(part, Part::Begun(_)));
    (newest.is_some() || !has_begun).then_some(newest)
}

/// Whether the journal may have changes that no commit has.
#[must_use]
pub fn has_waiting(records: &Records) -> bool {
    let parts = || {
        records
            .iter()
            .flat_map(|(position, parts)| parts.iter().map(move |part| (*position, part)))
    };
    let won = parts().filter_map(|(_, part)| match part {
        Part::Won(won) => Some(*won),
        _ => None,
    });
    let newest = won.max_by_key(|won| won.generation).map(|won| won.commit);
    let begun = parts().find_map(|(_, part)| match part {
        Part::Begun(begun) if Some(begun.commit) == newest => Some(begun),
        _ => None,
    });
    let through = begun.map_or(0, |begun| begun.through);
    let is_change = |(position, part): (u64, &Part)| {
        position >= through && matches!(part, Part::Row(_) | Part::Content(_))
    };
    begun.is_some_and(|begun| !begun.exceptions.is_empty()) || parts().any(is_change)
}
