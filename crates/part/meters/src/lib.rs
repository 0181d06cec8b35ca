//! How much accounts have sent within the last hour.
//!
//! Each count is a bucket that leaks: a message fills the bucket by one, and in an hour a full bucket runs empty. A bucket that is empty takes
//! as much at once as the bound of an hour, so that a client with a day's mail is served; the most in any hour is twice the bound.
//!
//! [`pressure`] has the bounds that all mail shares.

pub mod pressure;

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
pub struct Meters {
    accounts: RefCell<HashMap<Box<str>, Meter>>,
    /// Accounts at the next sweep.
    sweep_at: Cell<usize>,
}

/// The counts of an account.
#[derive(Debug, Clone, Copy)]
struct Meter {
    since: Instant,
    sent: Buckets,
    /// Mail that is held has as much room again: held mail takes room in queues, until an operator decides.
    held: Buckets,
    /// Whether the log has said that the account is over its bound.
    is_told: bool,
}

/// The buckets of messages and recipients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Buckets {
    messages: Level,
    recipients: Level,
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

impl Buckets {
    fn leak(&mut self, passed: Duration, bounds: &AccountSending) {
        self.messages.leak(passed, bounds.messages_per_hour);
        self.recipients.leak(passed, bounds.recipients_per_hour);
    }

    fn fits(&self, recipients: u32, bounds: &AccountSending) -> bool {
        self.messages.fits(1, bounds.messages_per_hour)
            && self.recipients.fits(recipients, bounds.recipients_per_hour)
    }

    fn fill(&mut self, recipients: u32) {
        self.messages.fill(1);
        self.recipients.fill(recipients);
    }

    fn give_back(&mut self, recipients: u32) {
        self.messages.give_back(1);
        self.recipients.give_back(recipients);
    }
}

impl Meter {
    fn new(now: Instant) -> Self {
        Self {
            since: now,
            sent: Buckets::default(),
            held: Buckets::default(),
            is_told: false,
        }
    }

    fn leak(&mut self, bounds: &AccountSending, now: Instant) {
        let passed = now.saturating_duration_since(self.since);
        // The rest below a millisecond counts next time.
        let passed = Duration::from_millis(u64::try_from(passed.as_millis()).unwrap_or(u64::MAX));
        self.since += passed;
        self.sent.leak(passed, bounds);
        self.held.leak(passed, bounds);
        if self.sent == Buckets::default() {
            self.is_told = false;
        }
    }

    /// The buckets with room for a message, and whether it is to be held; `None` where no more may be sent.
    fn room(&mut self, sending: &Sending, bounds: &AccountSending, recipients: u32) -> Room<'_> {
        let may_hold = sending.over == OverSending::Hold;
        if self.sent.fits(recipients, bounds) {
            Room::Sent(&mut self.sent)
        } else if may_hold && self.held.fits(recipients, bounds) {
            Room::Held(&mut self.held)
        } else {
            Room::None
        }
    }

    /// Whether the log is to say that the account is over its bound.
    fn is_news(&mut self) -> bool {
        !std::mem::replace(&mut self.is_told, true)
    }
}

/// Where a message has room.
enum Room<'a> {
    /// Within the bounds.
    Sent(&'a mut Buckets),
    /// Over the bounds: the message is held.
    Held(&'a mut Buckets),
    None,
}

/// A message of an account that may be stored.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the count is given back when the message is not stored"]
pub struct Charged {
    account: Box<str>,
    recipients: u32,
    is_held: bool,
}

impl Charged {
    /// Whether the message is over a bound and waits for an operator.
    pub const fn is_held(&self) -> bool {
        self.is_held
    }

    /// Takes the count of a message back that was not stored.
    pub fn give_back(self, meters: &Meters) {
        if let Some(meter) = meters.accounts.borrow_mut().get_mut(&self.account) {
            match self.is_held {
                true => meter.held.give_back(self.recipients),
                false => meter.sent.give_back(self.recipients),
            }
        }
    }
}

impl Meters {
    /// Whether an account may send another message now, before its recipients are known.
    ///
    /// # Errors
    /// [`Refusal::RateLimited`] when the account has sent as much as may be.
    pub fn may_begin(&self, sending: &Sending, account: &str, now: Instant) -> Result<(), Refusal> {
        let (bounds, account) = (sending.of(account), key(account));
        let news = self.with(&account, &bounds, now, |meter| {
            match meter.room(sending, &bounds, 1) {
                Room::None => Some(meter.is_news()),
                Room::Sent(_) | Room::Held(_) => None,
            }
        });
        match news {
            None => Ok(()),
            Some(is_news) => {
                tell(&account, is_news);
                Err(Refusal::RateLimited)
            }
        }
    }

    /// Counts a message with so many recipients.
    ///
    /// # Errors
    /// [`Refusal::RateLimited`] where the message is over a bound and is not to be held; a refusal for good where the message
    /// alone has more recipients than a whole hour may have.
    pub fn charge(
        &self,
        sending: &Sending,
        account: &str,
        recipients: u32,
        now: Instant,
    ) -> Result<Charged, Refusal> {
        let (bounds, account) = (sending.of(account), key(account));
        let (is_held, is_news) = self.with(&account, &bounds, now, |meter| {
            match meter.room(sending, &bounds, recipients) {
                Room::Sent(buckets) => {
                    buckets.fill(recipients);
                    (Some(false), false)
                }
                Room::Held(buckets) => {
                    buckets.fill(recipients);
                    (Some(true), meter.is_news())
                }
                Room::None => (None, meter.is_news()),
            }
        });
        tell(&account, is_news);
        match is_held {
            Some(is_held) => Ok(Charged {
                account,
                recipients,
                is_held,
            }),
            None => Err(match bounds.recipients_per_hour {
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

/// The name of an account as the directory compares names: in lower case.
fn key(account: &str) -> Box<str> {
    account.to_lowercase().into_boxed_str()
}

/// Says once that an account is over its bound; the account has to be idle before the log says so again.
fn tell(account: &str, is_news: bool) {
    if is_news {
        tracing::warn!(account, "account has sent as much as may be");
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
        let charged = meters.charge(sending, account, recipients, at);
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
            account: "ann".into(),
            recipients: 3,
            is_held: false,
        };
        charged.give_back(&meters);
        assert_eq!(send(3), Ok(WITHIN));
    }

    #[test]
    fn mail_over_a_bound_is_held_where_the_settings_say_so_up_to_the_bound_again() {
        let (meters, now) = (Meters::default(), Instant::now());
        let sending = sending(2, 5, OverSending::Hold);
        let send = |recipients, at| charge(&meters, &sending, ("ann", recipients), now + at);
        assert_eq!(send(5, minutes(0)), Ok(WITHIN));
        assert_eq!(send(4, minutes(0)), Ok(HELD));
        let begins = |at| meters.may_begin(&sending, "ann", now + at);
        assert_eq!(begins(minutes(0)), Ok(()));
        assert_eq!(send(2, minutes(0)), Err(Refusal::RateLimited));
        assert_eq!(send(1, minutes(0)), Ok(HELD));
        assert_eq!(begins(minutes(0)), Err(Refusal::RateLimited));
        assert!(send(6, minutes(0)).is_err_and(|refusal| refusal.is_permanent()));
        // A held message that was not stored does not count either.
        let charged = Charged {
            account: "ann".into(),
            recipients: 1,
            is_held: true,
        };
        charged.give_back(&meters);
        assert_eq!(send(1, minutes(0)), Ok(HELD));
        assert_eq!(send(5, minutes(60)), Ok(WITHIN));
    }

    /// A client that tried again at MAIL alone left no line in the log, and the next theft of a password none at all.
    #[test]
    fn the_log_says_so_once_until_the_account_was_idle() {
        let now = Instant::now();
        let bounds = sending(1, 0, OverSending::Defer).default;
        let mut meter = Meter::new(now);
        meter.sent.fill(1);
        assert!(meter.is_news() && !meter.is_news());
        meter.leak(&bounds, now + minutes(59));
        assert!(!meter.is_news());
        meter.leak(&bounds, now + minutes(60));
        assert!(meter.is_news());
        // Rests below a millisecond add up.
        meter.sent.fill(1);
        for step in 0..7_200_000_u64 / 1_000 {
            let at = now + minutes(60) + Duration::from_micros(step * 500);
            meter.leak(&bounds, at);
        }
        assert!(meter.sent.messages.0 < HOUR - 3_590);
    }

    #[test]
    fn an_account_has_one_bound_however_its_name_is_written() {
        let (meters, now) = (Meters::default(), Instant::now());
        let sending = sending(1, 0, OverSending::Defer);
        assert_eq!(
            charge(&meters, &sending, ("ann@a.example", 1), now),
            Ok(WITHIN)
        );
        assert_eq!(
            charge(&meters, &sending, ("Ann@A.example", 1), now),
            Err(Refusal::RateLimited)
        );
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
    fn an_account_that_sent_within_the_hour_is_not_forgotten() {
        let (meters, now) = (Meters::default(), Instant::now());
        let sending = sending(1, 0, OverSending::Defer);
        let send = |name: &str, at| charge(&meters, &sending, (name, 1), now + at);
        assert_eq!(send("old", minutes(0)), Ok(WITHIN));
        assert_eq!(send("new", minutes(1)), Ok(WITHIN));
        for number in 2..SWEEP_FROM {
            assert_eq!(send(&format!("{number}"), minutes(30)), Ok(WITHIN));
        }
        assert_eq!(send("one", minutes(60)), Ok(WITHIN));
        let has = |name: &str| meters.accounts.borrow().contains_key(name);
        assert!(!has("old") && has("new") && has("2"));
        assert_eq!(send("2", minutes(60)), Err(Refusal::RateLimited));
        // The next sweep comes when there are twice as many.
        assert_eq!(meters.sweep_at.get(), (SWEEP_FROM - 1) * 2);
    }

    #[test]
    fn counts_are_given_back_to_their_own_account() {
        let (meters, now) = (Meters::default(), Instant::now());
        let sending = sending(1, 5, OverSending::Defer);
        let charged = meters.charge(&sending, "Ann", 5, now).unwrap();
        let _ = meters.charge(&sending, "bob", 5, now).unwrap();
        charged.give_back(&meters);
        let send = |name| charge(&meters, &sending, (name, 5), now);
        assert_eq!(send("ann"), Ok(WITHIN));
        assert_eq!(send("bob"), Err(Refusal::RateLimited));
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
