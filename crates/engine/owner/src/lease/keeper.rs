//! The lease of one owner: watched until free, then held until given back.
//!
//! ```text
//! state      leaves for   when
//! Waiting    Watching     the owner claimed the group
//! Watching   Holding      the lease is free
//! Holding    Watching     another owner has it, though the group is still this one's
//! any        Over         it was given back, and the register was told
//! ```
//! An owner that lost the group stops renewals and begins no deliveries. The lease lasts until the
//! owner gives the lease back, once running deliveries have ended, or until the lease expires.

use std::time::Duration;

use vere_units::Timestamp;

use super::{LeaseAnswer, LeaseHolder, LeaseRequest, LeaseTerms, LeaseWatcher, Watched};
use crate::Title;

/// Parameters of an owner's lease.
#[derive(Debug, Clone)]
pub struct LeaseOptions {
    /// The life of the owner, as in [`crate::OwnerConfig::life`].
    pub life: u64,
    /// Duration of the lease.
    pub terms: LeaseTerms,
    /// Whether the group is named for another gateway.
    pub adopted: bool,
    /// Lives of owners that are known to be over.
    pub dead: Vec<u64>,
}

/// State of a lease at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseState {
    /// Deliveries may not begin, yet or for a while.
    Waiting,
    /// Deliveries may begin.
    Held,
    /// The register's value is unreadable, or a later owner holds the lease. An operator must act,
    /// unless the group is lost as well.
    Unreadable,
    /// The lease was given back.
    Over,
}

#[derive(Debug)]
enum State {
    Waiting,
    Watching(LeaseWatcher),
    Holding(LeaseHolder),
    Over,
}

/// Obtains the lease for one owner and renews it. Times are those of the owner.
#[derive(Debug)]
pub struct LeaseKeeper {
    options: LeaseOptions,
    epoch: u64,
    state: State,
    /// Another owner has the group.
    fenced: bool,
    giving_back: bool,
}

fn span(time: Timestamp) -> Duration {
    time.saturating_since(Timestamp::ZERO)
}

impl LeaseKeeper {
    /// Creates the keeper for an owner without a group.
    #[must_use]
    pub const fn new(options: LeaseOptions) -> Self {
        Self {
            options,
            epoch: 0,
            state: State::Waiting,
            fenced: false,
            giving_back: false,
        }
    }

    /// Updates the keeper with the owner's current title. The host calls this first, whenever a
    /// request, answer or deadline is due.
    pub fn look(&mut self, title: Option<Title>, now: Timestamp) {
        let Some(title) = title else {
            self.fenced = !matches!(self.state, State::Waiting);
            return;
        };
        self.epoch = title.epoch;
        if matches!(self.state, State::Waiting) {
            self.watch(now);
        }
        let options = &self.options;
        match &mut self.state {
            State::Watching(watcher) => {
                if title.fences {
                    watcher.fenced(span(now));
                }
                if let Watched::Free { expected } = watcher.watched(span(now)) {
                    let (life, terms) = (options.life, options.terms);
                    let holder = LeaseHolder::new(life, title.epoch, terms, expected, span(now));
                    self.state = State::Holding(holder.adopting(options.adopted));
                }
            }
            State::Holding(holder) => {
                if let Some(sent) = title.confirmed {
                    holder.confirmed_by_members(span(sent));
                }
                if holder.is_over() && !self.giving_back {
                    self.watch(now);
                }
            }
            State::Waiting | State::Over => {}
        }
    }

    fn watch(&mut self, now: Timestamp) {
        let watcher = LeaseWatcher::new(self.epoch, self.options.terms, span(now));
        self.state = State::Watching(watcher.knowing(&self.options.dead));
    }

    /// Returns the next request to the register; at most one request is outstanding.
    pub fn poll(&mut self, now: Timestamp) -> Option<LeaseRequest> {
        if self.fenced && !self.giving_back {
            return None;
        }
        match &mut self.state {
            State::Waiting | State::Over => None,
            State::Watching(watcher) => watcher.poll(span(now)),
            State::Holding(holder) => holder.poll(span(now)),
        }
    }

    /// Processes the answer to the last request.
    pub fn answered(&mut self, answer: LeaseAnswer, now: Timestamp) {
        match &mut self.state {
            State::Waiting | State::Over => {}
            State::Watching(watcher) => watcher.answered(answer, span(now)),
            State::Holding(holder) => holder.answered(answer, span(now)),
        }
    }

    /// Whether deliveries may begin at this moment.
    #[must_use]
    pub fn is_held(&self, now: Timestamp) -> bool {
        let State::Holding(holder) = &self.state else {
            return false;
        };
        !self.fenced && holder.is_held(span(now))
    }

    /// Time for which deliveries may still begin without another renewal.
    #[must_use]
    pub fn left(&self, now: Timestamp) -> Duration {
        match &self.state {
            State::Holding(holder) if !self.fenced => holder.left(span(now)),
            _ => Duration::ZERO,
        }
    }

    /// State of the lease at this moment.
    #[must_use]
    pub fn state(&self, now: Timestamp) -> LeaseState {
        match &self.state {
            State::Over => LeaseState::Over,
            State::Watching(watcher) if watcher.watched(span(now)) == Watched::Lost => {
                LeaseState::Unreadable
            }
            State::Holding(holder) if self.giving_back && holder.is_settled() => LeaseState::Over,
            _ if self.is_held(now) => LeaseState::Held,
            _ => LeaseState::Waiting,
        }
    }

    /// Ends deliveries for good and informs the register, so that a successor need not wait. All
    /// deliveries must have ended before.
    pub fn give_back(&mut self, now: Timestamp) {
        self.giving_back = true;
        match &mut self.state {
            State::Holding(holder) => holder.give_back(span(now)),
            State::Waiting | State::Watching(_) | State::Over => self.state = State::Over,
        }
    }

    /// Time of the next step that needs no event.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        let deadline = match &self.state {
            State::Waiting | State::Over => None,
            State::Watching(watcher) => watcher.deadline(),
            State::Holding(holder) => holder.deadline(),
        };
        deadline
            .filter(|_| !self.fenced || self.giving_back)
            .map(|deadline| Timestamp::ZERO + deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::super::LeaseRecord;
    use super::*;

    const TERMS: LeaseTerms = LeaseTerms {
        lease: Duration::from_secs(10),
        skew: Duration::from_secs(2),
    };

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn keeper(life: u64, dead: &[u64]) -> LeaseKeeper {
        LeaseKeeper::new(LeaseOptions {
            life,
            terms: TERMS,
            adopted: false,
            dead: dead.to_vec(),
        })
    }

    fn title(confirmed: Option<u64>) -> Option<Title> {
        Some(Title {
            epoch: 3,
            fences: true,
            confirmed: confirmed.map(at),
        })
    }

    /// The register, without delay.
    #[derive(Default)]
    struct Register(Option<(u64, Vec<u8>)>);

    impl Register {
        fn serve(&mut self, request: LeaseRequest) -> LeaseAnswer {
            match request {
                LeaseRequest::Swap { expected, value }
                    if expected == self.0.as_ref().map(|(version, _)| *version) =>
                {
                    let version = expected.unwrap_or(0) + 1;
                    self.0 = Some((version, value));
                    LeaseAnswer::Done(version)
                }
                _ => LeaseAnswer::There(self.0.clone()),
            }
        }

        fn run(&mut self, keeper: &mut LeaseKeeper, title: Option<Title>, now: Timestamp) {
            keeper.look(title, now);
            while let Some(request) = keeper.poll(now) {
                keeper.answered(self.serve(request), now);
                keeper.look(title, now);
            }
        }

        fn holder(&self) -> Option<LeaseRecord> {
            self.0
                .as_ref()
                .and_then(|(_, value)| LeaseRecord::decode(value))
        }
    }

    #[test]
    fn a_new_group_is_delivered_at_once_and_a_dead_holder_not_waited_for() {
        let mut register = Register::default();
        let mut first = keeper(7, &[]);
        register.run(&mut first, None, at(0));
        assert_eq!(first.state(at(0)), LeaseState::Waiting);
        register.run(&mut first, title(None), at(10));
        assert!(first.is_held(at(10)));
        // Nobody knows that it is dead: lease and skew pass from when it was seen.
        let mut second = keeper(8, &[]);
        register.run(&mut second, title(None), at(100));
        for time in [6_000, 12_000] {
            register.run(&mut second, title(None), at(time));
            assert!(!second.is_held(at(time)), "{time}");
        }
        register.run(&mut second, title(None), at(12_100));
        assert!(second.is_held(at(12_100)));
        let mut third = keeper(9, &[7, 8]);
        register.run(&mut third, title(None), at(12_200));
        assert!(third.is_held(at(12_200)));
        assert_eq!(register.holder().unwrap().holder, 9);
    }

    #[test]
    fn whoever_lost_the_group_delivers_no_more_and_gives_the_lease_back_when_it_is_told() {
        let mut register = Register::default();
        let mut first = keeper(7, &[]);
        register.run(&mut first, title(None), at(0));
        register.run(&mut first, None, at(100));
        assert!(!first.is_held(at(100)));
        assert_eq!((first.deadline(), first.poll(at(9_000))), (None, None));
        let mut second = keeper(8, &[]);
        register.run(&mut second, title(None), at(9_100));
        assert!(!second.is_held(at(9_100)));
        first.give_back(at(9_200));
        register.run(&mut first, None, at(9_200));
        assert_eq!(first.state(at(9_200)), LeaseState::Over);
        register.run(&mut second, title(None), at(12_500));
        assert!(second.is_held(at(12_500)));
    }

    #[test]
    fn members_prolong_it_while_the_register_is_away() {
        let mut register = Register::default();
        let mut keeper = keeper(7, &[]);
        register.run(&mut keeper, title(None), at(0));
        for second in 1..30_u64 {
            let now = at(second * 1_000);
            keeper.look(title(Some(second * 1_000 - 300)), now);
            if keeper.poll(now).is_some() {
                keeper.answered(LeaseAnswer::Failed, now);
            }
            assert!(keeper.is_held(now), "{second}");
        }
        keeper.look(title(Some(28_700)), at(38_699));
        assert!(keeper.is_held(at(38_699)) && !keeper.is_held(at(38_700)));
        let left = [38_000, 38_699, 38_700, 50_000].map(|time| keeper.left(at(time)));
        assert_eq!(left, [700, 1, 0, 0].map(Duration::from_millis));
        keeper.look(None, at(38_100));
        assert_eq!(keeper.left(at(38_100)), Duration::ZERO);
    }

    #[test]
    fn what_cannot_be_read_is_not_taken() {
        let mut register = Register(Some((4, b"what is this".to_vec())));
        let mut keeper = keeper(7, &[]);
        for second in 0..60 {
            register.run(&mut keeper, title(None), at(second * 1_000));
        }
        assert_eq!(keeper.state(at(60_000)), LeaseState::Unreadable);
    }
}
