//! `vere role`: one process of a role. The table of roles (`vere_supervisor::roles`) has the subcommands, the program
//! the functions that run them.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Command, FromArgMatches, Subcommand};
use vere_supervisor::roles::{self as table, ROLES};
use vere_supervisor::spec::RoleSpec;

use vere_process::config as file;
use vere_process::entry;
use vere_process::failure::Failure;
use vere_process::log::{self, Level};
use vere_process::outcome::Outcome;
use vere_process::settings::role_settings;

use crate::roles::{Roles, Run, Start};

/// A subcommand of `vere role`.
#[derive(Debug)]
pub(super) struct RoleCommand {
    spec: &'static RoleSpec,
    instance: Option<String>,
}

impl FromArgMatches for RoleCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let (name, matches) = matches
            .subcommand()
            .ok_or_else(|| clap::Error::new(ErrorKind::MissingSubcommand))?;
        let spec =
            table::named(name).ok_or_else(|| clap::Error::new(ErrorKind::InvalidSubcommand))?;
        let instance = spec.option.and_then(|option| matches.get_one(option));
        Ok(Self {
            spec,
            instance: instance.cloned(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for RoleCommand {
    fn augment_subcommands(command: Command) -> Command {
        command.subcommands(ROLES.iter().map(subcommand))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        table::named(name).is_some()
    }
}

fn subcommand(spec: &RoleSpec) -> Command {
    let option = spec.option.map(|option| {
        Arg::new(option)
            .long(option)
            .value_name("NAME")
            .required(true)
            .help("Its name in the settings")
    });
    Command::new(spec.name).about(spec.about).args(option)
}

/// Runs the process until its end. `config` is the file of `-c`.
///
/// # Errors
/// When there are no settings, or the role fails.
pub(super) fn run(
    command: RoleCommand,
    config: Option<&Path>,
    roles: &Roles,
) -> Result<Outcome, Failure> {
    let RoleCommand { spec, instance } = command;
    let row = roles.run.iter().find(|(name, _)| *name == spec.name);
    let run = match row {
        Some((_, Run::Supervised(run))) => run,
        Some((_, Run::Alone(run))) => {
            run()?;
            return Ok(Outcome::Exit(ExitCode::SUCCESS));
        }
        None => return Err(Failure::new(format!("nothing runs the role {}", spec.name))),
    };
    if let Err(code) = entry::child_setup() {
        return Ok(Outcome::Exit(code));
    }
    let config = file::find(config)?;
    let settings = Arc::new(role_settings(&config)?);
    let process = spec.process(instance.as_deref());
    let log = log::start(&settings, &process)?;
    run(Start {
        settings,
        config,
        level: Level::of(&log, &process),
        instance,
    })?;
    Ok(Outcome::Exit(ExitCode::SUCCESS))
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::*;
    use crate::Cli;

    #[test]
    fn the_table_and_the_command_line_have_the_same_roles() {
        let table: Vec<&str> = ROLES.iter().map(|spec| spec.name).collect();
        let cli = Cli::command();
        let role = cli.find_subcommand("role").unwrap();
        let commands: Vec<&str> = role.get_subcommands().map(Command::get_name).collect();
        assert_eq!(commands, table);
    }

    #[test]
    fn the_arguments_of_a_process_are_understood() {
        for spec in ROLES {
            let instance = spec.option.map(|_| "a");
            let arguments = spec.arguments(instance);
            let words = ["vere", "role"].map(str::to_owned).into_iter();
            let words = words.chain(arguments).chain(["-c", "F"].map(str::to_owned));
            let cli = format!("{:?}", Cli::try_parse_from(words).unwrap());
            assert!(cli.contains("config: Some(\"F\")"), "{cli}");
            assert!(cli.contains(&format!("name: {:?}", spec.name)), "{cli}");
            assert!(
                cli.contains(&format!("instance: {:?}", instance.map(str::to_owned))),
                "{cli}"
            );
        }
        assert!(Cli::try_parse_from(["vere", "role"]).is_err());
        assert!(Cli::try_parse_from(["vere", "role", "spool"]).is_err());
        assert!(Cli::try_parse_from(["vere", "role", "nobody"]).is_err());
    }
}
