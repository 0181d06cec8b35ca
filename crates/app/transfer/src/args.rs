//! Arguments that import and export have in common.

use std::path::PathBuf;

use clap::Args;
use vere_ports::directory::AccountName;

use super::place::ServerArgs;

/// What import and export have in common.
#[derive(Debug, Args)]
pub struct TransferArgs {
    /// The account of this mail store.
    #[arg(long, short = 'a', value_name = "ACCOUNT")]
    pub(super) account: AccountName,
    /// Only this mailbox, with levels separated by `/`; may be given several times.
    #[arg(long, value_name = "MAILBOX")]
    pub(super) only: Vec<String>,
    /// Puts everything below this mailbox; what would be in INBOX goes into it.
    #[arg(long, value_name = "MAILBOX")]
    pub(super) into: Option<String>,
    /// Says what would be done, and does nothing.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// The file that notes what was done; without it one in the data folder. The same command run again goes on
    /// where it was broken off, and brings only what is new; without the file it brings everything again.
    #[arg(long, value_name = "FILE")]
    pub(super) state: Option<PathBuf>,
    /// Shows no progress.
    #[arg(long, short)]
    pub(super) quiet: bool,
    #[command(flatten)]
    pub(super) server: ServerArgs,
}
