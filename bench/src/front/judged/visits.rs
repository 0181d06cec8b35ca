//! The sessions of a round.

use std::sync::Arc;
use std::time::Duration;

use super::names;
use crate::front::clients::{Load, Pace};
use crate::front::measure::Target;
use crate::front::visit::{Kind, Mix};
use crate::load::Letters;

/// Longest time for all messages of a round.
const TIME_MAX: Duration = Duration::from_secs(600);

/// Limit of the time of a session: fifty wait for one worker of rspamd.
const PATIENCE: Duration = Duration::from_secs(60);

/// The two mail systems.
pub(super) type Systems = [(&'static str, Target)];

/// Each letter once, in a session of its own.
pub(super) fn load(target: &Target, pace: Pace, letters: &Arc<Letters>) -> Load {
    let mix = Mix::only(Kind::Good(1));
    let load = Load::new(target.peer.address(), pace, mix, TIME_MAX, PATIENCE);
    load.proxied(names::clients()).with_letters(letters)
}
