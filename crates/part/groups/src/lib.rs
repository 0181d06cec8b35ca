//! The groups of queues of a process: its own group, and groups adopted from dead processes.
//!
//! The crate [`vere_delivery`] has the state of a group, and decides the order in which records change. Here are the
//! surroundings of a group, the same for mail of SMTP and of X.400: the link to the spool, clocks and tasks, recovery,
//! the limits of all queues. A [`Trade`] says what a kind of mail makes of them.
//!
//! A process owns its group by [`own`], connects a link, makes the group by [`new`], and runs [`follow_link`],
//! [`follow_lease`], [`watch_nodes`](throttle::watch_nodes) and the scheduler of the group beside each other. It
//! accepts mail after [`wait_recovered`], ends when the group is [`fenced`], and stops by [`wind_down`].

mod connecting;
mod error;
mod following;
mod group;
mod groups;
mod ids;
pub mod throttle;
mod trade;

pub use connecting::{link_options, own};
pub use error::OwnError;
pub use following::{fenced, follow_lease, follow_link, wait_recovered, wind_down};
pub use group::{Group, GroupHost, STOP_PATIENCE, new, set_policy};
pub use groups::Groups;
pub use ids::TraceIds;
pub use trade::Trade;
