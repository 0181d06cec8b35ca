//! Type of the mail store: its log and its metadata lie in files.

use vere_disk::log::Directory as LogDirectory;
use vere_disk::mail_meta::FjallMeta;
use vere_store::Store;

/// The store as it runs.
pub(crate) type MailStore = Store<LogDirectory, FjallMeta>;
