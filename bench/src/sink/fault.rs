//! Misbehaviour on purpose.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use vere_units::Span;

use crate::wire::Stage;

/// The action of a sink in place of a positive answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Answers with a code and a text.
    Refuse {
        /// 400 to 599; 421 also closes.
        code: u16,
        /// A line of text.
        text: String,
    },
    /// Answers positively, but later.
    Delay(Duration),
    /// Closes without an answer and without the message.
    Close,
    /// Receives the message, then closes without an answer; at other stages like [`Action::Close`].
    Lose,
}

/// A rule of misbehaviour, written `STAGE[:PART]=ACTION[*TIMES]`.
///
/// `STAGE` is `connect`, `ehlo`, `mail`, `rcpt`, `data`, `dot` or `quit`. With `PART` the rule
/// holds only where the argument of the command contains it, or for `dot` a recipient of the
/// message. `ACTION` is a reply such as `450 4.2.1 busy`, `delay:250ms`, `close` or `lose`. With
/// `TIMES` the rule holds that many times, else always.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The step of the dialogue.
    pub stage: Stage,
    /// A text that the argument must contain.
    pub part: Option<String>,
    /// The action.
    pub action: Action,
    /// Remaining number of uses; `None` for no limit.
    pub times: Option<u64>,
}

/// Reasons why a text is not a [`Fault`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InvalidFault {
    /// There is no `=`.
    NoAction,
    /// Unknown stage.
    Stage(String),
    /// Unknown action, or a code outside 400 to 599.
    Action(String),
    /// Not a number after `*`.
    Times(String),
}

impl fmt::Display for InvalidFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAction => f.write_str("a fault is STAGE[:PART]=ACTION[*TIMES]"),
            Self::Stage(stage) => write!(
                f,
                "no stage {stage:?}: one of connect, ehlo, mail, rcpt, data, dot, quit"
            ),
            Self::Action(action) => write!(
                f,
                "no action {action:?}: a reply 4xx or 5xx, delay:SPAN, close or lose"
            ),
            Self::Times(times) => write!(f, "{times:?} is not a number of times"),
        }
    }
}

impl std::error::Error for InvalidFault {}

impl FromStr for Fault {
    type Err = InvalidFault;

    fn from_str(text: &str) -> Result<Self, InvalidFault> {
        let (place, action) = text.split_once('=').ok_or(InvalidFault::NoAction)?;
        let (stage, part) = match place.split_once(':') {
            Some((stage, part)) => (stage, Some(part.to_owned())),
            None => (place, None),
        };
        let (action, times) = match action.rsplit_once('*') {
            Some((action, times)) => {
                let count = times
                    .parse()
                    .map_err(|_| InvalidFault::Times(times.to_owned()))?;
                (action, Some(count))
            }
            None => (action, None),
        };
        Ok(Self {
            stage: parse_stage(stage)?,
            part,
            action: parse_action(action)?,
            times,
        })
    }
}

fn parse_stage(text: &str) -> Result<Stage, InvalidFault> {
    Ok(match text {
        "connect" => Stage::Connect,
        "ehlo" => Stage::Hello,
        "mail" => Stage::Mail,
        "rcpt" => Stage::Recipient,
        "data" => Stage::Data,
        "dot" => Stage::Message,
        "quit" => Stage::Quit,
        _ => return Err(InvalidFault::Stage(text.to_owned())),
    })
}

fn parse_action(text: &str) -> Result<Action, InvalidFault> {
    let invalid = || InvalidFault::Action(text.to_owned());
    match text {
        "close" => return Ok(Action::Close),
        "lose" => return Ok(Action::Lose),
        _ => {}
    }
    if let Some(span) = text.strip_prefix("delay:") {
        let span: Span = span.parse().map_err(|_| invalid())?;
        return Ok(Action::Delay(span.duration()));
    }
    let (code, line) = text.split_once(' ').unwrap_or((text, "refused on purpose"));
    match code.parse() {
        Ok(code @ 400..=599) if !line.contains(['\r', '\n']) => Ok(Action::Refuse {
            code,
            text: line.to_owned(),
        }),
        _ => Err(invalid()),
    }
}

/// The first of `faults` that applies at `stage`, with a use consumed.
pub(super) fn applicable(
    faults: &mut [Fault],
    stage: Stage,
    argument: &str,
    recipients: &[String],
) -> Option<Action> {
    let fault = faults.iter_mut().find(|fault| {
        fault.stage == stage
            && fault.times != Some(0)
            && fault.part.as_ref().is_none_or(|part| {
                argument.contains(part.as_str())
                    || (stage == Stage::Message
                        && recipients
                            .iter()
                            .any(|recipient| recipient.contains(part.as_str())))
            })
    })?;
    fault.times = fault.times.map(|times| times - 1);
    Some(fault.action.clone())
}

#[cfg(test)]
mod tests {
    use super::{Action, Fault, InvalidFault, applicable};
    use crate::wire::Stage;
    use std::time::Duration;

    #[test]
    fn rules_are_read() {
        let fault: Fault = "rcpt:bob@x.test=450 4.2.1 busy*3".parse().unwrap();
        assert_eq!(fault.stage, Stage::Recipient);
        assert_eq!(fault.part.as_deref(), Some("bob@x.test"));
        assert_eq!(
            fault.action,
            Action::Refuse {
                code: 450,
                text: "4.2.1 busy".to_owned()
            }
        );
        assert_eq!(fault.times, Some(3));
        let fault: Fault = "dot=delay:250ms".parse().unwrap();
        assert_eq!(fault.action, Action::Delay(Duration::from_millis(250)));
        assert_eq!("dot".parse::<Fault>(), Err(InvalidFault::NoAction));
        assert!(matches!(
            "x=close".parse::<Fault>(),
            Err(InvalidFault::Stage(_))
        ));
        assert!(matches!(
            "dot=250".parse::<Fault>(),
            Err(InvalidFault::Action(_))
        ));
        assert!(matches!(
            "dot=close*x".parse::<Fault>(),
            Err(InvalidFault::Times(_))
        ));
    }

    #[test]
    fn a_rule_is_used_up() {
        let mut faults = vec!["rcpt:bob=close*1".parse::<Fault>().unwrap()];
        assert_eq!(applicable(&mut faults, Stage::Recipient, "al@x", &[]), None);
        assert_eq!(applicable(&mut faults, Stage::Mail, "bob@x", &[]), None);
        assert_eq!(
            applicable(&mut faults, Stage::Recipient, "bob@x", &[]),
            Some(Action::Close)
        );
        assert_eq!(
            applicable(&mut faults, Stage::Recipient, "bob@x", &[]),
            None
        );
    }
}
