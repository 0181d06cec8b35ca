//! How much accounts have sent within the last hour.
//!
//! Each count is a bucket that leaks: a message fills the bucket by one, and in an hour a full bucket runs empty. A bucket that is empty takes
//! as much at once as the bound of an hour, so that a client with a day's mail is served; the most in any hour is twice the bound.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::time::{Duration, Instant};

use vere_settings::{AccountSending, OverSending, Sending};
use vere_smtp::refusal::Refusal;

/// Milliseconds in which a full bucket runs empty.
const HOUR: u64 = 3_600_000;
/// Accounts that are counted before empty buckets are looked for. Only accounts of the directory are counted.
const SWEEP_FROM: usize = 1_024;

/// The counts of all accounts.
#[derive(Debug, Default)]
pub(super) struct Meters {
    accounts: RefCell<HashMap<Box<str>, Meter>>,
    /// Accounts at the next sweep.
    sweep_at: Cell<usize>,
}

/// The counts of an account.
#[derive(Debug, Clone, Copy)]
struct Meter {
    since: Instant,
    messages: Level,
    recipients: Level,
    /// Whether the log has said that the account is over its bound.
    is_told: bool,
}

/// The level of a bucket, in parts of which one unit has [`HOUR`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Level(u64);

impl Level {
    /// Lets as much leak in this time as a bucket of this size does. A bucket that was larger until now is full at most; one
    /// without a size is empty.
    fn leak(&mut self, passed: Duration, size: Option<u32>) {
        let passed = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX);
        let size = size.map_or(0, u64::from);
        let left = self.0.min(size.saturating_mul(HOUR));
        self.0 = left.saturating_sub(passed.saturating_mul(size));
    }

    /// Whether so many units fit.
    fn fits(self, units: u32, size: Option<u32>) -> bool {
        let filled = self.0.saturating_add(u64::from(units).saturating_mul(HOUR));
        size.is_none_or(|size| filled <= u64::from(size).saturating_mul(HOUR))
    }

    fn fill(&mut self, units: u32) {
        self.0 = self.0.saturating_add(u64::from(units).saturating_mul(HOUR));
    }

    fn give_back(&mut self, units: u32) {
        self.0 = self.0.saturating_sub(u64::from(units).saturating_mul(HOUR));
    }
}

impl Meter {
    const fn new(now: Instant) -> Self {
        Self {
            since: now,
            messages: Level(0),
            recipients: Level(0),
            is_told: false,
        }
    }

    fn leak(&mut self, bounds: &AccountSending, now: Instant) {
        let passed = now.saturating_duration_since(self.since);
        self.since = now;
        self.messages.leak(passed, bounds.messages_per_hour);
        self.recipients.leak(passed, bounds.recipients_per_hour);
    }

    fn fits(&self, bounds: &AccountSending, recipients: u32) -> bool {
        self.messages.fits(1, bounds.messages_per_hour)
            && self.recipients.fits(recipients, bounds.recipients_per_hour)
    }
}

/// A message of an account that may be stored.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the count is given back when the message is not stored"]
pub(super) struct Charged {
    account: String,
    recipients: u32,
    /// Whether the message is over a bound: it is held, and does not count.
    is_held: bool,
}

impl Charged {
    /// Whether the message waits for an operator.
    pub(super) const fn is_held(&self) -> bool {
        self.is_held
    }

    /// Takes the count of a message back that was not stored.
    pub(super) fn give_back(self, meters: &Meters) {
        if self.is_held {
            return;
        }
        if let Some(meter) = meters.accounts.borrow_mut().get_mut(&*self.account) {
            meter.messages.give_back(1);
            meter.recipients.give_back(self.recipients);
        }
    }
}

impl Meters {
    /// Whether an account may send another message now, before its recipients are known.
    ///
    /// # Errors
    /// [`Refusal::RateLimited`] when the account has sent as much as may be, and more is not held.
    pub(super) fn may_begin(
        &self,
        sending: &Sending,
        account: &str,
        now: Instant,
    ) -> Result<(), Refusal> {
        let bounds = sending.of(account);
        let fits = self.with(account, &bounds, now, |meter| meter.fits(&bounds, 1));
        match fits || sending.over == OverSending::Hold {
            true => Ok(()),
            false => Err(Refusal::RateLimited),
        }
    }

    /// Counts a message with so many recipients.
    ///
    /// # Errors
    /// [`Refusal::RateLimited`] where the message is over a bound and is not to be held; a refusal for good where the message
    /// alone has more recipients than a whole hour may have.
    pub(super) fn charge(
        &self,
        sending: &Sending,
        account: String,
        recipients: u32,
        now: Instant,
    ) -> Result<Charged, Refusal> {
        let bounds = sending.of(&account);
        let (fits, is_news) = self.with(&account, &bounds, now, |meter| {
            let fits = meter.fits(&bounds, recipients);
            let is_news = !fits && !std::mem::replace(&mut meter.is_told, !fits);
            if fits {
                meter.messages.fill(1);
                meter.recipients.fill(recipients);
            }
            (fits, is_news)
        });
        if is_news {
            tracing::warn!(
                account = account.as_str(),
                recipients,
                "account has sent as much as may be"
            );
        }
        match (fits, sending.over) {
            (true, _) | (false, OverSending::Hold) => Ok(Charged {
                account,
                recipients,
                is_held: !fits,
            }),
            (false, OverSending::Defer) => Err(match bounds.recipients_per_hour {
                Some(most) if recipients > most => Refusal::Site {
                    permanent: true,
                    text: format!("an account may send to {most} recipients in an hour"),
                },
                _ => Refusal::RateLimited,
            }),
        }
    }

    fn with<T>(
        &self,
        account: &str,
        bounds: &AccountSending,
        now: Instant,
        look: impl FnOnce(&mut Meter) -> T,
    ) -> T {
        let mut accounts = self.accounts.borrow_mut();
        if accounts.len() >= self.sweep_at.get().max(SWEEP_FROM) {
            // A bucket is empty an hour after its last message, whatever its size.
            let hour = Duration::from_millis(HOUR);
            accounts.retain(|_, meter| now.saturating_duration_since(meter.since) < hour);
            self.sweep_at.set(accounts.len().saturating_mul(2));
        }
        let meter = match accounts.get_mut(account) {
            Some(meter) => meter,
            None => accounts
                .entry(account.into())
                .or_insert_with(|| Meter::new(now)),
        };
        meter.leak(bounds, now);
        look(meter)
    }
}

#[cfg(test)]
mod tests {
    use vere_settings::Senders;

    use super::*;

    const WITHIN: bool = false;
    const HELD: bool = true;

    fn sending(messages: u32, recipients: u32, over: OverSending) -> Sending {
        let default = AccountSending {
            senders: Senders::Own,
            messages_per_hour: Some(messages),
            recipients_per_hour: Some(recipients).filter(|most| *most > 0),
        };
        Sending {
            default,
            accounts: Vec::new(),
            over,
        }
    }

    /// Counts a message; whether it is held.
    fn charge(
        meters: &Meters,
        sending: &Sending,
        (account, recipients): (&str, u32),
        at: Instant,
    ) -> Result<bool, Refusal> {
        let charged = meters.charge(sending, account.to_owned(), recipients, at);
        charged.map(|charged| charged.is_held())
    }

    fn minutes(count: u64) -> Duration {
        Duration::from_secs(60 * count)
    }

    #[test]
    fn an_account_sends_its_bound_at_once_and_then_a_share_in_each_part_of_the_hour() {
        let (meters, now) = (Meters::default(), Instant::now());
        let sending = sending(6, 0, OverSending::Defer);
        let send = |at| charge(&meters, &sending, ("ann", 100), now + at);
        for _ in 0..6 {
            assert_eq!(send(minutes(0)), Ok(WITHIN));
        }
        assert_eq!(send(minutes(9)), Err(Refusal::RateLimited));
        let begins = |at| meters.may_begin(&sending, "ann", now + at);
        assert_eq!(begins(minutes(9)), Err(Refusal::RateLimited));
        assert_eq!(begins(minutes(10)), Ok(()));
        assert_eq!(send(minutes(10)), Ok(WITHIN));
        assert_eq!(send(minutes(10)), Err(Refusal::RateLimited));
        // Others are not concerned, and an hour later all is forgotten.
        assert_eq!(charge(&meters, &sending, ("bob", 1), now), Ok(WITHIN));
        for _ in 0..6 {
            assert_eq!(send(minutes(80)), Ok(WITHIN));
        }
        assert_eq!(send(minutes(80)), Err(Refusal::RateLimited));
    }

    #[test]
    fn recipients_count_apart_and_a_message_beyond_a_whole_hour_is_refused_for_good() {
        let (meters, now) = (Meters::default(), Instant::now());
        let sending = sending(100, 10, OverSending::Defer);
        let send = |recipients| charge(&meters, &sending, ("ann", recipients), now);
        assert!(send(11).is_err_and(|refusal| refusal.is_permanent()));
        assert_eq!(send(7), Ok(WITHIN));
        assert_eq!(send(4), Err(Refusal::RateLimited));
        assert_eq!(send(3), Ok(WITHIN));
        assert_eq!(
            meters.may_begin(&sending, "ann", now),
            Err(Refusal::RateLimited)
        );
        // What was not stored does not count.
        let charged = Charged {
            account: "ann".to_owned(),
            recipients: 3,
            is_held: false,
        };
        charged.give_back(&meters);
        assert_eq!(send(3), Ok(WITHIN));
    }

    #[test]
    fn mail_over_a_bound_is_held_where_the_settings_say_so_and_does_not_count() {
        let (meters, now) = (Meters::default(), Instant::now());
        let sending = sending(1, 5, OverSending::Hold);
        let send = |recipients, at| charge(&meters, &sending, ("ann", recipients), now + at);
        assert_eq!(send(6, minutes(0)), Ok(HELD));
        assert_eq!(send(5, minutes(0)), Ok(WITHIN));
        assert_eq!(send(1, minutes(1)), Ok(HELD));
        assert_eq!(meters.may_begin(&sending, "ann", now + minutes(1)), Ok(()));
        assert_eq!(send(1, minutes(60)), Ok(WITHIN));
    }

    #[test]
    fn sections_of_accounts_hold_for_them_and_no_bound_is_none() {
        let (meters, now) = (Meters::default(), Instant::now());
        let mut sending = sending(1, 1, OverSending::Defer);
        let free = AccountSending {
            senders: Senders::Foreign,
            messages_per_hour: None,
            recipients_per_hour: None,
        };
        sending.accounts = vec![("news".to_owned(), free)];
        for _ in 0..1_000 {
            let charged = charge(&meters, &sending, ("news", u32::MAX), now);
            assert_eq!(charged, Ok(WITHIN));
        }
        assert_eq!(charge(&meters, &sending, ("ann", 1), now), Ok(WITHIN));
        assert_eq!(
            charge(&meters, &sending, ("ann", 1), now),
            Err(Refusal::RateLimited)
        );
        // A bound that comes with a reload finds a full bucket at most.
        sending.accounts.clear();
        let send = |at| charge(&meters, &sending, ("news", 1), now + at);
        assert_eq!(send(minutes(0)), Err(Refusal::RateLimited));
        assert_eq!(send(minutes(60)), Ok(WITHIN));
    }

    #[test]
    fn accounts_that_were_silent_for_an_hour_are_forgotten() {
        let (meters, now) = (Meters::default(), Instant::now());
        let sending = sending(2, 2, OverSending::Defer);
        for number in 0..3_000 {
            let at = now + minutes(number);
            let name = format!("account{number}");
            assert_eq!(charge(&meters, &sending, (&name, 1), at), Ok(WITHIN));
        }
        assert!(meters.accounts.borrow().len() <= SWEEP_FROM + 1);
    }
}
