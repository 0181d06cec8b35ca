//! Arguments that import and export have in common.

use std::path::PathBuf;

use clap::Args;
use vere_ports::directory::AccountName;

use super::place::ServerArgs;

/// The common arguments of import and export.
#[derive(Debug, Args)]
pub struct TransferArgs {
    /// The account of the local mail store.
    #[arg(long, short = 'a', value_name = "ACCOUNT")]
    pub(super) account: AccountName,
    /// Transfer only this mailbox, with levels separated by `/`; may be given several times.
    #[arg(long, value_name = "MAILBOX")]
    pub(super) only: Vec<String>,
    /// Put all mailboxes below this mailbox; the content of INBOX goes into the mailbox itself.
    #[arg(long, value_name = "MAILBOX")]
    pub(super) into: Option<String>,
    /// Print the planned transfer, and change nothing.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Record the finished steps in this file; the default is a file in the data directory. A repeated command
    /// continues from the record, and transfers only new messages; without the record, a repeated command transfers
    /// every message again.
    #[arg(long, value_name = "FILE")]
    pub(super) state: Option<PathBuf>,
    /// Show no progress.
    #[arg(long, short)]
    pub(super) quiet: bool,
    #[command(flatten)]
    pub(super) server: ServerArgs,
}
