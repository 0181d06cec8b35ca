//! Counts as a person would say them.

/// A count with its noun, as a person would say it.
pub fn counted(count: impl TryInto<u64>, one: &str, several: &str) -> String {
    match count.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {one}"),
        count => format!("{count} {several}"),
    }
}

/// So many messages.
pub fn messages(count: impl TryInto<u64>) -> String {
    counted(count, "message", "messages")
}
