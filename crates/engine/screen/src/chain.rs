//! Doubly linked lists that run through slots of a table, so that a slot enters and leaves without a search.

/// A number that no slot has.
pub(crate) const NONE: u32 = u32::MAX;

/// Neighbours of a slot in its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    previous: u32,
    next: u32,
}

impl Link {
    /// The link of a slot in no list.
    pub(crate) const LOOSE: Self = Self {
        previous: NONE,
        next: NONE,
    };
}

/// Both ends of a list; the links lie beside the slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chain {
    first: u32,
    last: u32,
}

impl Chain {
    /// A list without slots.
    pub(crate) const EMPTY: Self = Self {
        first: NONE,
        last: NONE,
    };

    /// The slot that entered first.
    pub(crate) const fn first(self) -> Option<u32> {
        if self.first == NONE {
            None
        } else {
            Some(self.first)
        }
    }

    /// Appends a slot that is in no list of these links.
    pub(crate) fn push(&mut self, links: &mut [Link], at: u32) {
        links[at as usize] = Link {
            previous: self.last,
            next: NONE,
        };
        match self.last {
            NONE => self.first = at,
            last => links[last as usize].next = at,
        }
        self.last = at;
    }

    /// Takes out a slot of this list.
    pub(crate) fn remove(&mut self, links: &mut [Link], at: u32) {
        let Link { previous, next } = std::mem::replace(&mut links[at as usize], Link::LOOSE);
        match previous {
            NONE => self.first = next,
            previous => links[previous as usize].next = next,
        }
        match next {
            NONE => self.last = previous,
            next => links[next as usize].previous = previous,
        }
    }

    /// Iterates over the slots, the oldest first.
    pub(crate) fn iter(self, links: &[Link]) -> impl Iterator<Item = u32> {
        std::iter::successors(self.first(), |at| match links[*at as usize].next {
            NONE => None,
            next => Some(next),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_leave_from_both_ends_and_from_the_middle() {
        let mut links = vec![Link::LOOSE; 4];
        let mut chain = Chain::EMPTY;
        assert_eq!(chain.first(), None);
        for at in [2, 0, 3, 1] {
            chain.push(&mut links, at);
        }
        assert_eq!(chain.iter(&links).collect::<Vec<_>>(), [2, 0, 3, 1]);
        chain.remove(&mut links, 3);
        assert_eq!(chain.iter(&links).collect::<Vec<_>>(), [2, 0, 1]);
        chain.remove(&mut links, 1);
        chain.push(&mut links, 3);
        assert_eq!(chain.iter(&links).collect::<Vec<_>>(), [2, 0, 3]);
        chain.remove(&mut links, 2);
        assert_eq!(chain.first(), Some(0));
        chain.remove(&mut links, 0);
        chain.remove(&mut links, 3);
        assert_eq!(chain, Chain::EMPTY);
        assert_eq!(links, vec![Link::LOOSE; 4]);
    }
}
