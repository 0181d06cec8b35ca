//! The strategies of groups.

/// How a group reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// A write waits for `sync_copies` members, whichever is least busy; the others follow.
    #[default]
    One,
    /// A write waits for every reachable member.
    All,
    /// As `One`, with the fastest member for each read and each write.
    Fast,
}

impl Strategy {
    /// The strategy of a row; an unknown number counts as `One`, right for every reader.
    #[must_use]
    pub const fn of_row(number: u8) -> Self {
        match number {
            1 => Self::All,
            2 => Self::Fast,
            _ => Self::One,
        }
    }

    /// The number in rows.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::One => 0,
            Self::All => 1,
            Self::Fast => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Strategy;

    #[test]
    fn rows_have_numbers() {
        for strategy in [Strategy::One, Strategy::All, Strategy::Fast] {
            assert_eq!(Strategy::of_row(strategy.number()), strategy);
        }
        assert_eq!(Strategy::of_row(200), Strategy::One);
    }
}
