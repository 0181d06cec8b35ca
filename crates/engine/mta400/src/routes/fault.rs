//! Faults of rows.

use std::fmt;

use vere_x400::AddressError;

use crate::destination::{Destination, DestinationError};

/// A fault of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteError {
    /// The number of the row, from 1.
    pub number: usize,
    /// The address of the row.
    pub address: String,
    /// The fault.
    pub fault: RouteFault,
}

/// The kinds of faults.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RouteFault {
    /// The address is wrong.
    #[error(transparent)]
    Address(AddressError),
    /// The address has C and lower attributes without A, and matches no address.
    #[error(
        "expected A between C and lower attributes (`A= ` for an ADMD of one space); found none"
    )]
    Administration,
    /// `*` cannot be a whole address.
    #[error("expected an O/R address for a row with whole = true; found *")]
    EveryWhole,
    /// The target is wrong.
    #[error("{0}, or unknown")]
    Destination(#[from] DestinationError),
    /// The target has an unknown name.
    #[error("expected a {} of the settings; found {}", .0.parts().0, .0.parts().1)]
    NotThere(Destination),
    /// An earlier row is equal.
    #[error("expected the address once; row {0} has it too")]
    Twice(usize),
    /// An earlier row has another target.
    #[error("expected one target for the address; row {0} has {1}")]
    Contradiction(usize, String),
}

impl std::error::Error for RouteError {}

impl fmt::Display for RouteError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            number,
            address,
            fault,
        } = self;
        write!(out, "route {number} ({address}): {fault}")
    }
}
