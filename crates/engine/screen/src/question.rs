//! Questions that the host asks for the engine, and their answers.

/// Questions to be asked now, all at once. Their answers bear the same round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Questions {
    /// The number of the command of this session to which the questions belong.
    pub round: u32,
    /// The lists on which the client stands. They are asked once in a session.
    pub lists: bool,
    /// The result of SPF for client, HELO and reverse-path.
    pub spf: bool,
    /// Whether the recipient is accepted.
    pub recipient: bool,
}

/// An entry of the client on a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listing {
    /// The number of the list in the host's settings.
    pub list: u8,
    /// The weight of the entry, below zero in favour of the client.
    pub weight: i16,
}

/// The answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<'a> {
    /// Entries of the client on all lists.
    Lists {
        /// The entries; their weights are added.
        listings: &'a [Listing],
        /// Whether every list has answered.
        complete: bool,
    },
    /// The result of SPF.
    Spf(Spf),
    /// The directory's answer.
    Recipient(Recipient),
}

/// Results of SPF (RFC 7208 section 2.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spf {
    /// The domain has no record, or there is no domain.
    None,
    /// The domain makes no statement about the client.
    Neutral,
    /// The client may use the domain.
    Pass,
    /// The client must not use the domain.
    Fail,
    /// The client probably must not use the domain.
    SoftFail,
    /// The DNS did not answer.
    TempError,
    /// The record cannot be understood.
    PermError,
}

/// Answers about a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recipient {
    /// Mail for the recipient is accepted.
    Accepted,
    /// The recipient does not exist.
    Unknown,
    /// The recipient is of another system, for which this client may not relay, or is closed.
    Refused,
    /// The recipient cannot be checked, or accepts no mail now.
    Deferred,
}

/// The state of one question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Inquiry<T> {
    /// The question is not asked in this session or transaction.
    #[default]
    Unasked,
    /// The answer has not come.
    Pending,
    /// The answer.
    Known(T),
}

impl<T: Copy> Inquiry<T> {
    /// The answer, if it is there.
    pub(crate) const fn known(self) -> Option<T> {
        match self {
            Self::Known(answer) => Some(answer),
            _ => None,
        }
    }

    /// Answers a question whose time is over.
    pub(crate) fn give_up(&mut self, answer: T) {
        if matches!(self, Self::Pending) {
            *self = Self::Known(answer);
        }
    }
}

/// The sum of what the lists say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Score {
    /// Sum of the weights.
    pub(crate) sum: i32,
    /// The list with the largest weight.
    pub(crate) worst: Option<u8>,
    /// Whether every list has answered.
    pub(crate) complete: bool,
}

impl Score {
    /// The score of a client for which no list has answered in time.
    pub(crate) const NO_ANSWER: Self = Self {
        sum: 0,
        worst: None,
        complete: false,
    };

    pub(crate) fn of(listings: &[Listing], complete: bool) -> Self {
        let worst = listings
            .iter()
            .filter(|listing| listing.weight > 0)
            .reduce(|a, b| if b.weight > a.weight { b } else { a });
        Self {
            sum: listings
                .iter()
                .fold(0, |sum, listing| sum.saturating_add(listing.weight.into())),
            worst: worst.map(|listing| listing.list),
            complete,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_added_and_the_heaviest_list_is_named() {
        let listing = |(list, weight)| Listing { list, weight };
        let score = |pairs: &[(u8, i16)]| {
            let listings: Vec<_> = pairs.iter().copied().map(listing).collect();
            let score = Score::of(&listings, true);
            (score.sum, score.worst)
        };
        assert_eq!(score(&[]), (0, None));
        assert_eq!(score(&[(4, -2)]), (-2, None));
        assert_eq!(score(&[(0, 2), (3, 3), (1, 3), (2, -1)]), (7, Some(3)));
        let many = vec![listing((0, i16::MAX)); 70_000];
        assert_eq!(Score::of(&many, true).sum, i32::MAX);
    }
}
