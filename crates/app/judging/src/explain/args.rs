//! The command line of `vere explain`.

use std::net::IpAddr;

use clap::Args;

/// Explain the verdict about a message, rule by rule.
///
/// A queue id: the facts that were recorded with the message are judged again by the settings of now, and nobody is asked. A file: DNS, lists and content filters are
/// asked as about a message of now. The command delivers no mail and learns no sender.
///
/// Example: vere explain --client 192.0.2.1 --from ann@example.net message.eml
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct ExplainArgs {
    /// Queue id, or a file with a message (`-`: standard input).
    ///
    /// A message that this system has delivered names its client in its Received field; for other files the options below say who sent the message.
    pub(super) message: String,
    /// Address of the client.
    #[arg(long, value_name = "ADDRESS")]
    pub(super) client: Option<IpAddr>,
    /// Name in HELO or EHLO.
    #[arg(long, value_name = "NAME")]
    pub(super) helo: Option<String>,
    /// Sender in MAIL FROM; empty for the null reverse-path.
    #[arg(long, value_name = "ADDRESS")]
    pub(super) from: Option<String>,
    /// Recipient in RCPT TO; may be given several times.
    #[arg(long, value_name = "ADDRESS")]
    pub(super) to: Vec<String>,
    /// Do not ask the lists in the DNS about the client of a file.
    #[arg(long)]
    pub(super) no_lists: bool,
    /// Do not show a file to the content filters.
    #[arg(long)]
    pub(super) no_filters: bool,
    /// Print JSON: an object with `message`, `then` (the verdict in the trace), `now` (`verdict`, `score`, `reply`,
    /// `rules`, `rulings`, `recipients`) and `asked` (`lists`, `filters`, `greylist`).
    #[arg(long)]
    pub(super) json: bool,
}
