//! What a collection knows and decides: the time of the volume ([`clock`]), mails without rows ([`listing`]), what files need of
//! packs ([`scan`]), files in many pieces ([`fragments`], [`anew`]), what the past needs ([`history`], [`walk`], [`losers`]), key slots that count no more ([`slots`]), tombstones ([`collect`]), and the ways of rows and mails ([`rows`]).

pub mod anew;
pub mod clock;
pub mod collect;
pub mod fragments;
pub mod history;
pub mod listing;
pub mod losers;
pub mod rows;
pub mod scan;
pub mod slots;
pub mod walk;

#[cfg(test)]
mod tests;
