//! Fields that only this system writes, in a message of a stranger.

/// Removes `X-Spam-*`, and results of authentication in our name (RFC 8601 section 5).
pub fn remove_foreign(body: &mut Vec<u8>, hostname: &str) {
    let mut ranges = vere_judge::foreign_fields(body);
    ranges.extend(vere_auth::foreign_fields(body, hostname));
    if ranges.is_empty() {
        return;
    }
    ranges.sort_by_key(|range| range.start);
    // One copy, whatever the number of fields: a stranger chooses the number.
    let mut kept = Vec::with_capacity(body.len());
    let mut from = 0;
    for range in ranges {
        kept.extend_from_slice(body.get(from..range.start).unwrap_or_default());
        from = range.end;
    }
    kept.extend_from_slice(body.get(from..).unwrap_or_default());
    *body = kept;
}
