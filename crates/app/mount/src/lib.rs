//! `vere fs`: volumes on mail accounts, mounted as file systems.
//!
//! The process of a mount has an owner of the engine (`host`); loops of the kernel's calls, the thread of the accounts,
//! workers and the thread of the disk reach the engine by a channel.

mod accounts;
mod args;
mod attempts;
mod bars;
mod bring_in;
mod budgets;
mod cache;
mod change;
mod collections;
mod commands;
mod control;
mod copies;
mod engine;
mod facts;
mod figures;
mod folders;
pub mod fstab;
mod groups;
mod held;
mod hex;
mod host;
mod init;
mod joining;
mod leads;
mod leaving;
mod lines;
mod links;
mod listings;
mod mount;
mod news;
mod open;
mod passwd;
mod probe;
mod progress;
mod promote;
mod promoting;
mod provider;
mod rebuild;
mod reopen;
mod rollback;
mod runs;
mod secrets;
mod sections;
mod serve;
mod session;
mod slots;
mod status;
mod succession;
mod swap;
mod tags;
mod upkeep;
mod volume;
mod ways;

use std::process::ExitCode;

use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use vere_process::failure::Failure;

pub use args::{
    AccountArgs, AccountsCommand, AddArgs, CheckArgs, FsCommand, GcArgs, InitArgs, LeadArgs, Mode,
    ModeArgs, MountArgs, PasswdArgs, RebuildArgs, RemoveArgs, SecretArgs, StrategyWord, UmountArgs,
    VolumeArgs,
};

/// Runs a command of `vere fs`, and gives the text to print and the exit code.
///
/// # Errors
/// The reason why the command failed, with the remedy if known.
pub fn run(command: &FsCommand) -> Result<(String, ExitCode), Failure> {
    keep_from_dumps();
    let text = match command {
        FsCommand::Check(args) => return upkeep::check(args),
        FsCommand::Rebuild(args) => return rebuild::run(args),
        FsCommand::Gc(args) => return upkeep::collect(args),
        FsCommand::Init(args) => init::run(args),
        FsCommand::Mount(args) => mount::run(args).map(|()| String::new()),
        FsCommand::Umount(args) => commands::umount(args),
        FsCommand::Status(args) => commands::status(args),
        FsCommand::Sync(args) => commands::sync(args),
        FsCommand::Mode(args) => commands::mode(args),
        FsCommand::Accounts {
            command: AccountsCommand::List(args),
        } => commands::accounts(args),
        FsCommand::Accounts {
            command: AccountsCommand::Add(args),
        } => joining::run(args),
        FsCommand::Accounts {
            command: AccountsCommand::Remove(args),
        } => leaving::run(args),
        FsCommand::Accounts {
            command: AccountsCommand::Lead(args),
        } => promote::command(args),
        FsCommand::Passwd(args) => passwd::run(args),
    };
    text.map(|text| (text, ExitCode::SUCCESS))
}

/// A dump of a process would have keys and passphrases; a debugger of the same user too.
fn keep_from_dumps() {
    // Without the right the system's own limits count.
    let _kept = prctl::set_dumpable(false);
    let _kept = setrlimit(Resource::RLIMIT_CORE, 0, 0);
}

#[cfg(test)]
mod tests {
    use super::{FsCommand, VolumeArgs, run};
    use nix::sys::prctl;
    use nix::sys::resource::{Resource, getrlimit};

    #[test]
    fn no_command_leaves_a_dump() {
        let args = VolumeArgs {
            name: "/nonexistent/home.toml".to_owned(),
            json: false,
        };
        run(&FsCommand::Status(args)).unwrap_err();
        assert!(!prctl::get_dumpable().unwrap());
        assert_eq!(getrlimit(Resource::RLIMIT_CORE).unwrap(), (0, 0));
    }
}
