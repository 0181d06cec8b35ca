//! A queue per destination: schedule, retry, expiry and reports.
//!
//! The engine decides; it never touches a socket, a clock or the spool. The gateway feeds it accepted
//! messages ([`Queues::admit`]) and the results of delivery attempts ([`Queues::settle`]), and carries
//! out what comes back: open a connection or fetch records ([`Queues::poll`]), deliver a message
//! ([`Queues::take`]), delete or replace a spool record, store a report.
//!
//! Reading order: [`destination`] (where a recipient goes), [`envelope`] (what the spool keeps of a
//! message beside its body, and its format), [`policy`] and [`queues`] (the schedule), [`settlement`] (what the result
//! of an attempt means for each recipient), [`delay`] (when senders are told to wait), [`report`] (delivery status notifications, RFC 3464), [`order`]
//! (what operators have ordered), [`ledger`] (what other systems are told), [`report_limit`] (how many
//! reports one sender gets), [`limits`] (what operators allow towards a destination), [`site`] (which
//! destinations the same hosts serve).

pub mod delay;
pub mod destination;
pub mod envelope;
pub mod ledger;
pub mod limits;
pub mod order;
pub mod policy;
pub mod queues;
pub mod report;
pub mod report_limit;
pub mod settlement;
pub mod site;

pub use destination::{Destination, Place};
pub use envelope::{
    BodyType, Envelope, HoldCause, Mail, Notify, Recipient, Ret, ScheduleHead, TlsWish,
};
pub use ledger::{Ledger, Subject};
pub use limits::{Limits, Precedence, Rate, Rules};
pub use order::{Detour, FOREVER, Order};
pub use policy::Policy;
pub use queues::{
    Answered, Expected, GateTotals, Job, MessageSummary, Next, QueueSummary, Queues, Sign,
    Standing, Step, Supplied, TopOrder, Totals, Wanted,
};
pub use report::{Report, ReportKind, ReportedRecipient};
pub use report_limit::ReportLimit;
pub use settlement::{Attempt, Disposition, RecipientResult, Settlement};
pub use site::SiteName;
