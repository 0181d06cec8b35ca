//! Tests of the whole engine.

use std::net::IpAddr;
use std::time::Duration;

use vere_units::Timestamp;

use crate::{
    Admitted, Answer, Decision, Due, Questions, Recipient, Screen, Step, Terms, Ticket, TurnedAway,
};

mod admission;
mod deadlines;
mod deciding;
mod eviction;
mod memory;
mod model;

const START: u64 = 1_800_000_000_000;

const SECRET: [u8; 32] = [42; 32];

/// An engine with a separate clock.
struct Bench {
    screen: Screen,
    now: Timestamp,
}

impl Bench {
    fn new(terms: Terms) -> Self {
        Self {
            screen: Screen::new(terms, SECRET),
            now: Timestamp::from_millis(START),
        }
    }

    /// An engine that greets at once, with changed terms.
    fn without_delay(change: impl FnOnce(&mut Terms)) -> Self {
        let mut terms = Terms::default();
        terms.banner.delay = Duration::ZERO;
        change(&mut terms);
        Self::new(terms)
    }

    fn pass(&mut self, millis: u64) {
        self.now = self.now + Duration::from_millis(millis);
    }

    fn arrive(&mut self, client: &str) -> Result<Admitted, TurnedAway> {
        let client: IpAddr = client.parse().unwrap();
        self.screen.arrive(self.now, client)
    }

    fn ticket(&mut self, client: &str) -> Ticket {
        self.arrive(client).unwrap().ticket
    }

    /// Everything that is due now.
    fn due(&mut self) -> Vec<(Ticket, Due)> {
        std::iter::from_fn(|| self.screen.due(self.now)).collect()
    }

    fn mail(&mut self, ticket: Ticket) -> Questions {
        asked(
            self.screen
                .mail(self.now, ticket, "alice@example.org")
                .unwrap(),
        )
    }

    fn recipient(&mut self, ticket: Ticket) -> Questions {
        asked(
            self.screen
                .recipient(self.now, ticket, "bob@example.net")
                .unwrap(),
        )
    }

    fn answer(&mut self, ticket: Ticket, round: u32, answer: Answer<'_>) -> Option<Decision> {
        self.screen
            .answered(self.now, ticket, round, answer)
            .unwrap()
    }

    /// RCPT and the answer of the directory.
    fn decided(&mut self, ticket: Ticket, recipient: Recipient) -> Decision {
        let round = self.recipient(ticket).round;
        let answer = Answer::Recipient(recipient);
        self.answer(ticket, round, answer).unwrap()
    }
}

fn asked(step: Step) -> Questions {
    match step {
        Step::Ask(questions) => questions,
        Step::Decided(decision) => panic!("{decision:?}"),
    }
}
