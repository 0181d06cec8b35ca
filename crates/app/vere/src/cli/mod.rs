//! The commands that a person types.

mod account;
mod alias;
mod bench;
mod config;
mod config_arg;
mod demo;
mod dial;
mod dkim;
mod domain;
mod examples;
mod json;
mod pages;
mod queue;
mod quickstart;
mod role;
mod spool;
pub(crate) mod trace;

use std::ffi::OsString;

use clap::{CommandFactory as _, Parser, Subcommand};

use vere_process::config as file;
use vere_process::failure::Failure;
use vere_process::log::{self, Level};
use vere_process::outcome::Outcome;

use config_arg::ConfigArg;

/// The mail system: takes, keeps, and delivers mail.
#[derive(Debug, Parser)]
#[command(name = "vere", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs the whole system until it is told to stop.
    Serve {
        #[command(flatten)]
        config: ConfigArg,
    },
    /// Writes a working configuration, makes the first account, and says what else is to be done.
    Quickstart(quickstart::QuickstartArgs),
    /// Manages accounts.
    Account {
        #[command(flatten)]
        config: ConfigArg,
        #[command(subcommand)]
        command: account::AccountCommand,
    },
    /// Manages the domains that mail is taken for.
    Domain {
        #[command(flatten)]
        config: ConfigArg,
        #[command(subcommand)]
        command: domain::DomainCommand,
    },
    /// Manages addresses that stand for others.
    Alias {
        #[command(flatten)]
        config: ConfigArg,
        #[command(subcommand)]
        command: alias::AliasCommand,
    },
    /// Manages the keys that sign mail (DKIM).
    Dkim {
        #[command(flatten)]
        config: ConfigArg,
        #[command(subcommand)]
        command: dkim::DkimCommand,
    },
    /// Checks a configuration file and names what is wrong in it, with lines.
    CheckConfig {
        #[command(flatten)]
        config: ConfigArg,
        #[command(flatten)]
        args: config::CheckConfigArgs,
    },
    /// Tells about the configuration.
    Config {
        #[command(subcommand)]
        command: config::ConfigCommand,
    },
    /// Looks into the queues of a running system.
    Queue {
        #[command(flatten)]
        config: ConfigArg,
        #[command(subcommand)]
        command: queue::QueueCommand,
    },
    /// Looks after the nodes that hold the queues.
    Spool {
        #[command(flatten)]
        config: ConfigArg,
        #[command(subcommand)]
        command: spool::SpoolCommand,
    },
    /// Brings mail into an account of the mail store: from mbox files, a Maildir, or an account elsewhere.
    Import {
        #[command(flatten)]
        config: ConfigArg,
        #[command(flatten)]
        args: vere_transfer::ImportArgs,
    },
    /// Brings mail out of an account of the mail store: into mbox files, a Maildir, or an account elsewhere.
    Export {
        #[command(flatten)]
        config: ConfigArg,
        #[command(flatten)]
        args: vere_transfer::ExportArgs,
    },
    /// Looks after the mail store's files, while the system is stopped; `explain` at any time.
    Store {
        #[command(flatten)]
        config: ConfigArg,
        #[command(subcommand)]
        command: vere_role_store::maintenance::StoreCommand,
    },
    /// Goes the way of a message to a domain or address, and sends none: exchangers, policies, TLS, RCPT. Exit
    /// code 0: it would be taken now, 3: it would wait, 4: refused for good.
    Dial {
        #[command(flatten)]
        config: ConfigArg,
        #[command(flatten)]
        args: dial::DialArgs,
    },
    /// Prints the way of a message, found by queue id, Message-ID or recipient.
    Trace {
        #[command(flatten)]
        config: ConfigArg,
        #[command(flatten)]
        args: trace::TraceArgs,
    },
    /// Sends mail from this machine, with the classic command line (docs/sendmail.md).
    Sendmail {
        /// As every program that knows sendmail gives them.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Writes the manual pages of this program.
    Man(pages::ManArgs),
    /// Prints a script that completes commands in a shell.
    Completions(pages::CompletionsArgs),
    /// Runs the bundled destination: takes mail for anybody and keeps it in a folder (vere-bench).
    #[command(disable_help_flag = true)]
    Sink {
        /// Those of `vere-bench sink`, which is executed.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Measures this program beside its peers on this machine (vere-bench).
    #[command(disable_help_flag = true)]
    Bench {
        /// Those of `vere-bench`, which is executed.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Runs a whole system for trying out below one folder.
    #[command(hide = true)]
    Demo {
        #[command(subcommand)]
        command: demo::DemoCommand,
    },
    /// One role's process, started by `vere serve`.
    #[command(hide = true)]
    Role {
        #[command(flatten)]
        config: ConfigArg,
        #[command(subcommand)]
        role: role::RoleCommand,
    },
}

/// Runs a command.
///
/// # Errors
/// Why it did not do what was asked.
pub(crate) fn run(cli: Cli) -> Result<Outcome, Failure> {
    match cli.command {
        Command::Serve { config } => {
            let (path, settings) = config.load()?;
            let log = log::start(&settings, "supervisor")?;
            let level = Level::of(&log);
            Ok(Outcome::Exit(vere_supervisor::run(settings, &path, level)?))
        }
        Command::Quickstart(args) => quickstart::run(&args).map(Outcome::Print),
        Command::Account { config, command } => {
            account::run(&command, &config.load()?.1).map(Outcome::Print)
        }
        Command::Domain { config, command } => {
            domain::run(&command, &config.load()?.1).map(Outcome::Print)
        }
        Command::Alias { config, command } => {
            alias::run(&command, &config.load()?.1).map(Outcome::Print)
        }
        Command::Dkim { config, command } => {
            dkim::run(&command, &config.load()?.1).map(Outcome::Print)
        }
        Command::CheckConfig { config, args } => {
            let (text, code) =
                config::check(&args, config.file(), || Ok(file::find(config.file())?))?;
            Ok(Outcome::Report(text, code))
        }
        Command::Config { command } => config::run(&command).map(Outcome::Print),
        Command::Demo { command } => demo::run(&command),
        Command::Queue { config, command } => {
            queue::run(&command, &config.load()?.1).map(Outcome::Print)
        }
        Command::Spool { config, command } => {
            spool::run(&command, &config.load()?.1).map(Outcome::Print)
        }
        Command::Store { config, command } => {
            vere_role_store::maintenance::run(&command, &config.load()?.1)
        }
        Command::Import { config, args } => vere_transfer::import(args, &config.load()?.1),
        Command::Export { config, args } => vere_transfer::export(args, &config.load()?.1),
        Command::Dial { config, args } => dial::run(&args, &config.load()?.1),
        Command::Trace { config, args } => trace::run(&args, &config.load()?.1).map(Outcome::Print),
        Command::Sendmail { words } => Ok(Outcome::Exit(vere_sendmail::run("sendmail", &words))),
        Command::Man(args) => pages::man(&args, Cli::command()).map(Outcome::Print),
        Command::Completions(args) => {
            Ok(Outcome::Print(pages::completions(&args, &Cli::command())))
        }
        Command::Sink { words } => bench::replace(std::iter::once("sink".into()).chain(words)),
        Command::Bench { words } => bench::replace(words),
        Command::Role { config, role } => role::run(role, config.file()),
    }
}
