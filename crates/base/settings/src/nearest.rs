//! Finds the known name nearest to a mistyped name.

/// Finds the candidate with the fewest edits from `name`, if one is near enough to be meant.
///
/// Near enough is at most a third of the longer name, and at least two edits. A transposition of
/// neighbours counts as a single edit. Names above 64 octets are not compared.
#[must_use]
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > 64 {
        return None;
    }
    let close = |candidate: &&str| {
        let edits = distance(name.as_bytes(), candidate.as_bytes());
        (edits <= (name.len().max(candidate.len()) / 3).max(2)).then_some(edits)
    };
    let scored = candidates
        .into_iter()
        .filter_map(|one| Some((close(&one)?, one)));
    scored.min_by_key(|(edits, _)| *edits).map(|(_, one)| one)
}

/// Counts insertions, deletions, replacements and swaps of neighbours between two names.
fn distance(left: &[u8], right: &[u8]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, r) in right.iter().enumerate() {
            let mut edits = (last[j] + usize::from(l != r))
                .min(last[j + 1] + 1)
                .min(row[j] + 1);
            if i > 0 && j > 0 && *l == right[j - 1] && left[i - 1] == *r {
                edits = edits.min(before_last[j - 1] + 1);
            }
            row.push(edits);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_edits() {
        for (left, right, edits) in [
            ("", "", 0),
            ("abc", "", 3),
            ("listen", "listen", 0),
            ("lisetn", "listen", 1),
            ("liste", "listen", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(
                distance(left.as_bytes(), right.as_bytes()),
                edits,
                "{left} {right}"
            );
        }
    }

    #[test]
    fn finds_only_what_may_be_meant() {
        let known = ["hostname", "data", "user"];
        assert_eq!(nearest("hostnam", known), Some("hostname"));
        assert_eq!(nearest("host_name", known), Some("hostname"));
        assert_eq!(nearest("dta", known), Some("data"));
        assert_eq!(nearest("banana_split", known), None);
        assert_eq!(nearest(&"a".repeat(10_000), known), None);
    }
}
