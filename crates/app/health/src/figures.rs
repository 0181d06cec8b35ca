//! Ages and sizes for people.

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

/// A size in the largest fitting decimal unit, with a digit behind the point.
#[must_use]
pub fn size(octets: u64) -> String {
    const UNITS: [(u64, &str); 4] = [
        (1_000_000_000_000, "TB"),
        (1_000_000_000, "GB"),
        (1_000_000, "MB"),
        (1_000, "kB"),
    ];
    match UNITS.iter().find(|(unit, _)| octets >= *unit) {
        None => format!("{octets} B"),
        Some((unit, name)) => {
            let tenths = octets / (unit / 10);
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        }
    }
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
    fn ages_and_sizes_are_short() {
        let ages = [59, 60, 3_599, 7_200, 86_400, 31_536_000 * 100].map(age);
        assert_eq!(ages, ["59s", "1m", "59m", "2h", "1d", "100y"]);
        let sizes = [999, 1_000, 41_250_000_000, 1_999_999].map(size);
        assert_eq!(sizes, ["999 B", "1.0 kB", "41.2 GB", "1.9 MB"]);
        assert_eq!(
            [0, 1, 2].map(|n| counted(n, "role")),
            ["0 roles", "1 role", "2 roles"]
        );
    }
}
