//! The settings of further services.

use std::path::PathBuf;

use vere_units::{ByteSize, Span};

use crate::lists::BlockLists;
use crate::network::Networks;

/// Mail from programs and users of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sendmail {
    /// The socket of the gateway for local mail.
    pub socket: PathBuf,
    /// The domain for addresses without a domain.
    pub domain: String,
}

/// Processes for port 25: a front without mail, and workers that receive from clients that are trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Front {
    /// Processes that receive messages.
    pub workers: u32,
    /// Threads that serve clients; `None` for a number that fits the machine.
    pub loops: Option<u32>,
    /// Sessions that wait at a worker.
    pub tasks_per_worker: u32,
    /// Sessions of a worker at once.
    pub sessions_at_once: u32,
    /// Workers get sessions before any command.
    pub hands_over_at_once: bool,
    /// Threads that encrypt connections.
    pub tls_threads: u32,
    /// Whether the kernel encrypts connections where it can.
    pub kernel_tls: bool,
    /// Sessions after which a worker is replaced by a fresh one.
    pub sessions_per_worker: u32,
    /// The pause before the greeting.
    pub banner_delay: Span,
    /// Connections of an address in a minute; a network has four times as many. 0: no limit.
    pub connections_per_minute: u32,
    /// Recipients of a session that may be refused.
    pub refused_recipients_max: u32,
    /// Recipients of an address that may be refused in an hour; a network has four times as many. 0: no limit.
    pub refused_recipients_per_hour: u32,
    /// Clients that nothing but the bounds of a session applies to.
    pub allowed_networks: Networks,
    /// Clients that are refused.
    pub refused_networks: Networks,
    /// Names in HELO that are refused: a domain, or with a leading dot every domain below it.
    pub refused_helo: Vec<String>,
    /// Senders that are refused: an address, a domain, with a leading dot every domain below it, or empty for the null
    /// reverse-path.
    pub refused_senders: Vec<String>,
    /// Exceptions from the refused senders.
    pub allowed_senders: Vec<String>,
    /// The treatment of results of SPF; `None` asks for none.
    pub spf: Option<SpfTreatment>,
    /// The terms of questions to next hops about recipients.
    pub call_ahead: CallAhead,
    /// Lists of clients in the DNS.
    pub lists: BlockLists,
    /// How long an unknown client, sender and recipient are put off; `None` puts nobody off.
    pub greylist_delay: Option<Span>,
}

/// The treatment of results of SPF that are not in favour of the client; *fail* is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpfTreatment {
    /// Whether *softfail* is refused.
    pub refuses_softfail: bool,
    /// Whether clients are told to try again while the DNS does not answer.
    pub defers_unavailable: bool,
    /// Whether a wrong record of the sender's domain is a reason to refuse.
    pub refuses_permerror: bool,
}

/// The terms of questions to next hops about recipients of routes with `call_ahead`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallAhead {
    /// Whether clients are told to try again while a next hop cannot be asked; otherwise every recipient is accepted.
    pub defers_unavailable: bool,
    /// Longest wait for an answer.
    pub timeout: Span,
    /// How long a recipient counts as accepted.
    pub keep_accepted: Span,
    /// How long a recipient counts as refused.
    pub keep_refused: Span,
}

/// DKIM signatures on local users' mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dkim {
    /// The folder of the keys.
    pub keys: PathBuf,
    /// Where the gateway reaches the signer.
    pub socket: PathBuf,
    /// The treatment of a message while the signer does not answer.
    pub when_unavailable: WhenUnavailable,
    /// Whether forwarded mail is sealed (ARC).
    pub arc: bool,
}

/// The treatment of a message that cannot be signed now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenUnavailable {
    /// The client is told to try again later.
    Defer,
    /// The message is sent without a signature.
    Unsigned,
}

/// Reports to other systems about their mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reports {
    /// Whether domains with a DMARC record get reports.
    pub dmarc: bool,
    /// Whether domains with a TLSRPT record get reports.
    pub tls: bool,
    /// The organization that reports.
    pub organization: String,
    /// The address for questions about reports; `None` where no reports are made.
    pub contact: Option<String>,
    /// The address in From.
    pub from: String,
}

/// Lines about messages for other systems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Records {
    /// Where they go.
    pub to: RecordSink,
    /// Octets of lines that may wait before no mail is taken any more.
    pub waiting_max: ByteSize,
}

/// Where lines about messages go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordSink {
    /// Into a file.
    File {
        /// Which.
        path: PathBuf,
        /// A larger file is set aside.
        size_max: ByteSize,
    },
    /// To a web server.
    Webhook {
        /// The URL for the POST requests.
        url: String,
        /// The file of CAs accepted for the server's certificate; `None` for the CAs of the operating
        /// system.
        ca: Option<PathBuf>,
        /// The file with the secret of the signature.
        secret: PathBuf,
        /// Longest wait for the answer.
        timeout: Span,
    },
}
