//! What the socket needs of the MTA.

use std::future::Future;
use std::rc::Rc;

use vere_attach::PeerRow;
use vere_mta400::{Mta, Source};
use vere_x400::Apdu;

use crate::budget::Budget;
use crate::kept::Kept;

/// A unit that is safe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// The MTS identifier.
    pub(crate) identifier: String,
    /// The id for `vere trace`.
    pub(crate) id: String,
}

/// Why a unit is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unaccepted {
    /// Whether the same unit may be accepted later.
    pub(crate) temporary: bool,
    /// The reason, for people.
    pub(crate) error: String,
}

/// The MTA, as the socket sees it.
pub(crate) trait Desk: 'static {
    /// The settings of now.
    fn mta(&self) -> Rc<Mta>;

    /// Deliveries at once for a gateway of the settings; `None` for another name.
    fn window(&self, name: &str) -> Option<u32>;

    /// Octets of a unit, at most.
    fn octets_max(&self) -> u64;

    /// The memory of coming units.
    fn budget(&self) -> &Rc<Budget>;

    /// The memory of interrupted transfers; such transfers give way to incoming units.
    fn kept(&self) -> &Kept;

    /// A new identifier for a message of this MTA.
    fn identifier(&self) -> String;

    /// Whether units are accepted now: a unit that is not need not wait for memory.
    ///
    /// # Errors
    /// The reason, for people.
    fn ready(&self) -> Result<(), &'static str>;

    /// Takes responsibility for a unit; ready when the unit is safe.
    fn accept(
        &self,
        unit: Apdu,
        source: Source<'_>,
    ) -> impl Future<Output = Result<Accepted, Unaccepted>>;

    /// Peers whose names are behind this one, in the order of names.
    fn peers(&self, after: Option<&str>) -> Vec<PeerRow>;

    /// A gateway attached: its messages are due.
    fn attached(self: &Rc<Self>, name: &str);
}
