//! The command line of `vere-bench sink`.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::path::PathBuf;

use clap::Args;
use vere_units::ByteSize;

use super::{Fault, SaveMode, Sink, SinkError, SinkOptions};

/// Accept mail for any recipient, and keep, count or lose the mail
#[derive(Debug, Clone, Args)]
pub struct SinkArgs {
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1:2526")]
    pub listen: SocketAddr,
    /// Use the listening socket on standard input instead of --listen.
    #[arg(long)]
    pub inherit: bool,
    /// Keep messages in this directory.
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,
    /// Format of the directory: an .eml file for each message, or one file with an index.
    #[arg(long, value_enum, default_value = "folder")]
    pub mode: SaveMode,
    /// Misbehave: `STAGE[:PART]=ACTION[*TIMES]` with STAGE connect, ehlo, mail, rcpt, data, dot or
    /// quit and ACTION a reply like "450 4.2.1 busy", delay:SPAN, close or lose. May be repeated.
    #[arg(long, value_name = "RULE")]
    pub fault: Vec<Fault>,
    /// The name in the greeting.
    #[arg(long, default_value = "sink.invalid")]
    pub hostname: String,
    /// Largest message taken.
    #[arg(long, value_name = "SIZE", default_value = "64 MiB")]
    pub message_size_max: ByteSize,
    /// Print JSON lines.
    #[arg(long)]
    pub json: bool,
}

/// Runs a sink until SIGTERM or SIGINT; must be called before the process has further threads.
///
/// The sink prints a line when the listener is ready and a line with its totals at the end.
///
/// # Errors
///
/// The errors of [`Sink::bind`] and [`Sink::run`]. A closed standard output is not an error.
pub fn run(args: &SinkArgs) -> Result<(), SinkError> {
    let listener = if args.inherit {
        Some(inherited(args.listen)?)
    } else {
        None
    };
    let mut sink = Sink::bind(SinkOptions {
        listen: args.listen,
        listener,
        save: args.save.clone(),
        mode: args.mode,
        faults: args.fault.clone(),
        hostname: args.hostname.clone(),
        message_size_max: usize::try_from(args.message_size_max.as_u64()).unwrap_or(usize::MAX),
        ..SinkOptions::default()
    })?;
    sink.stop_on_signals()?;
    let address = sink.handle().address();
    say(&if args.json {
        serde_json::json!({ "listening": address.to_string(), "save": args.save }).to_string()
    } else {
        match &args.save {
            Some(save) => format!(
                "sink: listening on {address}, keeping mail in {}",
                save.display()
            ),
            None => format!("sink: listening on {address}, keeping nothing"),
        }
    });
    let counts = sink.run()?;
    say(&if args.json {
        serde_json::json!({
            "messages": counts.messages,
            "octets": counts.octets,
            "connections": counts.connections,
            "faults": counts.faults,
        })
        .to_string()
    } else {
        let (messages, connections) = (counts.messages, counts.connections);
        format!("sink: stopped after {messages} messages over {connections} connections")
    });
    Ok(())
}

fn inherited(listen: SocketAddr) -> Result<TcpListener, SinkError> {
    let failed = |source| SinkError::Listen {
        address: listen,
        source,
    };
    let descriptor = io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    let listener = TcpListener::from(descriptor);
    listener.local_addr().map_err(failed)?;
    Ok(listener)
}

fn say(line: &str) {
    // The caller may have closed the sink's output; the mail goes on.
    let _ = writeln!(io::stdout().lock(), "{line}");
}
