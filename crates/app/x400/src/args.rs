//! The command line of `vere x400`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use vere_archive::{EntryId, Kind};
use vere_attach::{Priority, Reports};
use vere_units::TraceId;
use vere_x400::{ContentType, OrAddress};

use crate::when::{Past, When};

/// The commands of `vere x400`.
///
/// O/R addresses are texts as in RFC 1685 (`G=John;S=Smith;O=Acme;P=Acme;A=Carrier;C=GB`) or with slashes
/// (`/G=John/S=Smith/O=Acme/PRMD=Acme/ADMD=Carrier/C=GB/`).
#[derive(Debug, Subcommand)]
pub enum X400Command {
    /// Send a message through the running MTA, and print its identifier and queue id.
    ///
    /// The text is read from standard input or --file, and becomes an interpersonal message (P22): IA5 text if all
    /// characters are ASCII, otherwise general text with the characters of ISO 8859-1. The command returns when the
    /// message is safe in the queue.
    ///
    /// Example: vere x400 send --from 'S=Jones;P=Acme;A=Carrier;C=GB' --to 'S=Smith;P=Acme;A=Carrier;C=GB' < text
    Send(Box<SendArgs>),
    /// Ask whether a message could be delivered, without sending one.
    ///
    /// Reports to the originator answer: they arrive where messages to the originator do.
    Probe(ProbeArgs),
    /// Print a protocol data unit of P1 or an interpersonal message from a file.
    ///
    /// A message is printed with envelope, trace, recipients and extensions by name, heading and text; a probe and a report
    /// likewise. A file that is no protocol data unit is read as content of type P22 or P2. No settings are needed.
    ///
    /// With --json: kind (message, probe, report, ipm, ipn), identifier, originator, destination (of a report),
    /// content_type, priority, indicators, deferred_until, trace, internal_trace, extensions, recipients, content_octets, and
    /// heading and body of an interpersonal message as ipm.
    Show(ShowArgs),
    /// List the peers of the running MTA: state, associations, queue, last fault.
    ///
    /// With --json: name; state (open, idle, waiting, failing, held); associations_in; associations_out; queued; oldest_s;
    /// next_attempt_s; last_error; last_error_s.
    Peers(PeersArgs),
    /// Print where the settings send messages for an address, and why. No MTA has to run.
    ///
    /// The exit code is 1 if no route has the address, or the route says that there is no such user.
    Route(RouteArgs),
    /// Search, export and verify the archive, also while the MTA runs.
    Archive {
        /// The command.
        #[command(subcommand)]
        command: ArchiveCommand,
    },
}

/// The commands of `vere x400 archive`.
#[derive(Debug, Subcommand)]
pub enum ArchiveCommand {
    /// List messages, probes and reports of the archive that meet all given conditions, in the order of arrival.
    Find(FindArgs),
    /// Write entries of the archive as they came: one to standard output, or all that meet the conditions.
    ///
    /// Files have the names `DAY-HHMM-OFFSET-TRACE.p1`; files that exist are left alone. `vere x400 show` prints them.
    Export(ExportArgs),
    /// Read the whole archive, and compare all checksums.
    ///
    /// The exit code is 1 if something is damaged.
    Verify {
        /// Print JSON: an object with `days`, `segments`, `entries`, `octets`, `damaged`, `issues` (`segment`,
        /// `issue`, `loss`) and `further_issues`.
        #[arg(long)]
        json: bool,
    },
}

/// Conditions on entries of the archive.
#[derive(Debug, Args)]
pub struct QueryArgs {
    /// Arrived at this time or later: `2026-11-29`, `2026-11-29T12:00:00Z`, or ago such as `2h`.
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<Past>,
    /// Arrived before this time.
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<Past>,
    /// The queue id, as in `vere trace`.
    #[arg(long, value_name = "ID")]
    pub(crate) trace: Option<TraceId>,
    /// The MTS identifier, also of the subject of a report: `[/PRMD=Acme/ADMD=Carrier/C=GB/;...]`.
    #[arg(long, value_name = "TEXT")]
    pub(crate) identifier: Option<String>,
    /// A part of the originator's address.
    #[arg(long, value_name = "TEXT")]
    pub(crate) from: Option<String>,
    /// A part of a recipient's address.
    #[arg(long, value_name = "TEXT")]
    pub(crate) to: Option<String>,
    /// message, probe or report.
    #[arg(long)]
    pub(crate) kind: Option<Kind>,
    /// The sender: `peer:NAME`, `gateway:NAME` or `local`.
    #[arg(long, value_name = "SOURCE")]
    pub(crate) source: Option<String>,
    /// A destination: `peer:NAME`, `gateway:NAME`, `file:NAME` or `store:NAME`.
    #[arg(long, value_name = "DESTINATION")]
    pub(crate) destination: Option<String>,
    /// The type of the content: 22, 2, 35 or an object identifier.
    #[arg(long, value_name = "TYPE")]
    pub(crate) content_type: Option<ContentType>,
    /// Only entries behind this one, as `vere x400 archive find` prints it.
    #[arg(long, value_name = "ENTRY")]
    pub(crate) after: Option<EntryId>,
    /// The newest entries in place of the oldest.
    #[arg(long, requires = "limit")]
    pub(crate) newest: bool,
    /// At most this number of entries.
    #[arg(long, value_name = "COUNT")]
    pub(crate) limit: Option<u64>,
}

/// `vere x400 archive find`
#[derive(Debug, Args)]
pub struct FindArgs {
    #[command(flatten)]
    pub(crate) query: QueryArgs,
    /// Print JSON: a list of objects with `entry`, `at`, `trace`, `kind`, `identifier`, `about`, `originator`,
    /// `recipients`, `source`, `destinations`, `content_type` and `octets`.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `vere x400 archive export`
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The entry, as `vere x400 archive find` prints it: `2026-11-29/1305@64`.
    #[arg(value_name = "ENTRY")]
    pub(crate) entry: Option<EntryId>,
    #[command(flatten)]
    pub(crate) query: QueryArgs,
    /// Write a file for each entry into this directory.
    #[arg(long, value_name = "FOLDER", conflicts_with = "tar")]
    pub(crate) into: Option<PathBuf>,
    /// Write a tar file to standard output.
    #[arg(long)]
    pub(crate) tar: bool,
}

/// `vere x400 send`
#[derive(Debug, Args)]
pub struct SendArgs {
    /// The originator.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) from: OrAddress,
    /// A recipient, may be given several times.
    #[arg(long, value_name = "ADDRESS", required = true)]
    pub(crate) to: Vec<OrAddress>,
    /// The subject, at most 128 characters.
    #[arg(long, value_name = "TEXT", conflicts_with = "content")]
    pub(crate) subject: Option<String>,
    /// Read the text from this file in place of standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "content")]
    pub(crate) file: Option<PathBuf>,
    /// Send the octets of this file as the content (`-` for standard input), unchanged.
    #[arg(long, value_name = "FILE", requires = "content_type")]
    pub(crate) content: Option<PathBuf>,
    /// The type of the content: 22, 2, 35 or another number of a built-in type, or an object identifier.
    #[arg(long, value_name = "TYPE", requires = "content")]
    pub(crate) content_type: Option<ContentType>,
    /// The grade of delivery.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) priority: PriorityWord,
    /// Deliver not before this time: `2026-11-29T12:00:00Z`, or from now such as `2h`.
    #[arg(long, value_name = "TIME")]
    pub(crate) deferred_until: Option<When>,
    /// Deliver not after this time.
    #[arg(long, value_name = "TIME")]
    pub(crate) latest: Option<When>,
    /// The reports that the originator gets.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) report: ReportWord,
    /// Ask for the content in a report about a failure.
    #[arg(long)]
    pub(crate) return_content: bool,
    #[command(flatten)]
    pub(crate) terms: TermArgs,
    /// Send to this address what cannot be delivered to a recipient.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) alternate: Option<OrAddress>,
    /// Print JSON: an object with `identifier` and `id`.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options that messages and probes have in common.
#[derive(Debug, Args)]
pub struct TermArgs {
    /// Prohibit conversion of the content.
    #[arg(long)]
    pub(crate) no_conversion: bool,
    /// Allow the domain of a recipient to name an alternate recipient.
    #[arg(long)]
    pub(crate) allow_alternate: bool,
    /// A text that reports repeat, at most 16 characters.
    #[arg(long, value_name = "TEXT")]
    pub(crate) content_identifier: Option<String>,
}

/// `vere x400 probe`
#[derive(Debug, Args)]
pub struct ProbeArgs {
    /// The originator, who gets the reports.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) from: OrAddress,
    /// A recipient, may be given several times.
    #[arg(long, value_name = "ADDRESS", required = true)]
    pub(crate) to: Vec<OrAddress>,
    /// The octets of the content that a message would have.
    #[arg(long, value_name = "OCTETS")]
    pub(crate) size: Option<u32>,
    #[command(flatten)]
    pub(crate) terms: TermArgs,
    /// Print JSON: an object with `identifier` and `id`.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `vere x400 show`
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The file, `-` for standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print JSON: an object with `kind` (`message`, `probe` or `report`), `identifier`, `trace`, `extensions`,
    /// `unknown_elements` and the fields of the kind, as the envelope has them.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `vere x400 peers`
#[derive(Debug, Args)]
pub struct PeersArgs {
    /// Print JSON: a list of objects with `name`, `state`, `associations_in`, `associations_out`, `queued`,
    /// `oldest_s`, `next_attempt_s`, `last_error` and `last_error_s`.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `vere x400 route`
#[derive(Debug, Args)]
pub struct RouteArgs {
    /// The O/R address.
    #[arg(value_name = "ADDRESS")]
    pub(crate) address: OrAddress,
    /// Print JSON: an object with `address`, `amhs`, `row`, `to`, `shorter` and `hosts`.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Grades of delivery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum PriorityWord {
    /// Deliver before all other grades; messages expire after 4 hours by default.
    Urgent,
    /// Given up after 24 hours by default.
    #[default]
    Normal,
    /// Deliver after all other grades; messages expire after 36 hours by default.
    NonUrgent,
}

impl From<PriorityWord> for Priority {
    fn from(word: PriorityWord) -> Self {
        match word {
            PriorityWord::Urgent => Self::Urgent,
            PriorityWord::Normal => Self::Normal,
            PriorityWord::NonUrgent => Self::NonUrgent,
        }
    }
}

/// Reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ReportWord {
    /// None.
    None,
    /// About failures.
    #[default]
    Failures,
    /// About failures and deliveries.
    All,
}

impl From<ReportWord> for Reports {
    fn from(word: ReportWord) -> Self {
        match word {
            ReportWord::None => Self::None,
            ReportWord::Failures => Self::Failures,
            ReportWord::All => Self::All,
        }
    }
}
