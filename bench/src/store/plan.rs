//! How much is measured.

use std::time::Duration;

use super::StoreArgs;

/// How much is measured.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// Messages of the mailbox that is read.
    pub(super) messages: usize,
    /// Messages of the small account.
    pub(super) small: usize,
    pub(super) rounds: usize,
    pub(super) starts: usize,
    pub(super) appends: usize,
    pub(super) notices: usize,
    pub(super) deliveries: usize,
    /// Messages that are delivered to fifteen mailboxes beside Postfix.
    pub(super) spread: usize,
    /// Whether files are read from the disk, which makes the whole machine read them again.
    pub(super) cold: bool,
    /// Connections that idle; only ours is asked for so many.
    pub(super) idlers: usize,
    /// Only tasks whose names begin so.
    pub(super) only: String,
    /// A system that takes longer to answer a question is asked it once.
    pub(super) question_max: Duration,
    /// No further round begins after this time.
    pub(super) budget: Duration,
}

impl Plan {
    pub(super) fn of(args: &StoreArgs) -> Self {
        let plan = match args.common.quick {
            true => Self {
                messages: 2_000,
                small: 100,
                rounds: 2,
                starts: 1,
                appends: 100,
                notices: 5,
                deliveries: 50,
                spread: 20,
                cold: false,
                idlers: 200,
                only: String::new(),
                question_max: Duration::from_secs(1),
                budget: Duration::from_secs(45),
            },
            false => Self {
                messages: 21_000,
                small: 1_000,
                rounds: 5,
                starts: 3,
                appends: 1_000,
                notices: 20,
                deliveries: 500,
                spread: 200,
                cold: true,
                idlers: 10_000,
                only: String::new(),
                question_max: Duration::from_secs(20),
                budget: Duration::from_secs(3_600),
            },
        };
        Self {
            messages: args.messages.unwrap_or(plan.messages),
            cold: match &args.only {
                Some(only) => "cold".starts_with(&**only),
                None => plan.cold,
            },
            only: args.only.clone().unwrap_or_default(),
            ..plan
        }
    }

    /// Whether one of these tasks is wanted.
    pub(super) fn wants(&self, tasks: &[&str]) -> bool {
        tasks.iter().any(|task| task.starts_with(&self.only))
    }
}
