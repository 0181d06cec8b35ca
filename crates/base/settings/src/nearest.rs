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
        let edits = strsim::osa_distance(name, candidate);
        (edits <= (name.len().max(candidate.len()) / 3).max(2)).then_some(edits)
    };
    let scored = candidates
        .into_iter()
        .filter_map(|one| Some((close(&one)?, one)));
    scored.min_by_key(|(edits, _)| *edits).map(|(_, one)| one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_only_what_may_be_meant() {
        let known = ["hostname", "data", "user"];
        assert_eq!(nearest("hostnam", known), Some("hostname"));
        assert_eq!(nearest("host_name", known), Some("hostname"));
        assert_eq!(nearest("dta", known), Some("data"));
        assert_eq!(nearest("suer", known), Some("user"));
        assert_eq!(nearest("resu", known), None);
        assert_eq!(nearest("banana_split", known), None);
        assert_eq!(nearest(&"a".repeat(10_000), known), None);
    }
}
