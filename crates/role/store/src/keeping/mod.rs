//! How long expunged messages are kept: by the age of the log that is certain ([`ages`]), by the size that an account
//! may keep, and shorter while the disk is nearly full.

mod ages;
mod changed;
mod scarce;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use vere_ports::directory::AccountName;
use vere_settings::MailStore as Plan;
use vere_store::{Excess, KeepLimit, LetGo, Position, StoreError};

use super::mail_store::MailStore;
use super::metrics::Figures;
use super::quota::Quotas;
use super::share::pause;
use super::steps::at_once;
use ages::Ages;
use changed::{Changed, LeftOut};
pub(super) use scarce::Room;
use scarce::Scarce;
use vere_process::clock::now;

/// The longest and the shortest time between two looks at ages.
const LOOK_MAX: Duration = Duration::from_secs(600);
const LOOK_MIN: Duration = Duration::from_secs(1);
/// The first look of a process comes this long after its start: sessions come back first.
const FIRST_LOOK: Duration = Duration::from_secs(20);
/// How long accounts that expunge a lot may exceed their size.
const CHANGED_INTERVAL: Duration = Duration::from_secs(5);
/// Accounts asked for at once.
const ACCOUNTS: usize = 100;
/// Messages that an account keeps at most: rows of metadata are for messages that clients see.
const MESSAGES_MAX: u64 = 1_000_000;
/// How long the work waits after accounts could not be listed, or too many of them could not be read.
const FAILED_PAUSE: Duration = Duration::from_secs(60);

/// The settings of kept messages.
#[derive(Debug, Clone)]
pub(super) struct Policy {
    keep: Duration,
    size: u64,
    quotas: Arc<Quotas>,
}

impl Policy {
    pub(super) fn new(plan: &Plan, quotas: Arc<Quotas>) -> Self {
        Self {
            keep: plan.keep_expunged.duration(),
            size: plan.keep_expunged_size.as_u64(),
            quotas,
        }
    }

    fn limit(&self, account: &AccountName, before: Position, excess: Excess) -> KeepLimit {
        let quota = self.quotas.of(account);
        KeepLimit {
            before,
            messages: quota.messages.unwrap_or(MESSAGES_MAX).min(MESSAGES_MAX),
            octets: quota.octets.unwrap_or(u64::MAX).min(self.size),
            excess,
        }
    }
}

/// A walk over all accounts.
#[derive(Debug, Default)]
struct Walk {
    /// Messages expunged before this position go.
    before: Position,
    queue: VecDeque<AccountName>,
    /// The limits that the first of these was about to go below.
    excess: Excess,
    after: Option<AccountName>,
    /// Whether all accounts were asked for.
    is_last: bool,
    /// Messages and octets that accounts keep, and that were let go.
    kept: (u64, u64),
    gone: (u64, u64),
    /// When the oldest messages were expunged that accounts keep.
    oldest: Option<Position>,
}

/// Why a walk is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    Age,
    Scarce,
}

/// Lets kept messages go, between questions to the store.
#[derive(Debug)]
pub(super) struct Keeping {
    file: PathBuf,
    figures: Figures,
    policy: Option<Policy>,
    ages: Ages,
    looked: Option<Instant>,
    look_due: Instant,
    walk: Option<(Reason, Walk)>,
    /// Whether the last walk for ages found nothing that goes.
    found_nothing: bool,
    changed: Changed,
    changed_due: Instant,
    /// Whether the walk goes on, before the next of the changed accounts: neither waits for the end of the other.
    is_walks_turn: bool,
    left_out: LeftOut,
    /// The parts that a nearly full disk lets go, and the room on the disk.
    scarce: Option<Scarce>,
    room: Room,
    due: Instant,
    /// The position up to which the last step was logged, and whether the next one waits for a sync of that.
    logged: Position,
    waits: bool,
    /// The sums of the last whole walk, and the change of the store's sums at its end.
    sums: Option<((u64, u64), (i64, i64))>,
}

impl Keeping {
    pub(super) fn new(file: PathBuf, store: &MailStore, figures: Figures) -> Self {
        let now = Instant::now();
        let ages = Ages::read(&file, store.log_id(), store.end());
        Self {
            file,
            figures,
            policy: None,
            ages,
            looked: None,
            look_due: now + FIRST_LOOK,
            walk: None,
            found_nothing: false,
            changed: Changed::default(),
            changed_due: now,
            is_walks_turn: false,
            left_out: LeftOut::default(),
            scarce: None,
            room: Room::default(),
            due: now,
            logged: Position::default(),
            waits: false,
            sums: None,
        }
    }

    /// Applies settings.
    pub(super) fn set(&mut self, policy: Policy, store: &mut MailStore) {
        store.set_keep_expunged(!policy.keep.is_zero());
        let before = self.policy.replace(policy);
        if before.is_some() {
            self.look_due = Instant::now();
            self.found_nothing = false;
            // A walk by the settings before would keep the next one from beginning.
            self.walk.take_if(|(reason, _)| *reason == Reason::Age);
        }
    }

    /// How long the work can wait.
    pub(super) fn patience(&self) -> Duration {
        if self.policy.is_none() || self.waits {
            // Settings and syncs wake the thread.
            return LOOK_MAX;
        }
        let is_working = self.walk.is_some() || !self.changed.is_empty();
        let next = match is_working {
            true => self.due,
            false => self.look_due.min(Instant::now() + CHANGED_INTERVAL),
        };
        next.saturating_duration_since(Instant::now())
    }

    /// Does a little of the work that is due. Returns whether a change was logged that no session waits for.
    ///
    /// # Errors
    /// When the store has failed.
    pub(super) fn step(
        &mut self,
        store: &mut MailStore,
        room: Room,
        share: u32,
    ) -> Result<bool, StoreError> {
        let began = Instant::now();
        let Some(policy) = self.policy.clone() else {
            return Ok(false);
        };
        self.room = room;
        self.begin(store, &policy);
        self.waits = self.logged > store.synced();
        if began < self.due || self.waits {
            return Ok(false);
        }
        let before = store.end();
        match self.work(store, &policy) {
            Ok(()) => {}
            Err(error @ StoreError::Failed(_)) => return Err(error),
            Err(error) => {
                tracing::error!(%error, "expunged messages cannot be let go now");
                self.due = began + FAILED_PAUSE;
            }
        }
        let logged = store.end() > before;
        if logged {
            (self.logged, self.waits) = (store.end(), true);
        }
        let pause = pause(began.elapsed(), share);
        self.due = self.due.max(Instant::now() + pause);
        self.tell(store);
        Ok(logged)
    }

    /// Begins walks that are due.
    fn begin(&mut self, store: &mut MailStore, policy: &Policy) {
        let now = Instant::now();
        if now >= self.changed_due {
            self.changed_due = now + CHANGED_INTERVAL;
            self.left_out.forget_old();
            for account in store.take_keepers() {
                self.changed.add(account);
            }
        }
        // Without a time only one walk at once has something to find.
        let has_walk = policy.keep.is_zero() && self.walk.is_some();
        if now >= self.look_due && !has_walk {
            self.look(store, policy);
        }
        if !self.room.is_scarce {
            self.scarce = None;
        } else if self.walk.is_none() {
            let scarce = self.scarce.get_or_insert(Scarce::new());
            let part = scarce.part(&self.ages, store.end(), &self.room, now);
            self.walk = part.map(|before| (Reason::Scarce, Walk::before(before)));
        }
    }

    /// Looks at ages, and begins a walk over all accounts if more is too old.
    fn look(&mut self, store: &MailStore, policy: &Policy) {
        let interval = match policy.keep.is_zero() && self.found_nothing {
            // No message is kept any more, so none becomes old.
            true => LOOK_MAX,
            false => (policy.keep / ages::MARKS).clamp(LOOK_MIN, LOOK_MAX),
        };
        let ran = self.looked.map(|looked| looked.elapsed());
        (self.looked, self.look_due) = (Some(Instant::now()), Instant::now() + interval);
        self.ages.look(store.end(), now(), ran, policy.keep);
        self.ages.write(&self.file);
        let before = match policy.keep.is_zero() {
            true => store.end(),
            false => self.ages.expired(policy.keep),
        };
        if self.walk.is_none() {
            self.walk = Some((Reason::Age, Walk::before(before)));
        }
    }

    /// Does one step for one account.
    fn work(&mut self, store: &mut MailStore, policy: &Policy) -> Result<(), StoreError> {
        self.is_walks_turn = !self.is_walks_turn && self.walk.is_some();
        if !self.is_walks_turn
            && let Some((account, excess)) = self.changed.take_next()
        {
            let limit = policy.limit(&account, Position::default(), excess);
            let Some(gone) = step(store, &account, &limit, &mut self.left_out)? else {
                return Ok(());
            };
            if gone.messages > 0 {
                self.figures.let_go(gone.messages, gone.octets);
                let messages = gone.messages;
                tracing::info!(%account, messages, "expunged messages let go: the account keeps too many");
            }
            if gone.more {
                self.changed.again(account, gone.excess);
            }
            return Ok(());
        }
        let Some((reason, walk)) = &mut self.walk else {
            return Ok(());
        };
        if walk.step(store, policy, &mut self.left_out)? {
            let (reason, walk) = (*reason, std::mem::take(walk));
            self.walk = None;
            self.finish(store, reason, &walk);
        }
        Ok(())
    }

    fn finish(&mut self, store: &MailStore, reason: Reason, walk: &Walk) {
        self.sums = Some((walk.kept, store.kept_since_opening()));
        let (messages, octets) = walk.gone;
        self.figures.let_go(messages, octets);
        match reason {
            _ if messages == 0 => {}
            Reason::Age => tracing::info!(messages, octets, "old expunged messages let go"),
            Reason::Scarce => tracing::warn!(
                messages,
                octets,
                "the disk is nearly full: expunged messages let go before store.keep_expunged"
            ),
        }
        match (reason, &mut self.scarce) {
            (Reason::Age, _) => self.found_nothing = messages == 0,
            (Reason::Scarce, Some(scarce)) => {
                scarce.walked(messages > 0, walk.oldest, &self.room, Instant::now());
            }
            (Reason::Scarce, None) => {}
        }
    }

    /// Sets the gauges.
    fn tell(&self, store: &MailStore) {
        let Some(((messages, octets), before)) = self.sums else {
            return;
        };
        let now = store.kept_since_opening();
        let sum = |walked: u64, now: i64, before: i64| {
            walked.saturating_add_signed(now.saturating_sub(before))
        };
        self.figures
            .kept(sum(messages, now.0, before.0), sum(octets, now.1, before.1));
    }
}

impl Walk {
    fn before(before: Position) -> Self {
        Self {
            before,
            ..Self::default()
        }
    }

    /// Does one step. Returns true after the last account.
    fn step(
        &mut self,
        store: &mut MailStore,
        policy: &Policy,
        left_out: &mut LeftOut,
    ) -> Result<bool, StoreError> {
        if self.queue.is_empty() {
            if self.is_last {
                return Ok(true);
            }
            let (names, next) = store.accounts_after(self.after.clone(), ACCOUNTS)?;
            self.queue.extend(names);
            self.is_last = next.is_none();
            self.after = next;
        }
        let Some(account) = self.queue.pop_front() else {
            return Ok(self.is_last);
        };
        let excess = std::mem::take(&mut self.excess);
        let limit = policy.limit(&account, self.before, excess);
        let Some(gone) = step(store, &account, &limit, left_out)? else {
            return Ok(self.is_last && self.queue.is_empty());
        };
        self.gone.0 += gone.messages;
        self.gone.1 += gone.octets;
        match gone.more {
            true => {
                self.excess = gone.excess;
                self.queue.push_front(account);
            }
            false => {
                self.kept.0 += gone.kept_messages;
                self.kept.1 += gone.kept_octets;
                let oldest = self.oldest.into_iter().chain(gone.oldest);
                self.oldest = oldest.min();
            }
        }
        Ok(self.is_last && self.queue.is_empty())
    }
}

/// Does one step for an account. A damaged account is left out for a while: the result is none then.
fn step(
    store: &mut MailStore,
    account: &AccountName,
    limit: &KeepLimit,
    left_out: &mut LeftOut,
) -> Result<Option<LetGo>, StoreError> {
    if left_out.has(account) {
        return Ok(None);
    }
    let gone = store.let_go(account, None, limit);
    match gone.and_then(|gone| at_once(store, gone)) {
        Ok(gone) => Ok(Some(gone)),
        // No fault of this account.
        Err(error @ (StoreError::Failed(_) | StoreError::DiskFull)) => Err(error),
        Err(error) => {
            tracing::error!(%account, %error, "expunged messages of an account cannot be let go now");
            match left_out.add(account.clone()) {
                true => Ok(None),
                false => Err(error),
            }
        }
    }
}
