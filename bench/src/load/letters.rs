//! Messages with senders of their own.

/// A message, and who sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// The address of MAIL FROM.
    pub(crate) sender: String,
    /// The text in wire format: CRLF lines, dots doubled, nothing after the last line.
    pub(crate) text: Vec<u8>,
    /// Whether the text has octets above 127.
    pub(crate) eight_bit: bool,
}

/// At least one letter.
#[derive(Debug, Clone)]
pub struct Letters {
    first: Letter,
    others: Vec<Letter>,
}

impl Letters {
    /// `None` without a letter.
    pub(crate) fn new(letters: impl IntoIterator<Item = Letter>) -> Option<Self> {
        let mut letters = letters.into_iter();
        let first = letters.next()?;
        let others = letters.collect();
        Some(Self { first, others })
    }

    /// How many letters there are.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.others.len() + 1).unwrap_or(u32::MAX)
    }

    /// The letter of a number, modulo the number of letters.
    pub(crate) fn get(&self, number: u32) -> &Letter {
        let place = number % self.count();
        let place = usize::try_from(place).unwrap_or(0);
        let other = place
            .checked_sub(1)
            .and_then(|place| self.others.get(place));
        other.unwrap_or(&self.first)
    }

    /// All letters in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Letter> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_come_in_order_and_again() {
        let letter = |name: &str| Letter {
            sender: name.to_owned(),
            text: Vec::new(),
            eight_bit: false,
        };
        assert!(Letters::new([]).is_none());
        let letters = Letters::new([letter("a"), letter("b"), letter("c")]).unwrap();
        let senders: Vec<_> = (0..4)
            .map(|number| &letters.get(number).sender[..])
            .collect();
        assert_eq!(senders, ["a", "b", "c", "a"]);
        assert_eq!((letters.count(), letters.iter().count()), (3, 3));
    }
}
