//! The settings of an account of a volume.

use crate::budget::BudgetSettings;
use crate::progress::Times;
use crate::remote::Remote;

/// The default of [`AccountSettings::connections_max`].
pub const CONNECTIONS_DEFAULT: usize = 4;

/// An account of a volume.
#[derive(Debug, Clone)]
pub struct AccountSettings {
    /// Server and login.
    pub remote: Remote,
    /// The levels of the volume's folder below the account's own namespace, such as `VereFS` and `3f9c0a11`.
    pub folder: Vec<String>,
    /// Connections at the same time, from 1 on.
    pub connections_max: usize,
    /// Octets a day.
    pub budget: BudgetSettings,
    /// How long the server may take.
    pub times: Times,
}
