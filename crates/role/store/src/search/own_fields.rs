//! Header fields that only a recipient's copy of a message has.

use vere_store::{MailboxId, StoreError, Uid};

use crate::keeper::Keeper;
use crate::mail_store::MailStore;

/// Gives the rendered fields that only a recipient's copy of a message has.
pub(super) trait OwnFields: Sync {
    /// Returns the fields for each UID.
    ///
    /// # Errors
    /// The error of the store.
    fn own_fields(&self, id: MailboxId, uids: &[Uid]) -> Result<Vec<Vec<u8>>, StoreError>;
}

/// Asks the store's thread, and blocks: must not be used where waiting is forbidden.
pub(super) struct Asking(pub(super) Keeper);

impl OwnFields for Asking {
    fn own_fields(&self, id: MailboxId, uids: &[Uid]) -> Result<Vec<Vec<u8>>, StoreError> {
        let uids = uids.to_vec();
        self.0.ask_blocking(move |store| {
            let fields = own_fields(store, id, &uids);
            Ok(store.status(id)?.map(|_| fields))
        })?
    }
}

/// Returns the recipients' own fields, which precede the shared messages.
pub(super) fn own_fields(
    store: &MailStore,
    id: MailboxId,
    uids: &[Uid],
) -> Result<Vec<Vec<u8>>, StoreError> {
    uids.iter()
        .map(|uid| Ok(store.own_fields(id, *uid)?.render()))
        .collect()
}
