//! The files that a command of root makes belong to the owner of the data directory.

use vere_process::owner::Owner;
use vere_settings::Settings;

/// Works with the rights of the owner of the data directory; without the directory there is nothing to own.
pub(super) fn owned<T>(settings: &Settings, work: impl FnOnce() -> T) -> T {
    match Owner::of(&settings.data) {
        Ok(owner) => owner.act(work),
        Err(_) => work(),
    }
}
