//! The papers' experiments: load generator, sink, no-op relay, peers.
//!
//! [`sink`] receives and [`load`] sends, each in one thread and each with an SMTP dialogue of its own (RFC 5321 with
//! PIPELINING, SIZE, 8BITMIME; the sink also SMTPUTF8, CHUNKING, BINARYMIME), so that the judge of the product does
//! not share the product's mistakes. [`noop`] shows the least cost of any relay, [`peer`] starts Postfix or the
//! product, [`process`] accounts for their CPU time. [`gateway`] joins these modules as `vere-bench gateway`;
//! [`store`] reads mail over IMAP; [`trouble`] holds clients that do nothing; [`front`] has clients whose sessions end
//! without mail, beside the bare [`responder`]; [`dnsbl`] asks a server of block lists beside rbldnsd; [`fs`] uses mounted file systems; [`x400`] has MTAs of X.400 around ours; [`kill`] kills processes under load.
//! [`cli`] has the commands of the program `vere-bench`; `vere` links no code of the crate, save in tests.
//!
//! Not covered: TLS and AUTH. [`load`] has one recipient per message and no open loop; the clients of [`front`] have.
//!
//! ```
//! use vere_bench::load::{self, LoadEnd, LoadOptions, LoadProgress};
//! use vere_bench::sink::{RunningSink, SinkOptions};
//!
//! let sink = RunningSink::start(SinkOptions::default())?;
//! let options = LoadOptions::new(sink.handle().address(), LoadEnd::Count(100));
//! let report = load::run(&options, &LoadProgress::default())?;
//! assert_eq!(report.acked.len(), 100);
//! assert_eq!(sink.handle().counts().messages, 100);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arrivals;
pub mod cli;
mod corpus;
mod datagram;
mod dns_wire;
pub mod dnsbl;
mod error;
mod figures;
pub mod front;
pub mod fs;
pub mod gateway;
mod ids;
pub mod kill;
pub mod load;
mod machine;
pub mod noop;
mod output;
mod page;
pub mod peer;
mod plot;
pub mod process;
mod random;
pub mod responder;
mod row;
pub mod sink;
pub mod spool;
pub mod store;
mod table;
pub mod trouble;
mod wire;
pub mod x400;

pub use corpus::{Corpus, CorpusError};
pub use dnsbl::DnsblArgs;
pub use error::BenchError;
pub use front::FrontArgs;
pub use fs::FsArgs;
pub use gateway::GatewayArgs;
pub use ids::{InvalidMessageId, MessageId};
pub use output::{Common, WriteError};
pub use spool::SpoolArgs;
pub use store::StoreArgs;
pub use trouble::TroubleArgs;
pub use x400::X400Args;
