//! The groups of queues of a process: its own group, and groups adopted from dead processes.
//!
//! The crate [`vere_delivery`] has the state of a group, and decides the order in which records change. Here are the
//! surroundings of a group, the same for mail of SMTP and of X.400: the link to the spool, clocks and tasks, recovery,
//! the limits of all queues. A [`Trade`] says what a kind of mail makes of them.
//!
//! A process owns its group by [`own`], connects a link, makes the group by [`new`], and runs [`follow_link`],
//! [`follow_lease`], [`watch_nodes`](throttle::watch_nodes) and the scheduler of the group beside each other. It
//! accepts mail after [`wait_recovered`], ends when the group is [`fenced`], and stops by [`wind_down`].

pub mod adopt;
mod connecting;
pub mod control;
pub mod drain;
mod error;
mod figures;
mod following;
pub mod gauges;
mod group;
mod groups;
mod ids;
mod policy;
mod takeover;
pub mod throttle;
mod trade;

pub use connecting::own;
pub use error::OwnError;
pub use following::{fenced, follow_lease, follow_link, wait_recovered, wind_down};
pub use group::{Group, GroupHost, STOP_PATIENCE, new};
pub use groups::Groups;
pub use ids::TraceIds;
pub use policy::policy;
pub use trade::Trade;
