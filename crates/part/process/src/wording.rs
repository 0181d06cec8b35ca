//! Counts and sizes as a person would say them.

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

/// A size of so many octets in the largest fitting power of 1024, rounded down: `999 B`, `12.0 MiB`, `512 GiB`.
pub fn size(octets: u64) -> String {
    const UNITS: [(u64, &str); 4] = [
        (1 << 40, "TiB"),
        (1 << 30, "GiB"),
        (1 << 20, "MiB"),
        (1 << 10, "KiB"),
    ];
    let Some((factor, unit)) = UNITS.into_iter().find(|(factor, _)| octets >= *factor) else {
        return format!("{octets} B");
    };
    let whole = octets / factor;
    match whole {
        100.. => format!("{whole} {unit}"),
        _ => format!("{whole}.{} {unit}", octets % factor * 10 / factor),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_sizes_are_those_of_a_person() {
        assert_eq!(
            [0, 1, 2].map(messages),
            ["0 messages", "1 message", "2 messages"]
        );
        let sizes = [
            0,
            1_023,
            1_536,
            12_583_234,
            1 << 30,
            204_799 << 10,
            u64::MAX,
        ]
        .map(size);
        let expected = [
            "0 B",
            "1023 B",
            "1.5 KiB",
            "12.0 MiB",
            "1.0 GiB",
            "199 MiB",
            "16777215 TiB",
        ];
        assert_eq!(sizes, expected);
    }
}
