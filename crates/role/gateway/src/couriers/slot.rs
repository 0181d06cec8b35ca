//! Where the answers for a number arrive.

use std::cell::{Cell, RefCell};

use tokio::sync::Notify;
use vere_handoff::delivery::Answer;

/// Where the answers for a number arrive.
#[derive(Debug, Default)]
pub(super) struct Slot {
    state: Cell<State>,
    answer: RefCell<Option<Answer>>,
    closed: Cell<bool>,
    heard: Notify,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Idle,
    /// A request is under way.
    Asked,
    /// The courier is gone, or has lost the number.
    Lost,
}

impl Slot {
    /// Notes that a request is under way.
    pub(super) fn ask(&self) {
        self.state.set(State::Asked);
    }

    /// The answer, if one is there.
    pub(super) fn take(&self) -> Option<Answer> {
        self.answer.take()
    }

    /// Waits for whatever the courier says next.
    pub(super) async fn heard(&self) {
        self.heard.notified().await;
    }

    /// Whether the courier is gone, or has lost the number.
    pub(super) fn is_lost(&self) -> bool {
        self.state.get() == State::Lost
    }

    /// Whether the connection to a next hop is closed.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.get()
    }

    /// Takes an answer. False: nobody asked.
    pub(super) fn hear(&self, answer: Answer) -> bool {
        match (answer, self.state.get()) {
            (Answer::Closed { .. }, _) => self.closed.set(true),
            (Answer::Failed { .. }, _) | (_, State::Lost) => {
                self.lose();
            }
            (answer, State::Asked) => {
                self.state.set(State::Idle);
                // An earlier CLOSED concerns an earlier connection.
                if matches!(answer, Answer::Opened { .. }) {
                    self.closed.set(false);
                }
                self.answer.replace(Some(answer));
            }
            (_, State::Idle) => return false,
        }
        self.heard.notify_one();
        true
    }

    /// Gives the number up, and returns whether a request was under way.
    pub(super) fn lose(&self) -> bool {
        let was = self.state.replace(State::Lost);
        self.heard.notify_one();
        was == State::Asked
    }
}
