//! The commands of `vere`.
//!
//! Of the roles only the store is linked here, for the maintenance of its files. The program hands over [`Roles`]: a
//! change inside another role compiles no command again.

mod account;
mod alias;
mod bench;
mod config;
mod config_arg;
mod demo;
mod difference;
mod dkim;
mod domain;
mod examples;
mod help;
mod node;
mod pages;
mod quarantine;
mod queue;
mod quickstart;
mod reports;
mod role;
mod roles;
mod settings_file;
mod spool;
mod trace;

use std::ffi::OsString;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use vere_app_judging::{explain, filter};
use vere_health::{auth, bundle, dial, dns, doctor, reload, resolve, status};
use vere_process::config as file;
use vere_process::failure::Failure;
use vere_process::log::{self, Level};
use vere_process::outcome::Outcome;
use vere_role_store::maintenance::{self, mailbox};

use config_arg::ConfigArg;
pub use roles::{Drain, Roles, Run, ServeLists, Start};

/// The mail system: accept, store and deliver mail.
#[derive(Debug, Parser)]
#[command(name = "vere", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the whole system until a signal stops it.
    Serve {
        #[command(flatten)]
        config: ConfigArg,
    },
    /// Put the edited settings in force, and wait until every role has applied them.
    ///
    /// Prints which settings changed. Settings that need a restart refuse the reload as a whole. Exit code 1: refused, or a
    /// role keeps its earlier settings.
    Reload {
        #[command(flatten)]
        config: ConfigArg,
        #[command(flatten)]
        args: reload::ReloadArgs,
    },
    /// Print the state of the whole system: roles, queues, replicas, certificates, disks, with a remedy for each finding.
    ///
    /// Exit codes as of monitoring plugins, 0: OK, 1: warning, 2: critical, 3: unknown.
    Status {
        #[command(flatten)]
        config: ConfigArg,
        #[command(flatten)]
        args: status::StatusArgs,
    },
    /// Examine settings, system, machine and DNS, and print a remedy for each finding.
    ///
    /// Works while the system runs and while it is stopped. Root sees most: without root some checks are left out, and say
    /// so. Exit codes as of monitoring plugins, 0: OK, 1: warning, 2: critical.
    Doctor {
        #[command(flatten)]
        config: ConfigArg,
        #[command(flatten)]
        args: doctor::DoctorArgs,
    },
    /// Write facts for a helper into one file, without passwords, keys and messages.
    ///
    /// Settings without secrets, status, findings, queues, metrics, versions, the end of the log. The command prints what
    /// the file has, and what was left out and why.
    SupportBundle {
        #[command(flatten)]
        config: ConfigArg,
        #[command(flatten)]
        args: bundle::BundleArgs,
    },
    /// Write working settings, create the first account, and print the remaining steps.
    Quickstart(quickstart::QuickstartArgs),
    /// Manage accounts.
    Account {
        #[command(flatten)]
        config: ConfigArg,
        #[command(subcommand)]
        command: account::AccountCommand,
    },
    /// Check passwords.
    Auth {
        #[command(flatten)]
        config: ConfigArg,
        #[command(subcommand)]
        command: auth::AuthCommand,
    },
    /// Manage the local domains.
    Domain {
        #[command(flatten)]
        config: ConfigArg,
        #[command(subcommand)]
        command: domain::DomainCommand,
    },
    /// Manage addresses whose mail goes to other addresses.
    Alias {
        #[command(flatten)]
        config: ConfigArg,
        #[command(subcommand)]
        command: alias::AliasCommand,
    },
    /// Manage the keys that sign mail (DKIM).
    Dkim {
        #[command(flatten)]
        config: ConfigArg,
        #[command(subcommand)]
        command: dkim::DkimCommand,
    },
    /// Check and print the DNS records that mail of the local domains needs.
    Dns {
        #[command(flatten)]
        config: ConfigArg,
        #[command(subcommand)]
        command: dns::DnsCommand,
    },
    /// Serve, ask, check and convert block lists.
    Dnsbl {
        #[command(flatten)]
        config: ConfigArg,
        #[command(subcommand)]
        command: vere_app_dnsbl::DnsblCommand,
    },
    /// Ask content filters about a message.
    Filter {
        #[command(flatten)]
        config: ConfigArg,
        #[command(subcommand)]
        command: filter::FilterCommand,
    },
    /// Check a configuration file and print every error, with lines.
    CheckConfig {
        #[command(flatten)]
        config: ConfigArg,
        #[command(flatten)]
        args: config::CheckConfigArgs,
    },
    /// Print facts about the configuration.
    Config {
        #[command(subcommand)]
        command: config::ConfigCommand,
    },
    /// Inspect and control the queues of a running system.
    Queue {
        #[command(flatten)]
        config: ConfigArg,
        /// Name the queues of the MTA of X.400, and not those of the gateway.
        #[arg(long, global = true)]
        x400: bool,
        #[command(subcommand)]
        command: queue::QueueCommand,
    },
    /// Inspect, release and remove messages kept aside by the judgement.
    Quarantine {
        #[command(flatten)]
        config: ConfigArg,
        #[command(subcommand)]
        command: quarantine::QuarantineCommand,
    },
    /// Manage the nodes that hold the queues.
    Spool {
        #[command(flatten)]
        config: ConfigArg,
        #[command(subcommand)]
        command: spool::SpoolCommand,
    },
    /// Let other machines hold the queues: invite and join nodes, renew their certificates, remove nodes.
    Node {
        #[command(flatten)]
        config: ConfigArg,
        #[command(subcommand)]
        command: node::NodeCommand,
    },
    /// Import mail into an account: from mbox files, a Maildir, or an IMAP account.
    Import {
        #[command(flatten)]
        config: ConfigArg,
        #[command(flatten)]
        args: vere_transfer::ImportArgs,
    },
    /// Export mail from an account: into mbox files, a Maildir, or an IMAP account.
    Export {
        #[command(flatten)]
        config: ConfigArg,
        #[command(flatten)]
        args: vere_transfer::ExportArgs,
    },
    /// Make a backup while everything runs; list, verify and remove backups.
    ///
    /// A backup has the mail store as of one moment, the directory, settings, keys and certificates. What an earlier
    /// backup in the same place has is not read again. Messages that wait in the queues are not in a backup.
    Backup {
        #[command(flatten)]
        config: ConfigArg,
        #[command(flatten)]
        args: Box<vere_backup::BackupArgs>,
    },
    /// Restore a backup: everything on a new machine, or mail of an account into the running system.
    Restore {
        #[command(flatten)]
        config: ConfigArg,
        #[command(flatten)]
        args: Box<vere_backup::RestoreArgs>,
    },
    /// Keep a file system on mail accounts: encrypted, on ordinary IMAP accounts.
    Fs {
        #[command(subcommand)]
        command: vere_mount::FsCommand,
    },
    /// Send, show and route X.400 messages; list the peers of the X.400 MTA.
    X400 {
        #[command(flatten)]
        config: ConfigArg,
        #[command(subcommand)]
        command: Box<vere_app_x400::X400Command>,
    },
    /// List mailboxes, and list, bring back or remove expunged messages.
    Mailbox {
        #[command(flatten)]
        config: ConfigArg,
        #[command(subcommand)]
        command: mailbox::MailboxCommand,
    },
    /// Check and measure the mail store at any time; repair and compact the files while the system is stopped.
    Store {
        #[command(flatten)]
        config: ConfigArg,
        #[command(subcommand)]
        command: maintenance::StoreCommand,
    },
    /// Dry-run a delivery to a domain or address, without sending a message.
    ///
    /// Looks up MX hosts and policies, negotiates TLS and tries RCPT. Exit code 0: the mail would be accepted now, 3:
    /// the mail would wait, 4: the mail would be refused permanently.
    Dial {
        #[command(flatten)]
        config: ConfigArg,
        #[command(flatten)]
        args: dial::DialArgs,
    },
    /// Print where mail for an address goes, by the directory and the settings alone.
    ///
    /// No host is asked; `vere dial` asks the next hop. Exit code 4: mail for an address is refused.
    Resolve {
        #[command(flatten)]
        config: ConfigArg,
        #[command(flatten)]
        args: resolve::ResolveArgs,
    },
    /// Print the trace of a message, found by queue id, Message-ID or recipient.
    Trace {
        #[command(flatten)]
        config: ConfigArg,
        #[command(flatten)]
        args: trace::TraceArgs,
    },
    /// Explain the verdict about a message, rule by rule: what was decided, and what would be decided now.
    ///
    /// For a queue id the facts are those of the trace; for a file they are gathered again by the DNS of now.
    Explain {
        #[command(flatten)]
        config: ConfigArg,
        #[command(flatten)]
        args: explain::ExplainArgs,
    },
    /// Sum up received reports about DMARC and TLS by domain and source, with what to do.
    Reports {
        #[command(flatten)]
        config: ConfigArg,
        #[command(flatten)]
        args: reports::ReportsArgs,
    },
    /// Send mail from the local machine, with the classic command line (docs/sendmail.md).
    Sendmail {
        /// The arguments, as every sendmail program accepts them.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Write the manual pages of `vere`.
    Man(pages::ManArgs),
    /// Print a completion script for a shell.
    Completions(pages::CompletionsArgs),
    /// Run the bundled destination, which accepts mail for any recipient (vere-bench).
    #[command(disable_help_flag = true)]
    Sink {
        /// The arguments of `vere-bench sink`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Measure `vere` beside its peers on this machine (vere-bench).
    #[command(disable_help_flag = true)]
    Bench {
        /// The arguments of `vere-bench`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Run a whole system for evaluation below a single directory.
    #[command(hide = true)]
    Demo {
        #[command(subcommand)]
        command: demo::DemoCommand,
    },
    /// The process of a role, started by `vere serve`.
    #[command(hide = true)]
    Role {
        #[command(flatten)]
        config: ConfigArg,
        #[command(subcommand)]
        role: role::RoleCommand,
    },
}

/// Reads a command line. A wrong line ends the process with code 2 and says why; a request for help prints the help.
#[must_use]
pub fn parse(arguments: Vec<OsString>) -> Cli {
    let matches = help::described().get_matches_from(arguments);
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// Runs a command.
///
/// # Errors
/// The reason why the command failed.
pub fn run(cli: Cli, roles: &Roles) -> Result<Outcome, Failure> {
    let text = match cli.command {
        Command::Serve { config } => return serve(&config),
        Command::Reload { config, args } => return reload::run(&args, &config.load()?.1),
        Command::Status { config, args } => {
            return Ok(status::run(&args, || config.load()));
        }
        Command::Doctor { config, args } => return doctor::run(&args, || config.find()),
        Command::SupportBundle { config, args } => {
            return bundle::run(&args, || config.find(), spool::FACTS);
        }
        Command::Quickstart(args) => quickstart::run(&args)?,
        Command::Account { config, command } => account::run(&command, &config.load()?)?,
        Command::Auth { config, command } => return auth::run(&command, &config.load()?.1),
        Command::Domain { config, command } => domain::run(&command, &config.load()?.1)?,
        Command::Alias { config, command } => alias::run(&command, &config.load()?.1)?,
        Command::Dkim { config, command } => return dkim::run(&command, &config.load()?.1),
        Command::Dns { config, command } => return dns::run(&command, &config.load()?.1),
        Command::Dnsbl { config, command } => {
            return vere_app_dnsbl::run(&command, config.file(), roles.dnsbl);
        }
        Command::Filter { config, command } => {
            return filter::run(&command, &config.load()?.1);
        }
        Command::CheckConfig { config, args } => return check_config(&args, &config),
        Command::Config { command } => config::run(&command)?,
        Command::Demo { command } => return demo::run(&command),
        Command::Queue {
            config,
            x400,
            command,
        } => queue::run(&command, &config.load()?.1, x400, roles)?,
        Command::Quarantine { config, command } => {
            return quarantine::run(&command, &config.load()?.1);
        }
        Command::Spool { config, command } => spool::run(&command, &config.load()?.1, roles)?,
        Command::Node { config, command } => return node::run(&command, &config),
        Command::Mailbox { config, command } => {
            return Ok(mailbox::run(&command, &config.load()?.1)?);
        }
        Command::Store { config, command } => {
            return Ok(maintenance::run(&command, &config.load()?.1)?);
        }
        Command::Import { config, args } => return vere_transfer::import(args, &config.load()?.1),
        Command::Export { config, args } => return vere_transfer::export(args, &config.load()?.1),
        Command::Backup { config, args } => return vere_backup::backup(&args, || config.load()),
        Command::Restore { config, args } => return vere_backup::restore(&args, || config.load()),
        Command::Fs { command } => {
            let (text, code) = vere_mount::run(&command)?;
            return Ok(Outcome::Report(text, code));
        }
        Command::X400 { config, command } => {
            return vere_app_x400::run(&command, || config.load());
        }
        Command::Dial { config, args } => return dial::run(&args, &config.load()?.1),
        Command::Resolve { config, args } => return resolve::run(&args, &config.load()?.1),
        Command::Trace { config, args } => trace::run(&args, &config.load()?.1)?,
        Command::Explain { config, args } => explain::run(&args, &config.load()?.1)?,
        Command::Reports { config, args } => return reports::run(&args, &config),
        Command::Sendmail { words } => {
            return Ok(Outcome::Exit(vere_sendmail::run("sendmail", &words)));
        }
        Command::Man(args) => pages::man(&args, Cli::command())?,
        Command::Completions(args) => pages::completions(&args, &Cli::command()),
        Command::Sink { words } => {
            return bench::replace(std::iter::once("sink".into()).chain(words));
        }
        Command::Bench { words } => return bench::replace(words),
        Command::Role { config, role } => return role::run(role, config.file(), roles),
    };
    Ok(Outcome::Print(text))
}

fn check_config(args: &config::CheckConfigArgs, config: &ConfigArg) -> Result<Outcome, Failure> {
    let usual = || Ok(file::find(config.file())?);
    let (text, code) = config::check(args, config.file(), usual)?;
    Ok(Outcome::Report(text, code))
}

fn serve(config: &ConfigArg) -> Result<Outcome, Failure> {
    let (path, settings) = config.load()?;
    let log = log::start(&settings, "supervisor")?;
    let level = Level::of(&log, "supervisor");
    Ok(Outcome::Exit(vere_supervisor::run(settings, &path, level)?))
}
