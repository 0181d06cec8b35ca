//! Ages and counts for people.

/// An age in the largest fitting unit: at most four columns for a hundred years.
#[must_use]
pub fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        86_400..86_313_600 => format!("{}d", seconds / 86_400),
        _ => format!("{}y", seconds / 31_536_000),
    }
}

/// The text for a missing figure.
#[must_use]
pub fn dash() -> String {
    "-".to_owned()
}

/// A number with a noun, in the plural unless the number is 1.
#[must_use]
pub fn counted(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_counts_are_short() {
        let ages = [59, 60, 3_599, 7_200, 86_400, 31_536_000 * 100].map(age);
        assert_eq!(ages, ["59s", "1m", "59m", "2h", "1d", "100y"]);
        assert_eq!(
            [0, 1, 2].map(|n| counted(n, "role")),
            ["0 roles", "1 role", "2 roles"]
        );
    }
}
