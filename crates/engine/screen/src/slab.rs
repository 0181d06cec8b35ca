//! Connections in slots that are used again, and tickets that fit one use of a slot only.

use crate::chain::NONE;

/// The name of one connection for the time in which it is open: a slot and the number of the slot's use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket {
    pub(crate) slot: u32,
    generation: u32,
}

impl Ticket {
    /// The ticket as a number, for the user data of a poll.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        (self.generation as u64) << 32 | self.slot as u64
    }

    /// The ticket of a number. A number that no ticket had gives a stale ticket.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self {
            slot: bits as u32,
            generation: (bits >> 32) as u32,
        }
    }
}

/// The ticket belongs to no connection that waits for trust: the connection has left, was told to close, or is trusted
/// already. The fault is the host's, or an answer came late; the event has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the connection of this ticket is closed or handed over")]
pub struct StaleTicket;

#[derive(Debug)]
enum Content<T> {
    Vacant { next: u32 },
    Held(T),
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    content: Content<T>,
}

/// A table of slots. Vacant slots are a list, the slot that was freed last in front.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Slot<T>>,
    vacant: u32,
    held: u32,
}

/// Octets of a slot.
#[cfg(test)]
pub(crate) const fn slot_octets<T>() -> usize {
    size_of::<Slot<T>>()
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            vacant: NONE,
            held: 0,
        }
    }

    /// Number of slots in use.
    pub(crate) const fn len(&self) -> u32 {
        self.held
    }

    /// Fills a slot. The caller keeps the number of slots below `u32::MAX`.
    pub(crate) fn insert(&mut self, value: T) -> Ticket {
        self.held += 1;
        let slot = self.vacant;
        if let Some(at) = self.slots.get_mut(slot as usize) {
            if let Content::Vacant { next } = at.content {
                self.vacant = next;
            }
            at.content = Content::Held(value);
            return Ticket {
                slot,
                generation: at.generation,
            };
        }
        self.slots.push(Slot {
            generation: 0,
            content: Content::Held(value),
        });
        Ticket {
            slot: self.slots.len() as u32 - 1,
            generation: 0,
        }
    }

    /// Empties the slot of a ticket.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Result<T, StaleTicket> {
        self.held(ticket)?;
        let slot = &mut self.slots[ticket.slot as usize];
        let vacant = Content::Vacant { next: self.vacant };
        let Content::Held(value) = std::mem::replace(&mut slot.content, vacant) else {
            return Err(StaleTicket);
        };
        slot.generation = slot.generation.wrapping_add(1);
        self.vacant = ticket.slot;
        self.held -= 1;
        Ok(value)
    }

    /// The value of a ticket.
    pub(crate) fn held(&self, ticket: Ticket) -> Result<&T, StaleTicket> {
        match self.slots.get(ticket.slot as usize) {
            Some(Slot {
                generation,
                content: Content::Held(value),
            }) if *generation == ticket.generation => Ok(value),
            _ => Err(StaleTicket),
        }
    }

    /// The value of a ticket, to be changed.
    pub(crate) fn held_mut(&mut self, ticket: Ticket) -> Result<&mut T, StaleTicket> {
        match self.slots.get_mut(ticket.slot as usize) {
            Some(Slot {
                generation,
                content: Content::Held(value),
            }) if *generation == ticket.generation => Ok(value),
            _ => Err(StaleTicket),
        }
    }

    /// The present ticket of a slot.
    pub(crate) fn ticket(&self, slot: u32) -> Ticket {
        Ticket {
            slot,
            generation: self.slots[slot as usize].generation,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_ticket_never_fits_the_next_use_of_its_slot() {
        let mut slab = Slab::new();
        let (a, b) = (slab.insert('a'), slab.insert('b'));
        assert_eq!(slab.len(), 2);
        assert_eq!(slab.remove(a), Ok('a'));
        assert_eq!(slab.remove(a), Err(StaleTicket));
        assert_eq!(slab.held(a), Err(StaleTicket));
        let c = slab.insert('c');
        assert_eq!((c.slot, c.generation), (0, 1));
        assert_eq!(slab.held(a), Err(StaleTicket));
        assert_eq!(slab.held_mut(a), Err(StaleTicket));
        assert_eq!(slab.held_mut(c), Ok(&mut 'c'));
        assert_eq!(slab.ticket(0), c);
        assert_eq!(slab.remove(b), Ok('b'));
        assert_eq!(slab.remove(c), Ok('c'));
        assert_eq!(slab.len(), 0);
        let again = [slab.insert('d'), slab.insert('e'), slab.insert('f')];
        assert_eq!(again.map(|ticket| ticket.slot), [0, 1, 2]);
        assert_eq!(slab.len(), 3);
    }

    #[test]
    fn a_ticket_survives_as_a_number() {
        let mut slab = Slab::new();
        slab.insert(0);
        let first = slab.insert(1);
        slab.remove(first).unwrap();
        let second = slab.insert(2);
        assert_eq!(second.to_bits(), 1 << 32 | 1);
        assert_eq!(Ticket::from_bits(second.to_bits()), second);
        assert_eq!(slab.held(Ticket::from_bits(u64::MAX)), Err(StaleTicket));
    }
}
