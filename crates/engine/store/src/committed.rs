//! Results that clients may see only after a sync.

use crate::log::Position;

/// A value that no client may see before the log is synced up to a position: else a crash could undo a result that a
/// client has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "it is not safe yet"]
pub struct Committed<T> {
    value: T,
    position: Position,
}

impl<T> Committed<T> {
    pub(crate) fn new(value: T, position: u64) -> Self {
        Self {
            value,
            position: Position(position),
        }
    }

    /// The value is safe once the log is synced up to this position.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }

    /// The value.
    ///
    /// # Errors
    ///
    /// Returns `self` while the synced position is before the value's position.
    pub fn when(self, synced: Position) -> Result<T, Self> {
        if self.position <= synced {
            Ok(self.value)
        } else {
            Err(self)
        }
    }

    /// The value, for a caller that shows it to no client.
    pub(crate) fn into_value(self) -> T {
        self.value
    }

    /// Converts the value, with the same position.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Committed<U> {
        Committed {
            value: make(self.value),
            position: self.position,
        }
    }
}
