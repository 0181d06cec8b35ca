//! What the process of every role is made of.
//!
//! Reading order: [`life`] from start to stop, the role's half of the supervisor's protocol ([`entry`],
//! [`settings`], [`kept`]), [`places`] of connections, sessions ([`drive`], [`machine`]), [`memory`] of messages being
//! received, octets of connections ([`wire`], [`pace`]), certificates ([`tls`], [`encryption`]), two clocks ([`clock`],
//! [`boot_clock`]), the [`log`]; secrets of the machine ([`secret`]); files of a data directory that commands touch
//! ([`data_lock`], [`owner`], [`last_backup`]), and what a command says at its end
//! ([`outcome`], [`failure`], [`wording`]).

pub mod accept;
pub mod boot_clock;
pub mod clock;
pub mod config;
pub mod confirm;
pub mod data_lock;
pub mod drive;
pub mod encryption;
pub mod entry;
pub mod failure;
pub mod frames;
pub mod json;
pub mod kept;
pub mod last_backup;
pub mod life;
pub mod log;
pub mod machine;
pub mod memory;
pub mod outcome;
pub mod owner;
pub mod pace;
pub mod places;
pub mod present;
pub mod proxy;
pub mod published;
pub mod recovering;
pub mod refusals;
pub mod restoring;
pub mod secret;
pub mod settings;
pub mod signer;
pub mod smtp;
pub mod tls;
pub mod upgrade;
pub mod web_names;
pub mod wire;
pub mod wording;
