//! The commands of the program `vere-bench`.

mod attack;
mod pages;

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::{dnsbl, front, fs, gateway, responder, sink, spool, store, trouble, x400};
use attack::AttackArgs;
use pages::{CompletionsArgs, ManArgs};

/// Measure a mail system beside its peers on this machine
#[derive(Debug, Parser)]
#[command(name = "vere-bench", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Mail relayed: throughput, CPU per message, reply times, beside Postfix.
    Gateway(gateway::GatewayArgs),
    /// Messages stored and deleted, recovered, kept: a spool node beside memcached and Redis.
    Spool(spool::SpoolArgs),
    /// Mail read, searched, filed and delivered: the mail store beside Dovecot.
    Store(store::StoreArgs),
    /// Open thousands of clients that do nothing; measure memory and honest clients.
    Trouble(trouble::TroubleArgs),
    /// Sessions of unknown clients without mail, and good mail among them, beside Postfix and postscreen.
    Front(front::FrontArgs),
    /// DNS block lists: a server beside rbldnsd, a cache with maps of 128 neighbours beside single addresses.
    Dnsbl(dnsbl::DnsblArgs),
    /// A file system on mail accounts beside bare IMAP, local disk, sshfs and rclone, at distances of 0, 20 and 50 ms.
    Fs(fs::FsArgs),
    /// Messages of X.400 switched: full transfers, archive, a million queued, beside a raw stream.
    X400(x400::X400Args),
    /// Run the bundled destination, which accepts mail for any recipient.
    Sink(sink::SinkArgs),
    /// Kill processes of a system under load, and count lost and doubled messages.
    Kill(AttackArgs),
    /// Answer SMTP clients with the least possible work.
    #[command(hide = true)]
    Responder(responder::ResponderArgs),
    /// Answer queries of the DNS with the least possible work.
    #[command(hide = true)]
    DnsResponder(dnsbl::DnsResponderArgs),
    /// Transfer messages of X.400.
    #[command(hide = true, name = "x400-source")]
    X400Source(x400::SourceArgs),
    /// Confirm messages of X.400.
    #[command(hide = true, name = "x400-sink")]
    X400Sink(x400::SinkArgs),
    /// Write the manual pages of `vere-bench`.
    Man(ManArgs),
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
}

/// Runs the command of the process's arguments.
pub fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A failure to write the error text cannot be reported anywhere.
            let _ = writeln!(io::stderr(), "vere-bench: {}", told(&*error));
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), Box<dyn Error>> {
    match command {
        Command::Gateway(args) => gateway::run(&args)?,
        Command::Spool(args) => spool::run(&args)?,
        Command::Store(args) => store::run(&args)?,
        Command::Trouble(args) => trouble::run(&args)?,
        Command::Front(args) => front::run(&args)?,
        Command::Dnsbl(args) => dnsbl::run(&args)?,
        Command::Fs(args) => fs::run(&args)?,
        Command::X400(args) => x400::run(&args)?,
        Command::Sink(args) => sink::run(&args)?,
        Command::Kill(args) => attack::run(&args)?,
        Command::Responder(args) => responder::run(&args)?,
        Command::DnsResponder(args) => dnsbl::respond(&args)?,
        Command::X400Source(args) => x400::send(&args)?,
        Command::X400Sink(args) => x400::receive(&args)?,
        Command::Man(args) => pages::man(&args)?,
        Command::Completions(args) => pages::completions(&args)?,
    }
    Ok(())
}

/// Returns an error's text with the causes missing from the text. Control characters of a terminal are replaced:
/// parts of the text come from servers.
fn told(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let said = cause.to_string();
        if !text.ends_with(&said) {
            text = format!("{text}: {said}");
        }
        source = cause.source();
    }
    let steers = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    text.replace(steers, "?")
}

#[cfg(test)]
mod tests {
    use super::told;
    use crate::sink::SinkError;

    #[test]
    fn errors_name_each_cause_once_and_leave_the_terminal_alone() {
        let source = std::io::Error::other("why\u{1b}[2J");
        let text = told(&SinkError::Loop(source));
        assert_eq!(text, "sink stopped: why?[2J");
    }
}
