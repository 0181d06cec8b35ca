//! The command line of `vere explain`.

use std::net::IpAddr;

use clap::Args;

/// Explain the verdict about a message, rule by rule.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
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
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}
