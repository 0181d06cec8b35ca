//! Sans-IO protocol machines, as one loop drives them all: [`crate::drive`].

use vere_units::Timestamp;

use super::memory::Receiver;

/// The next step of who drives a machine.
#[derive(Debug)]
#[must_use]
pub enum Step<Q> {
    /// Read from the client and call [`Machine::input`].
    NeedInput,
    /// Write [`Machine::output`] and call [`Machine::sent`].
    Send,
    /// Find the answer and call [`Machine::answer`].
    Ask(Q),
    /// The answer to the last question is missing.
    NeedAnswer,
    /// Do the TLS handshake; octets that were read before the handshake are thrown away.
    StartTls,
    /// Close the connection.
    Close,
}

/// The server's side of one session of a protocol, without a socket or a separate clock.
pub trait Machine: Receiver {
    /// A question to the host. At most one is open at a time.
    type Question;
    /// The answer to a question.
    type Answer;

    /// Takes octets from the client and returns how many were taken; the rest has to be given again after the next step.
    fn input(&mut self, octets: &[u8], now: Timestamp) -> usize;

    /// Returns the next step.
    fn step(&mut self) -> Step<Self::Question>;

    /// Returns the octets to be written.
    fn output(&self) -> &[u8];

    /// Records that so many octets of the output were written.
    fn sent(&mut self, octets: usize);

    /// Takes the answer to the open question.
    fn answer(&mut self, answer: Self::Answer, now: Timestamp);

    /// Returns when [`Machine::timed_out`] is due, unless octets come before.
    fn deadline(&self) -> Timestamp;

    /// Records that the deadline has passed.
    fn timed_out(&mut self);

    /// Ends the session at the next place where a command could begin.
    fn shut_down(&mut self);
}

/// Implements [`Machine`] and [`Receiver`] for the `Server` of a protocol crate.
macro_rules! machine {
    ($protocol:ident) => {
        impl Receiver for $protocol::server::Server {
            fn memory(&self) -> usize {
                self.message_memory()
            }

            fn is_authenticated(&self) -> bool {
                self.account().is_some()
            }

            fn refuse_for_room(&mut self) {
                self.refuse_for_room();
            }

            fn end(&mut self) {
                self.timed_out();
            }
        }

        impl Machine for $protocol::server::Server {
            type Question = $protocol::server::Question;
            type Answer = $protocol::server::Answer;

            fn input(&mut self, octets: &[u8], now: Timestamp) -> usize {
                self.input(octets, now)
            }

            fn step(&mut self) -> Step<Self::Question> {
                match self.step() {
                    $protocol::server::Step::NeedInput => Step::NeedInput,
                    $protocol::server::Step::Send => Step::Send,
                    $protocol::server::Step::Ask(question) => Step::Ask(question),
                    $protocol::server::Step::NeedAnswer => Step::NeedAnswer,
                    $protocol::server::Step::StartTls => Step::StartTls,
                    $protocol::server::Step::Close => Step::Close,
                }
            }

            fn output(&self) -> &[u8] {
                self.output()
            }

            fn sent(&mut self, octets: usize) {
                self.sent(octets);
            }

            fn answer(&mut self, answer: Self::Answer, now: Timestamp) {
                self.answer(answer, now);
            }

            fn deadline(&self) -> Timestamp {
                self.deadline()
            }

            fn timed_out(&mut self) {
                self.timed_out();
            }

            fn shut_down(&mut self) {
                self.shut_down();
            }
        }
    };
}

machine!(vere_smtp);
machine!(vere_imap);
