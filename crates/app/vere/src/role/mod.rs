//! What the processes of several roles are made of: [`life`] from start to stop, the role's half of the
//! supervisor's protocol ([`entry`], [`settings`], [`kept`]), [`places`] of connections, [`memory`] of messages
//! being received, octets of connections ([`wire`]), certificates ([`tls`]), the [`clock`], passwords
//! ([`login`], [`login_log`]) and those who guess them ([`guessing`]), the [`log`].

pub(crate) mod accept;
pub(crate) mod clock;
pub(crate) mod entry;
pub(crate) mod guessing;
pub(crate) mod kept;
pub(crate) mod life;
pub(crate) mod log;
pub(crate) mod login;
pub(crate) mod login_log;
pub(crate) mod memory;
pub(crate) mod pace;
pub(crate) mod places;
pub(crate) mod proxy;
pub(crate) mod settings;
pub(crate) mod tls;
pub(crate) mod upgrade;
pub(crate) mod wire;
