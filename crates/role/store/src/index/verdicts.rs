//! Remembers recent questions with their matching messages. A client may repeat a search for the next page or after
//! new mail, and the messages need not be read and decoded again. A verdict stays valid: a message of a mailbox never
//! changes, and its UID is never assigned again.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vere_mime::wire::Question;
use vere_store::{MailboxId, Uid};

/// Remembered questions, and octets of each question.
const QUESTIONS_MAX: usize = 64;
const QUESTION_OCTETS_MAX: usize = 1_024;
/// Remembered messages of one question, and of all questions but the last: some 20 octets each.
const MESSAGES_MAX: usize = 128 * 1_024;
/// Remembered messages of all questions, including forgotten questions that a search still uses.
const HELD_MAX: usize = 2 * MESSAGES_MAX;

/// Questions with verdicts, the most recent question last; shared by all searches.
#[derive(Debug, Clone, Default)]
pub(crate) struct Verdicts {
    all: Arc<Mutex<VecDeque<Arc<Asked>>>>,
    held: Held,
}

/// Number of remembered messages, over all questions.
#[derive(Debug, Clone, Default)]
struct Held(Arc<AtomicUsize>);

impl Held {
    /// Reserves space for another message, if any is left: concurrent searches share the space.
    fn take(&self) -> bool {
        let more = |held: usize| (held < HELD_MAX).then_some(held + 1);
        self.0.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    fn give_back(&self, messages: usize) {
        self.0.fetch_sub(messages, Relaxed);
    }
}

/// A question about a mailbox.
#[derive(Debug)]
pub(crate) struct Asked {
    mailbox: MailboxId,
    question: Vec<u8>,
    found: Mutex<HashMap<Looked, bool>>,
    held: Held,
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.held.give_back(self.found().len());
    }
}

/// A message, and a bit for each examined zone of the message.
pub(crate) type Looked = (Uid, u8);

impl Verdicts {
    /// Returns the verdicts on a question; absent for a question that is too long to be remembered.
    pub(crate) fn of(&self, mailbox: MailboxId, question: Question<'_>) -> Option<Arc<Asked>> {
        let question = octets_of(question).filter(|octets| octets.len() <= QUESTION_OCTETS_MAX)?;
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |asked: &Arc<Asked>| asked.mailbox == mailbox && asked.question == question;
        let at = all.iter().rposition(is_it);
        let asked = at.and_then(|at| all.remove(at)).unwrap_or_else(|| {
            Arc::new(Asked {
                mailbox,
                question,
                found: Mutex::default(),
                held: self.held.clone(),
            })
        });
        let mut messages: usize = all.iter().map(|asked| asked.found().len()).sum();
        while (messages > MESSAGES_MAX || all.len() >= QUESTIONS_MAX)
            && let Some(oldest) = all.pop_front()
        {
            messages = messages.saturating_sub(oldest.found().len());
        }
        all.push_back(Arc::clone(&asked));
        Some(asked)
    }
}

impl Asked {
    fn found(&self) -> MutexGuard<'_, HashMap<Looked, bool>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the remembered verdicts on messages.
    pub(crate) fn known(
        &self,
        messages: impl Iterator<Item = Option<Looked>>,
    ) -> Vec<Option<bool>> {
        let found = self.found();
        let one = |looked: Option<Looked>| found.get(&looked?).copied();
        messages.map(one).collect()
    }

    /// Remembers verdicts on messages.
    pub(crate) fn remember(&self, messages: impl Iterator<Item = (Looked, bool)>) {
        let mut found = self.found();
        for (looked, has) in messages {
            if found.len() >= MESSAGES_MAX || !self.held.take() {
                return;
            }
            if found.insert(looked, has).is_some() {
                self.held.give_back(1);
            }
        }
    }
}

/// Identity of a question: the field in lower case, and the text to be found.
fn octets_of(question: Question<'_>) -> Option<Vec<u8>> {
    match question {
        Question::Texts => None,
        Question::Zones(what) => Some([b"\0", what].concat()),
        Question::Field { name, what } => {
            let name = name.to_ascii_lowercase();
            // A field's name in a question has no NUL.
            Some([b"\x01", name.as_bytes(), b"\0", what].concat())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uid(uid: u32) -> Uid {
        Uid::new(uid).unwrap()
    }

    #[test]
    fn what_was_found_is_known_of_the_same_question_mailbox_and_zones() {
        let verdicts = Verdicts::default();
        let (one, other) = (MailboxId(1), MailboxId(2));
        let question = Question::Zones(b"FREE OF");
        let asked = verdicts.of(one, question).unwrap();
        let found = [((uid(7), 1), true), ((uid(8), 1), false)];
        asked.remember(found.into_iter());
        let looked = || [(7, 1), (8, 1), (9, 1), (7, 2)].map(|(at, zones)| Some((uid(at), zones)));
        let of = |mailbox, question| {
            let asked = verdicts.of(mailbox, question).unwrap();
            asked.known(looked().into_iter().chain([None]))
        };
        let known = [Some(true), Some(false), None, None, None];
        assert_eq!(of(one, question), known);
        assert_eq!(of(other, question), [None; 5]);
        assert_eq!(of(one, Question::Zones(b"FREE")), [None; 5]);
        let field = |name| Question::Field {
            name,
            what: b"FREE OF",
        };
        assert_eq!(of(one, field("x")), [None; 5]);
        let asked = verdicts.of(one, field("X-A")).unwrap();
        asked.remember(found.into_iter());
        assert_eq!(of(one, field("x-a")), known);
        assert_eq!(of(one, field("x-b")), [None; 5]);
        assert!(verdicts.of(one, Question::Texts).is_none());
        let long = vec![b'A'; QUESTION_OCTETS_MAX];
        assert!(verdicts.of(one, Question::Zones(&long)).is_none());
    }

    #[test]
    fn what_was_not_asked_for_longest_is_forgotten() {
        let verdicts = Verdicts::default();
        let ask = |number: usize| {
            let what = number.to_string();
            verdicts.of(MailboxId(1), Question::Zones(what.as_bytes()))
        };
        let found = |asked: &Asked| asked.found().len();
        for number in 0..QUESTIONS_MAX + 1 {
            let asked = ask(number).unwrap();
            asked.remember([((uid(1), 1), true)].into_iter());
        }
        assert_eq!(found(&ask(1).unwrap()), 1);
        assert_eq!(found(&ask(0).unwrap()), 0);
        // A question with `MESSAGES_MAX` messages remembers no further message. Older questions go first.
        let many = ask(QUESTIONS_MAX).unwrap();
        let all = (2..MESSAGES_MAX as u32 + 10).map(|at| ((uid(at), 1), true));
        many.remember(all);
        assert_eq!(found(&many), MESSAGES_MAX);
        let next = ask(QUESTIONS_MAX + 1).unwrap();
        next.remember([((uid(1), 1), true)].into_iter());
        assert_eq!(found(&ask(QUESTIONS_MAX).unwrap()), MESSAGES_MAX);
        ask(QUESTIONS_MAX + 2).unwrap();
        assert_eq!(found(&ask(QUESTIONS_MAX + 1).unwrap()), 0);
        assert_eq!(found(&ask(QUESTIONS_MAX).unwrap()), MESSAGES_MAX);
        assert_eq!(verdicts.all.lock().unwrap().len(), 3);
    }

    #[test]
    fn searches_at_the_same_time_share_what_may_be_remembered() {
        let verdicts = Verdicts::default();
        let ask = |number: usize| {
            let what = number.to_string();
            verdicts
                .of(MailboxId(1), Question::Zones(what.as_bytes()))
                .unwrap()
        };
        let all = || (1..=MESSAGES_MAX as u32).map(|at| ((uid(at), 1), true));
        let under_way: Vec<_> = (0..4).map(ask).collect();
        under_way.iter().for_each(|asked| asked.remember(all()));
        // Again takes no room.
        under_way[0].remember(all());
        let held = |all: &[Arc<Asked>]| all.iter().map(|asked| asked.found().len()).sum::<usize>();
        assert_eq!(held(&under_way), HELD_MAX);
        // Those who look into messages yet have what is forgotten.
        let next = ask(4);
        next.remember(all());
        assert_eq!(held(&[next]), 0);
        drop(under_way);
        let next = ask(5);
        next.remember(all());
        assert_eq!(held(&[next]), MESSAGES_MAX);
    }
}
