//! Backups of a running system, and restores from backups: `vere backup` and `vere restore`.
//!
//! `place` is where backups lie, `seal` encrypts, `repository` has objects named by content and a `manifest` for each
//! backup. `take` makes a backup of `sources`: the log of the mail store, held as of a single moment, and all further
//! files. `unpack` brings files back, for `verify`, `whole` (a new machine) and `mail` (messages, into the running
//! system). `prune` and `list` look after the backups. docs/internals/backup.md draws the format and lists the effects
//! of crashes.

mod args;
mod description;
mod fault;
mod last;
mod list;
mod mail;
mod pace;
mod place;
mod progress;
mod prune;
mod repository;
mod scratch;
mod seal;
mod secret;
mod sources;
mod storing;
mod take;
mod unpack;
mod verify;
mod whole;

use std::path::PathBuf;
use std::sync::Arc;

use vere_backup_list as manifest;
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_settings::Settings;

use args::BackupCommand;
pub use args::{BackupArgs, RestoreArgs};

/// The settings of a running system, and the settings file.
pub type Loaded = (PathBuf, Arc<Settings>);

/// Runs `vere backup`; `load` gives the settings.
///
/// # Errors
/// When a backup cannot be made, read or removed.
pub fn backup(
    args: &BackupArgs,
    load: impl FnOnce() -> Result<Loaded, Failure>,
) -> Result<Outcome, Failure> {
    match (&args.command, &args.take.place) {
        (Some(BackupCommand::List { at, json }), _) => list::run(at, *json),
        (
            Some(BackupCommand::Verify {
                at,
                which,
                objects,
                shown,
            }),
            _,
        ) => verify::run(at, which, *objects, shown),
        (
            Some(BackupCommand::Prune {
                at,
                keep,
                keep_days,
                dry_run,
                json,
            }),
            _,
        ) => prune::run(at, (*keep, *keep_days), *dry_run, *json),
        (None, Some(place)) => {
            let (config, settings) = load()?;
            take::run(&args.take, place, (&config, &settings))
        }
        (None, None) => Err(Failure::new("expected a place for the backup; found none")),
    }
}

/// Runs `vere restore`; `load` gives the settings of the running system, needed only to restore mail.
///
/// # Errors
/// When the backup cannot be read, or the files cannot be written.
pub fn restore(
    args: &RestoreArgs,
    load: impl FnOnce() -> Result<Loaded, Failure>,
) -> Result<Outcome, Failure> {
    match (&args.to, &args.account) {
        (Some(data), _) => whole::run(args, data),
        (None, Some(account)) => mail::run(args, account, &load()?.1),
        (None, None) => Err(Failure::new("expected --to or --account; found neither")),
    }
}
