//! The sessions of clients: what each kind of client says, and which kind comes next.

use std::borrow::Cow;

use crate::ids::MessageId;
use crate::load::Messages;
use crate::peer::mx;

/// A kind of session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// EHLO, MAIL, RCPT of an unknown user, QUIT.
    Bounce,
    /// EHLO, MAIL, RCPT of a known user, QUIT.
    Trusted,
    /// EHLO; the client closes after the reply.
    Hello,
    /// The client closes after the greeting.
    Connect,
    /// A message for this many recipients.
    Good(usize),
    /// So many messages, each for one recipient.
    Series(u32),
}

impl Kind {
    /// Whether the session brings a message that is accepted.
    pub(super) const fn is_good(self) -> bool {
        matches!(self, Self::Good(_) | Self::Series(_))
    }

    /// Number of messages that the session brings.
    pub(super) const fn messages(self) -> u32 {
        match self {
            Self::Bounce | Self::Trusted | Self::Hello | Self::Connect => 0,
            Self::Good(_) => 1,
            Self::Series(messages) => messages,
        }
    }
}

/// A step of a session: the expected beginning of a reply, and the text to send then. An empty text ends the session.
pub(super) type Step = (&'static str, Cow<'static, [u8]>);

const HELLO: Step = ("220", Cow::Borrowed(b"EHLO client.test\r\n"));
const SENDER: Step = ("250", Cow::Borrowed(b"MAIL FROM:<someone@bench.test>\r\n"));
const DATA: Step = ("250", Cow::Borrowed(b"DATA\r\n"));
const QUIT: &[u8] = b"QUIT\r\n";
const END: Cow<'_, [u8]> = Cow::Borrowed(b"");

/// The last octets of a text.
pub(super) const TEXT_END: &[u8] = b"\r\n.\r\n";

/// The steps of a session with messages that have the ids from `id` on.
pub(super) fn talk(kind: Kind, id: MessageId, messages: &Messages) -> Vec<Step> {
    let vain = |address: &str, code| {
        let quit = (code, Cow::Borrowed(QUIT));
        vec![HELLO, SENDER, recipient(address), quit, ("221", END)]
    };
    let known = |number: usize| mx::recipient(id.sequence() as usize + number);
    match kind {
        Kind::Connect => vec![("220", END)],
        Kind::Hello => vec![HELLO, ("250", END)],
        Kind::Bounce => vain(&format!("nobody{}@{}", id.sequence(), mx::DOMAIN), "550"),
        Kind::Trusted => vain(&known(0), "250"),
        Kind::Good(recipients) => {
            let mut steps = vec![HELLO, sender(id, messages)];
            steps.extend((0..recipients).map(|number| recipient(&known(number))));
            steps.extend([DATA, text(id, messages)]);
            steps.extend([("250", Cow::Borrowed(QUIT)), ("221", END)]);
            steps
        }
        Kind::Series(series) => {
            let mut steps = vec![HELLO];
            for number in 0..series {
                let recipient = recipient(&known(number as usize));
                let id = id.after(number);
                steps.extend([sender(id, messages), recipient, DATA, text(id, messages)]);
            }
            steps.extend([("250", Cow::Borrowed(QUIT)), ("221", END)]);
            steps
        }
    }
}

fn sender(id: MessageId, messages: &Messages) -> Step {
    let Some(letter) = messages.letter(id) else {
        return SENDER;
    };
    let body = if letter.eight_bit {
        " BODY=8BITMIME"
    } else {
        ""
    };
    let command = format!("MAIL FROM:<{}>{body}\r\n", letter.sender);
    ("250", Cow::Owned(command.into_bytes()))
}

fn recipient(address: &str) -> Step {
    let command = format!("RCPT TO:<{address}>\r\n");
    ("250", Cow::Owned(command.into_bytes()))
}

fn text(id: MessageId, messages: &Messages) -> Step {
    let mut text = Vec::new();
    messages.write(id, &mut text);
    text.extend_from_slice(b".\r\n");
    ("354", Cow::Owned(text))
}

/// Kinds of sessions with their shares. The kinds come evenly spread, not at random: each number of sessions has the
/// shares as exactly as whole sessions allow.
#[derive(Debug, Clone)]
pub(crate) struct Mix {
    kinds: Vec<(Kind, f64)>,
    counts: Vec<u64>,
    total: u64,
}

impl Mix {
    /// Kinds and their shares, which need not add up to 1.
    pub(super) fn new(kinds: impl IntoIterator<Item = (Kind, f64)>) -> Self {
        let mut kinds: Vec<(Kind, f64)> = kinds.into_iter().collect();
        kinds.retain(|(_, share)| *share > 0.0);
        let sum: f64 = kinds.iter().map(|(_, share)| share).sum();
        for (_, share) in &mut kinds {
            *share /= sum;
        }
        Self {
            counts: vec![0; kinds.len()],
            kinds,
            total: 0,
        }
    }

    /// Sessions of one kind.
    pub(crate) fn only(kind: Kind) -> Self {
        Self::new([(kind, 1.0)])
    }

    /// Good mail for one recipient, among bounces with a share of `ratio` in all sessions.
    pub(super) fn bounces(ratio: f64) -> Self {
        Self::new([(Kind::Good(1), 1.0 - ratio), (Kind::Bounce, ratio)])
    }

    /// The next kind: the kind that lags most behind its share.
    pub(super) fn next(&mut self) -> Kind {
        self.total += 1;
        let lag =
            |place: usize| self.kinds[place].1 * self.total as f64 - self.counts[place] as f64;
        let places = 0..self.kinds.len();
        let place = places.max_by(|a, b| lag(*a).total_cmp(&lag(*b)));
        let place = place.unwrap_or(0);
        let Some((kind, _)) = self.kinds.get(place) else {
            return Kind::Connect;
        };
        self.counts[place] += 1;
        *kind
    }
}

/// Sessions a second in all, so that `good` of them are good mail while bounces are `ratio` of all.
pub(super) fn sessions_per_second(good: f64, ratio: f64) -> f64 {
    good / (1.0 - ratio)
}

/// The ratio at which a falling figure goes below a limit, between the last point at or above and the first point
/// below; `None` if no point is below. Points are in the order of their ratios: ratio and figure.
pub(super) fn falls_below(points: &[(f64, f64)], limit: f64) -> Option<f64> {
    let at = points.iter().position(|(_, figure)| *figure < limit)?;
    let (ratio, figure) = points[at];
    let Some((before, above)) = at.checked_sub(1).map(|at| points[at]) else {
        return Some(ratio);
    };
    Some(before + (ratio - before) * (above - limit) / (above - figure))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_exact_and_evenly_spread() {
        let mut mix = Mix::bounces(0.75);
        let kinds: Vec<Kind> = (0..400).map(|_| mix.next()).collect();
        for four in kinds.chunks(4) {
            let good = four.iter().filter(|kind| kind.is_good()).count();
            assert_eq!(good, 1, "{four:?}");
        }
        let mut mix = Mix::bounces(0.0);
        assert!((0..10).all(|_| mix.next() == Kind::Good(1)));
        let mut mix = Mix::new([(Kind::Hello, 3.0), (Kind::Connect, 1.0)]);
        let hello = (0..100).filter(|_| mix.next() == Kind::Hello).count();
        assert_eq!(hello, 75);
    }

    #[test]
    fn bounces_raise_the_rate_of_sessions_and_not_that_of_good_mail() {
        for (ratio, rate) in [(0.0, 100.0), (0.5, 200.0), (0.75, 400.0), (0.95, 2_000.0)] {
            let found = sessions_per_second(100.0, ratio);
            assert!((found - rate).abs() < 1e-6, "{ratio}: {found}");
        }
    }

    #[test]
    fn the_fall_lies_between_two_points() {
        let points = [(0.0, 100.0), (0.5, 99.0), (0.75, 97.0), (0.9, 20.0)];
        let fall = falls_below(&points, 98.0).unwrap();
        assert!((fall - 0.625).abs() < 1e-9, "{fall}");
        assert_eq!(falls_below(&points[..2], 98.0), None);
        assert_eq!(falls_below(&[(0.0, 50.0)], 98.0), Some(0.0));
        assert_eq!(falls_below(&[], 98.0), None);
    }

    #[test]
    fn the_steps_of_a_session_end_it() {
        let messages = Messages::mix();
        let id = MessageId::new(1, 7);
        for (kind, steps) in [
            (Kind::Connect, 1),
            (Kind::Hello, 2),
            (Kind::Bounce, 5),
            (Kind::Trusted, 5),
            (Kind::Good(1), 7),
            (Kind::Good(7), 13),
            (Kind::Series(3), 15),
        ] {
            let talk = talk(kind, id, &messages);
            assert_eq!(talk.len(), steps, "{kind:?}");
            assert!(
                talk.iter()
                    .rev()
                    .skip(1)
                    .all(|(_, text)| text.ends_with(b"\r\n"))
            );
            assert!(talk.last().is_some_and(|(_, text)| text.is_empty()));
            let texts = talk.iter().filter(|(_, text)| text.ends_with(TEXT_END));
            assert_eq!(texts.count(), kind.messages() as usize);
        }
    }
}
