//! The end of requests that look at a mailbox in slices.

use vere_ports::mail_accounts::Fault;

/// Commands of a request that looks at a mailbox in slices. At 1,000 UIDs a slice, as at the least known limit of a server, so
/// many commands see 65 million UIDs.
pub(super) const SLICES_MAX: u32 = 65_536;

/// The answer to a request that would need more commands.
pub(super) fn too_many_slices() -> Fault {
    Fault::Refused(format!("the mailbox needs over {SLICES_MAX} commands"))
}
