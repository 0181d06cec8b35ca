//! The command line, and facts of other crates.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use vere_process::failure::Failure;
use vere_settings::Settings;

/// The content of the file.
#[derive(Debug, Args)]
pub struct BundleArgs {
    /// The file, which ends in .tar.zst or .tar.gz and must not exist; by default vere-support-TIME.tar.zst.
    #[arg(value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
    /// Replace addresses, domains, users and hosts by pseudonyms: equal names have equal pseudonyms within the file.
    #[arg(long)]
    pub(super) anonymous: bool,
    /// Leave out the DNS and connections to other systems.
    #[arg(long)]
    pub(super) no_dns: bool,
    /// A public address of this machine, also behind NAT, for the checks of the DNS. May be repeated.
    #[arg(long, value_name = "IP", conflicts_with = "no_dns")]
    pub(super) address: Vec<IpAddr>,
    /// Take the end of this file as the log; by default the journal of the unit vere.service.
    #[arg(long, value_name = "FILE")]
    pub(super) log: Option<PathBuf>,
    /// Print JSON: an object with `file`, `bytes` and `parts`, each with `name`, `bytes` and, if left out, `reason`.
    #[arg(long)]
    pub(super) json: bool,
}

/// A fact from a crate above: the name of the file in the bundle, a description, and the text.
pub type Further = (
    &'static str,
    &'static str,
    fn(&Settings) -> Result<String, Failure>,
);
