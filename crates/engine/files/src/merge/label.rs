//! Names of conflict copies: `name (conflict HOST YYYY-MM-DD HHMM).ext`.

use vere_units::Timestamp;

use crate::rows::NAME_OCTETS_MAX;

/// Octets of an extension that stays at the end.
const EXTENSION_MAX: usize = 16;
/// Octets of a host's name.
const HOST_MAX: usize = 48;

/// Who lost, and when.
#[derive(Debug, Clone)]
pub struct Label(String);

impl Label {
    /// The label of a loser's copies.
    #[must_use]
    pub fn new(host: &str, at: Timestamp) -> Self {
        let host: String = host
            .chars()
            .filter(|letter| !letter.is_control() && *letter != '/')
            .collect();
        let mut end = host.len().min(HOST_MAX);
        while !host.is_char_boundary(end) {
            end = end.saturating_sub(1);
        }
        let host = host.get(..end).unwrap_or_default();
        let (year, month, day) = at.date();
        let minutes = at.as_millis() / 60_000;
        let (hour, minute) = (minutes / 60 % 24, minutes % 60);
        Self(format!(
            "conflict {host} {year:04}-{month:02}-{day:02} {hour:02}{minute:02}"
        ))
    }

    /// A label of this text.
    pub(super) fn plain(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The name of the copy with this number, from 1 on.
    pub(super) fn of(&self, name: &[u8], number: usize) -> Vec<u8> {
        let dot = name.iter().rposition(|octet| *octet == b'.');
        let dot = dot.filter(|dot| *dot > 0 && name.len().saturating_sub(*dot) <= EXTENSION_MAX);
        let (stem, extension) = name.split_at(dot.unwrap_or(name.len()));
        let mark = match number {
            1 => format!(" ({})", self.0),
            number => format!(" ({} {number})", self.0),
        };
        let used = mark.len().saturating_add(extension.len());
        let mut room = stem.len().min(NAME_OCTETS_MAX.saturating_sub(used));
        // A letter of several octets stays whole.
        while room > 0 && stem.get(room).is_some_and(|octet| octet & 0xc0 == 0x80) {
            room = room.saturating_sub(1);
        }
        let stem = stem.get(..room).unwrap_or_default();
        [stem, mark.as_bytes(), extension].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_keep_their_extension() {
        let at = Timestamp::from_millis(1_795_916_520_000);
        let label = Label::new("lap/top", at);
        let name =
            |name: &str, number| String::from_utf8(label.of(name.as_bytes(), number)).unwrap();
        assert_eq!(name("a.txt", 1), "a (conflict laptop 2026-11-29 0142).txt");
        assert_eq!(
            name("a.txt", 2),
            "a (conflict laptop 2026-11-29 0142 2).txt"
        );
        assert_eq!(name(".rc", 1), ".rc (conflict laptop 2026-11-29 0142)");
        let long = "ä".repeat(127);
        let made = name(&long, 1);
        assert!(made.len() <= 255 && made.ends_with(')'), "{made}");
    }
}
