//! The order of commits: the child of a commit is the mail with the lowest UID among all authentic mails that name the commit
//! as parent (docs/internals/mailfs.md, "Several mounts").
//!
//! Mails are inspected in the order of their UIDs. A commit on the way is in the chain as soon as every UID below its own is
//! inspected, or known not to exist; a commit of another mount likewise.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use bytes::Bytes;
use vere_ports::mail_accounts::Listed;

use vere_keep::record::Won;

use crate::format::{Kind, MailId, Subject};
use crate::holes::Holes;
use crate::sent::State;
pub use crate::sent::{Child, Sent};

/// Commits of other mounts that are read at once.
const READS_MAX: usize = 16;

/// What the chain wants to be done.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Appends this mail to the log: [`Chain::appended`] or [`Chain::failed`].
    Append(MailId, Bytes),
    /// Lists the log from this UID on: [`Chain::listed`] or [`Chain::list_failed`].
    List(u32),
    /// Reads this mail, which claims to be a commit: [`Chain::judged`].
    Judge(u32),
    /// The oldest commit on the way is in the chain.
    Won(Won),
    /// A commit of another mount is in the chain; commits on the way are lost: [`Chain::lose`].
    Follow(Won),
    /// A lost commit is in the log.
    Located(Won),
    /// Commits between the head and this generation have left the log: the chain stands still.
    Gap(u64),
}

/// The end of the chain, and commits on the way.
#[derive(Debug)]
pub struct Chain {
    head: MailId,
    generation: u64,
    uid_validity: u32,
    /// The UID of the head.
    uid: u32,
    /// Every UID up to here was inspected.
    known: u32,
    sent: VecDeque<Sent>,
    /// Lost commits whose mail is needed, since they hold content.
    strays: Vec<Sent>,
    /// The commit on the way that was won last.
    won: Option<Sent>,
    is_listing: bool,
    /// The log may have new mails.
    is_stale: bool,
    /// Whether the log does not show a commit yet that it has taken.
    is_patient: bool,
    /// Rows of the last listing not yet inspected.
    listed: VecDeque<Listed>,
    holes: Holes,
    reading: BTreeSet<u32>,
    /// What was read, by UID; none for a mail that is no commit.
    read: BTreeMap<u32, Option<Child>>,
    /// The child of each commit: the lowest UID inspected.
    children: HashMap<MailId, (u32, MailId)>,
    /// The highest generation that an inspected commit says the chain has.
    covered: u64,
    /// The numbers of the log have changed, or commits are gone: the chain stands still.
    is_standing: bool,
    /// Whether commits on the way wait for the local disk.
    is_held: bool,
    /// Whether the order is broken on purpose.
    skips_gaps: bool,
}

impl Chain {
    /// A chain that ends with a commit, all mails up to this UID inspected.
    pub fn new(head: Won, known: u32) -> Self {
        Self {
            head: head.commit,
            generation: head.generation,
            uid_validity: head.uid_validity,
            uid: head.uid,
            known,
            sent: VecDeque::new(),
            strays: Vec::new(),
            won: None,
            is_listing: false,
            is_stale: false,
            is_patient: false,
            listed: VecDeque::new(),
            holes: Holes::default(),
            reading: BTreeSet::new(),
            read: BTreeMap::new(),
            children: HashMap::new(),
            covered: 0,
            is_standing: false,
            is_held: false,
            skips_gaps: false,
        }
    }

    /// Breaks the order, so that a test can show that its checker notices: own commits win although UIDs below are not inspected.
    pub const fn skip_gaps(&mut self) {
        self.skips_gaps = true;
    }

    /// The newest commit, on the way or in the chain, and its generation: the next one's parent.
    pub fn end(&self) -> (MailId, u64) {
        let last = self.sent.back();
        last.map_or((self.head, self.generation), |sent| {
            (sent.id, sent.generation)
        })
    }

    /// The newest commit in the chain, and its generation.
    pub const fn head(&self) -> (MailId, u64) {
        (self.head, self.generation)
    }

    /// The newest commit in the chain, with its place.
    pub const fn place(&self) -> Won {
        Won {
            commit: self.head,
            generation: self.generation,
            uid_validity: self.uid_validity,
            uid: self.uid,
        }
    }

    /// The chain goes on to this commit, read at the beginning.
    pub const fn advance_to(&mut self, won: Won) {
        (self.head, self.generation, self.uid) = (won.commit, won.generation, won.uid);
    }

    /// Parent and mail of the commit that [`Next::Won`] has told last.
    pub fn take_won(&mut self) -> Option<(MailId, Bytes)> {
        self.won.take().map(|sent| (sent.parent, sent.mail))
    }

    /// The chain stands still: the log is out of reach.
    pub const fn stand(&mut self) {
        self.is_standing = true;
    }

    /// Whether no mail is handed out: the journal must have the beginning of a commit before the log has the commit.
    pub const fn hold(&mut self, is_held: bool) {
        self.is_held = is_held;
    }

    /// Whether commits on the way wait for the local disk.
    pub const fn is_held(&self) -> bool {
        self.is_held
    }

    /// Commits on the way.
    pub fn under_way(&self) -> usize {
        self.sent.len()
    }

    /// Whether further commits have to wait.
    pub fn is_blocked(&self) -> bool {
        self.is_standing || !self.strays.is_empty()
    }

    /// A further commit is on the way; its parent is [`Self::end`].
    pub fn send(&mut self, id: MailId, mail: Bytes) {
        let (parent, generation) = self.end();
        self.sent.push_back(Sent {
            id,
            parent,
            generation: generation.saturating_add(1),
            mail,
            state: State::Waiting,
        });
    }

    /// The log may have new mails.
    pub const fn refresh(&mut self) {
        self.is_stale = true;
    }

    /// Commits on the way are lost. The mails of others are needed all the same.
    pub fn lose(&mut self, is_needed: impl Fn(MailId) -> bool) {
        let sent = self.sent.drain(..);
        self.strays.extend(sent.filter(|sent| is_needed(sent.id)));
    }

    /// A commit outside the chain, inspected at the beginning.
    pub fn see(&mut self, uid: u32, child: Child) {
        self.covered = self.covered.max(child.covers);
        let place = self.children.entry(child.parent).or_insert((uid, child.id));
        if place.0 > uid {
            *place = (uid, child.id);
        }
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Sent> {
        self.sent.iter_mut().chain(&mut self.strays)
    }

    fn find(&mut self, id: MailId) -> Option<&mut Sent> {
        self.all().find(|sent| sent.id == id)
    }

    /// The account has stored the mail, and may have told where.
    pub fn appended(&mut self, id: MailId, place: Option<(u32, u32)>) {
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
    pub fn failed(&mut self, id: MailId) {
        if let Some(sent) = self.find(id) {
            sent.state = State::Unknown;
        }
    }

    /// The account has refused the mail.
    pub fn refused(&mut self, id: MailId) {
        if let Some(sent) = self.find(id) {
            sent.state = State::Waiting;
        }
    }

    /// The log from [`Next::List`]'s UID on. Returns whether the numbers of the log are the ones of before.
    pub fn listed(&mut self, uid_validity: u32, mails: Vec<Listed>) -> bool {
        self.is_listing = false;
        if !mails.is_empty() && !self.numbers_are(uid_validity) {
            self.is_standing = true;
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
        let mails: Vec<Listed> = mails.into_iter().filter(|mail| mail.uid > known).collect();
        let uids = mails.iter().map(|mail| mail.uid);
        let doubt = self.holes.list(known, uids).filter(|_| !self.skips_gaps);
        if doubt.is_some() {
            self.is_patient = true;
            self.is_stale = true;
        }
        let doubt = doubt.unwrap_or(u32::MAX);
        self.look_for_missing(&mails, &seen, doubt);
        let certain = mails.into_iter().take_while(|mail| mail.uid < doubt);
        self.listed = certain.collect();
        true
    }

    /// Mails that a listing lacks are sent again, or not visible yet.
    fn look_for_missing(&mut self, mails: &[Listed], seen: &[MailId], doubt: u32) {
        let known = self.known;
        let last = mails.last().map_or(0, |mail| mail.uid);
        let mut is_patient = self.is_patient;
        for sent in self.all() {
            match sent.state {
                State::Unknown => sent.state = State::Waiting,
                // Two listings show mails behind, so that this one is gone: the same octets are sent again.
                State::At(uid)
                    if uid > known && uid < last.min(doubt) && !seen.contains(&sent.id) =>
                {
                    sent.state = State::Waiting;
                }
                State::At(uid) if uid > known && !seen.contains(&sent.id) => {
                    // Not visible yet: the next look comes after a pause.
                    is_patient = true;
                }
                _ => {}
            }
        }
        self.is_patient = is_patient;
    }

    /// A pause is over.
    pub const fn look_again(&mut self) {
        self.is_patient = false;
    }

    /// The log could not be listed.
    pub const fn list_failed(&mut self) {
        self.is_listing = false;
        self.is_stale = true;
        self.is_patient = true;
    }

    /// The mail of [`Next::Judge`] is gone: another listing decides.
    pub fn gone(&mut self, uid: u32) {
        self.reading.remove(&uid);
        self.listed.retain(|mail| mail.uid < uid);
        self.is_patient = true;
        self.is_stale = true;
    }

    /// The mail of [`Next::Judge`] is this authentic commit, or none. `None`: the mail could not be read now.
    pub fn judged(&mut self, uid: u32, child: Option<Option<Child>>) {
        self.reading.remove(&uid);
        if let Some(child) = child {
            self.read.insert(uid, child);
        }
    }

    /// The next thing to do, if any. May be called again at once.
    pub fn poll(&mut self) -> Option<Next> {
        if self.is_standing {
            return None;
        }
        let is_held = self.is_held;
        let waiting = self.all().find(|sent| sent.state == State::Waiting);
        if let Some(waiting) = waiting.filter(|_| !is_held) {
            waiting.state = State::Appending;
            return Some(Next::Append(waiting.id, waiting.mail.clone()));
        }
        if let Some(located) = self.located() {
            return Some(located);
        }
        self.inspect();
        if let Some(generation) = self.gap() {
            self.is_standing = true;
            return Some(Next::Gap(generation));
        }
        if let Some(next) = self.advance() {
            return Some(next);
        }
        if let Some(uid) = self.unread() {
            self.reading.insert(uid);
            return Some(Next::Judge(uid));
        }
        let is_busy = self.is_listing || self.is_patient || !self.reading.is_empty();
        if is_busy || !self.needs_listing() {
            return None;
        }
        self.is_listing = true;
        self.is_stale = false;
        Some(Next::List(self.known.saturating_add(1)))
    }

    /// A lost commit whose place is known.
    fn located(&mut self) -> Option<Next> {
        let place = self
            .strays
            .iter()
            .position(|stray| matches!(stray.state, State::At(_)))?;
        let stray = self.strays.remove(place);
        let State::At(uid) = stray.state else {
            return None;
        };
        Some(Next::Located(Won {
            commit: stray.id,
            generation: stray.generation,
            uid_validity: self.uid_validity,
            uid,
        }))
    }

    /// Inspects mails in the order of their UIDs, as far as their content is known.
    fn inspect(&mut self) {
        if self.skips_gaps
            && let Some((uid, child)) = self.sent.front().and_then(|sent| match sent.state {
                State::At(uid) => Some((uid, sent.child())),
                _ => None,
            })
        {
            self.see(uid, child);
            self.known = self.known.max(uid);
        }
        loop {
            let next = self.known.saturating_add(1);
            let ours = self.sent.iter().find(|sent| sent.state == State::At(next));
            if let Some(child) = ours.map(Sent::child) {
                self.see(next, child);
                self.known = next;
                continue;
            }
            let Some(mail) = self.listed.front() else {
                return;
            };
            let uid = mail.uid;
            if uid > self.known {
                match self.content(uid, &mail.subject.clone()) {
                    None => return,
                    Some(None) => {}
                    Some(Some(child)) => self.see(uid, child),
                }
                self.known = uid;
            }
            self.read.remove(&uid);
            self.listed.pop_front();
        }
    }

    /// What a listed mail is; `None` while the mail is to be read.
    fn content(&self, uid: u32, subject: &str) -> Option<Option<Child>> {
        let Ok(subject) = Subject::parse(subject) else {
            return Some(None);
        };
        if subject.kind != Kind::Commit {
            return Some(None);
        }
        let mut ours = self.sent.iter().chain(&self.strays);
        if let Some(sent) = ours.find(|sent| sent.id == subject.mail) {
            return Some(Some(sent.child()));
        }
        self.read.get(&uid).copied()
    }

    /// The generation that the chain has by the word of an inspected commit, while no line of inspected commits leads there.
    ///
    /// `gc` removes old commits. A mount that slept while those behind its head went would take its own next commit for the
    /// only child. Whatever a checkpoint covers is in the chain, and every commit there has a lower UID than the commit that
    /// names the checkpoint: as soon as the listing is inspected, the line is there or broken.
    fn gap(&self) -> Option<u64> {
        if self.covered <= self.generation || !self.listed.is_empty() || self.skips_gaps {
            return None;
        }
        let (mut at, mut generation) = (self.head, self.generation);
        while generation < self.covered {
            let Some((_, child)) = self.children.get(&at) else {
                return Some(self.covered);
            };
            (at, generation) = (*child, generation.saturating_add(1));
        }
        None
    }

    /// The next commit of the chain, if inspected. One of the mount counts when the rest of the listing has shown no gap.
    fn advance(&mut self) -> Option<Next> {
        let (_, id) = self.children.get(&self.head)?;
        let is_own = self.sent.front().is_some_and(|sent| sent.id == *id);
        if is_own && !self.listed.is_empty() && !self.skips_gaps {
            return None;
        }
        let (uid, id) = self.children.remove(&self.head)?;
        self.generation = self.generation.saturating_add(1);
        (self.head, self.uid) = (id, uid);
        let won = self.place();
        if self.sent.front().is_some_and(|sent| sent.id == id) {
            self.won = self.sent.pop_front();
            return Some(Next::Won(won));
        }
        Some(Next::Follow(won))
    }

    /// A listed mail that is to be read.
    fn unread(&self) -> Option<u32> {
        if self.reading.len() >= READS_MAX {
            return None;
        }
        let near = self.listed.iter().take(READS_MAX);
        let mut unread = near.filter(|mail| {
            mail.uid > self.known
                && !self.reading.contains(&mail.uid)
                && self.content(mail.uid, &mail.subject).is_none()
        });
        unread.next().map(|mail| mail.uid)
    }

    fn needs_listing(&self) -> bool {
        let mut all = self.sent.iter().chain(&self.strays);
        let is_unknown = all.any(|sent| sent.state == State::Unknown);
        let is_above = self.sent.front().is_some_and(|sent| match sent.state {
            State::At(uid) => uid > self.known,
            _ => false,
        });
        self.is_stale || is_unknown || is_above
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn won(generation: u64, uid: u32) -> Won {
        Won {
            commit: MailId([1; 16]),
            generation,
            uid_validity: 7,
            uid,
        }
    }

    fn listed(uid: u32) -> Listed {
        Listed {
            uid,
            size: 1,
            subject: format!("note {uid}"),
        }
    }

    /// Another mount's older mail is shown late: the own commit behind waits for the mail.
    #[test]
    fn a_mail_that_is_shown_late_is_waited_for() {
        let (mut chain, own) = with_own_at(12);
        assert_eq!(chain.poll(), Some(Next::List(11)));
        let with_own = |mut mails: Vec<Listed>| {
            mails.push(Listed {
                subject: subject_of(own),
                ..listed(12)
            });
            mails
        };
        assert!(chain.listed(7, with_own(Vec::new())));
        assert_eq!(chain.poll(), None, "UID 11 may come yet");
        chain.look_again();
        assert_eq!(chain.poll(), Some(Next::List(11)));
        assert!(chain.listed(7, with_own(vec![listed(11)])));
        assert!(matches!(chain.poll(), Some(Next::Won(won)) if won.uid == 12));
    }

    /// A UID that stays away is absent, and nothing is appended twice.
    #[test]
    fn a_uid_that_two_listings_lack_is_absent() {
        let (mut chain, own) = with_own_at(13);
        for round in 0..2 {
            chain.look_again();
            assert_eq!(chain.poll(), Some(Next::List(11)), "{round}");
            let own = Listed {
                subject: subject_of(own),
                ..listed(13)
            };
            assert!(chain.listed(7, vec![own]));
        }
        assert!(matches!(chain.poll(), Some(Next::Won(won)) if won.uid == 13));
    }

    /// The own mail is not shown for a moment, while a younger one is: the same octets are not sent again.
    #[test]
    fn an_own_mail_that_is_shown_late_is_not_sent_again() {
        let (mut chain, _own) = with_own_at(12);
        assert_eq!(chain.poll(), Some(Next::List(11)));
        assert!(chain.listed(7, vec![listed(11), listed(13)]));
        assert!(matches!(chain.poll(), Some(Next::Won(won)) if won.uid == 12));
    }

    /// A chain that ends with UID 10, and a commit of the mount stored at this UID.
    fn with_own_at(uid: u32) -> (Chain, MailId) {
        let mut chain = Chain::new(won(3, 10), 10);
        let own = MailId([2; 16]);
        chain.send(own, Bytes::from_static(b"mail"));
        assert!(matches!(chain.poll(), Some(Next::Append(..))));
        chain.appended(own, Some((7, uid)));
        (chain, own)
    }

    fn subject_of(mail: MailId) -> String {
        let head = crate::format::Head {
            mail,
            ..crate::format::Builder::new(
                Kind::Commit,
                crate::format::VolumeId([9; 16]),
                1,
                0,
                crate::format::PackNumber(1),
            )
            .finish(Bytes::from_static(b"x"), &keys())
            .unwrap()
            .head
        };
        Subject::of(&head, Some(MailId([1; 16])), Some(4)).to_string()
    }

    fn keys() -> crate::format::Keys {
        crate::format::Keys::derive(&crate::format::VolumeKey([3; 32]))
    }
}
