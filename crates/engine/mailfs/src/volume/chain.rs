//! The order of commits: the child of a commit is the mail with the lowest UID among all authentic mails that name the commit
//! as parent (docs/internals/mailfs.md, "Several mounts").
//!
//! A commit on its way is in the chain as soon as every UID below its own is inspected, or known not to exist.

use std::collections::VecDeque;

use bytes::Bytes;
use vere_ports::mail_accounts::Listed;

use super::record::Won;
use crate::format::{Kind, MailId, Subject};

/// A commit on its way.
#[derive(Debug)]
pub(crate) struct Sent {
    /// The commit.
    pub(crate) id: MailId,
    /// Its parent.
    pub(crate) parent: MailId,
    /// Its generation.
    pub(crate) generation: u64,
    /// The mail, kept for another try.
    pub(crate) mail: Bytes,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// To be appended.
    Waiting,
    /// APPEND is under way.
    Appending,
    /// The mail may be in the log or not.
    Unknown,
    /// The mail is in the log.
    At(u32),
}

/// What the chain wants to be done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Appends this mail to the log: [`Chain::appended`] or [`Chain::failed`].
    Append(MailId, Bytes),
    /// Lists the log from this UID on: [`Chain::listed`] or [`Chain::list_failed`].
    List(u32),
    /// Reads this mail, which claims to be the child of a commit that has another one: [`Chain::judged`].
    Judge(u32),
    /// The oldest commit on its way is in the chain.
    Won(Won),
    /// The oldest commit on its way has an elder sibling at this UID.
    Lost(u32),
}

/// The end of the chain, and commits on their way.
#[derive(Debug)]
pub(crate) struct Chain {
    head: MailId,
    generation: u64,
    uid_validity: u32,
    /// Every UID up to here was inspected.
    known: u32,
    sent: VecDeque<Sent>,
    asking: Asking,
    /// Rows of the last listing not yet inspected.
    listed: VecDeque<Listed>,
    /// Whether the log does not show a commit yet that it has taken.
    is_patient: bool,
    /// The elder sibling of the oldest commit on its way.
    elder: Option<Elder>,
}

/// Another mount's commit in the place of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Elder {
    /// Found, and not yet told.
    Found(u32),
    /// Told: the chain stands still.
    Told,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asking {
    Nothing,
    Listing,
    Judging(u32),
}

impl Chain {
    /// A chain that ends with a commit, all mails up to this UID inspected.
    pub(crate) const fn new(head: Won, known: u32) -> Self {
        Self {
            head: head.commit,
            generation: head.generation,
            uid_validity: head.uid_validity,
            known,
            sent: VecDeque::new(),
            asking: Asking::Nothing,
            listed: VecDeque::new(),
            is_patient: false,
            elder: None,
        }
    }

    /// The newest commit, on its way or in the chain, and its generation: the next one's parent.
    pub(crate) fn end(&self) -> (MailId, u64) {
        let last = self.sent.back();
        last.map_or((self.head, self.generation), |sent| {
            (sent.id, sent.generation)
        })
    }

    /// The newest commit in the chain, and its generation.
    pub(crate) const fn head(&self) -> (MailId, u64) {
        (self.head, self.generation)
    }

    /// Commits on their way.
    pub(crate) fn under_way(&self) -> usize {
        self.sent.len()
    }

    /// Whether another mount's commit stands in place of the oldest commit on its way.
    pub(crate) const fn is_overtaken(&self) -> bool {
        self.elder.is_some()
    }

    /// A further commit is on its way; its parent is [`Self::end`].
    pub(crate) fn send(&mut self, id: MailId, mail: Bytes) {
        let (parent, generation) = self.end();
        self.sent.push_back(Sent {
            id,
            parent,
            generation: generation.saturating_add(1),
            mail,
            state: State::Waiting,
        });
    }

    fn find(&mut self, id: MailId) -> Option<&mut Sent> {
        self.sent.iter_mut().find(|sent| sent.id == id)
    }

    /// The account has stored the mail, and may have told where.
    pub(crate) fn appended(&mut self, id: MailId, place: Option<(u32, u32)>) {
        let is_ours = place.is_some_and(|(uid_validity, _)| self.numbers_are(uid_validity));
        if let Some(sent) = self.find(id) {
            sent.state = match place {
                Some((_, uid)) if is_ours => State::At(uid),
                _ => State::Unknown,
            };
        }
    }

    /// Whether the log has the numbers of before; the first mail of a volume gives them.
    const fn numbers_are(&mut self, uid_validity: u32) -> bool {
        if self.uid_validity == 0 {
            self.uid_validity = uid_validity;
        }
        self.uid_validity == uid_validity
    }

    /// The account has not said whether the mail is stored.
    pub(crate) fn failed(&mut self, id: MailId) {
        if let Some(sent) = self.find(id) {
            sent.state = State::Unknown;
        }
    }

    /// The account has refused the mail.
    pub(crate) fn refused(&mut self, id: MailId) {
        if let Some(sent) = self.find(id) {
            sent.state = State::Waiting;
        }
    }

    /// The log from [`Next::List`]'s UID on. Returns whether the numbers of the log are the ones of before.
    pub(crate) fn listed(&mut self, uid_validity: u32, mails: Vec<Listed>) -> bool {
        self.asking = Asking::Nothing;
        if !mails.is_empty() && !self.numbers_are(uid_validity) {
            self.elder = Some(Elder::Told);
            return false;
        }
        let known = self.known;
        let mut seen: Vec<MailId> = Vec::new();
        for mail in &mails {
            if let Ok(subject) = Subject::parse(&mail.subject)
                && let Some(sent) = self.find(subject.mail)
                && !seen.contains(&sent.id)
            {
                seen.push(sent.id);
                sent.state = State::At(mail.uid);
            }
        }
        for sent in &mut self.sent {
            if sent.state == State::Unknown {
                sent.state = State::Waiting;
            }
        }
        let last = mails.last().map_or(0, |mail| mail.uid);
        for sent in &mut self.sent {
            match sent.state {
                // Mails behind are there, so that this one is gone: the same octets are sent again.
                State::At(uid) if uid > known && uid < last && !seen.contains(&sent.id) => {
                    sent.state = State::Waiting;
                }
                State::At(uid) if uid > known && !seen.contains(&sent.id) => {
                    // Not visible yet: the next look comes after a pause.
                    self.is_patient = true;
                }
                _ => {}
            }
        }
        self.listed = mails.into_iter().filter(|mail| mail.uid > known).collect();
        true
    }

    /// A pause is over.
    pub(crate) const fn look_again(&mut self) {
        self.is_patient = false;
    }

    /// The log could not be listed.
    pub(crate) fn list_failed(&mut self) {
        self.asking = Asking::Nothing;
    }

    /// The mail of [`Next::Judge`] is an authentic commit of this parent, or none. `None`: the mail could not be read now.
    pub(crate) fn judged(&mut self, uid: u32, parent: Option<Option<MailId>>) {
        self.asking = Asking::Nothing;
        let Some(parent) = parent else {
            // A later listing has the mail again.
            self.listed.clear();
            return;
        };
        let expected = self.sent.front().map(|sent| sent.parent);
        if parent.is_some() && parent == expected {
            self.elder = Some(Elder::Found(uid));
        }
        self.known = self.known.max(uid);
        self.listed.retain(|mail| mail.uid > uid);
    }

    /// The next thing to do, if any. May be called again at once.
    pub(crate) fn next(&mut self) -> Option<Next> {
        match self.elder {
            None => {}
            Some(Elder::Told) => return None,
            Some(Elder::Found(uid)) => {
                self.elder = Some(Elder::Told);
                return Some(Next::Lost(uid));
            }
        }
        if let Some(waiting) = self
            .sent
            .iter_mut()
            .find(|sent| sent.state == State::Waiting)
        {
            waiting.state = State::Appending;
            return Some(Next::Append(waiting.id, waiting.mail.clone()));
        }
        if self.asking != Asking::Nothing {
            return None;
        }
        let front = self.sent.front()?;
        match front.state {
            State::Waiting | State::Appending => None,
            State::Unknown => Some(self.list()),
            State::At(_) if self.is_patient => None,
            State::At(uid) => Some(self.towards(uid)),
        }
    }

    fn list(&mut self) -> Next {
        self.asking = Asking::Listing;
        Next::List(self.known.saturating_add(1))
    }

    /// Inspects what lies below the oldest commit's own UID.
    fn towards(&mut self, uid: u32) -> Next {
        let next = self.known.saturating_add(1);
        if uid <= next || self.listed.iter().any(|mail| mail.uid == uid) {
            let parent = self.sent.front().map(|sent| sent.parent);
            while let Some(mail) = self.listed.front()
                && mail.uid < uid
            {
                let subject = Subject::parse(&mail.subject);
                let claims = subject
                    .is_ok_and(|subject| subject.kind == Kind::Commit && subject.parent == parent);
                if claims {
                    self.asking = Asking::Judging(mail.uid);
                    return Next::Judge(mail.uid);
                }
                self.listed.pop_front();
            }
            return self.win(uid);
        }
        self.list()
    }

    fn win(&mut self, uid: u32) -> Next {
        let uid_validity = self.uid_validity;
        self.known = self.known.max(uid);
        let known = self.known;
        self.listed.retain(|mail| mail.uid > known);
        if let Some(sent) = self.sent.pop_front() {
            (self.head, self.generation) = (sent.id, sent.generation);
        }
        Next::Won(Won {
            commit: self.head,
            generation: self.generation,
            uid_validity,
            uid,
        })
    }
}
