//! The sink: a process with an MTA that confirms every message at once, and counts.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use clap::Args;
use tokio::net::TcpListener;
use vere_associations::{
    Decision, Next, NotOpen, OpenAssociation, Part, Remote, Responder, respond,
};
use vere_ber::Ia5String;
use vere_osi::session::Exception;
use vere_x400::{Credentials, MtaBindResult, MtaResponder, Password};

use super::child::{self, Tally};
use super::{names, raw};

/// Confirms messages over associations of X.400, until the benchmark ends the process.
#[derive(Debug, Clone, Args)]
pub struct SinkArgs {
    /// The address of the benchmark.
    #[arg(long, value_name = "ADDRESS")]
    control: SocketAddr,
    /// The address to listen at.
    #[arg(long, value_name = "ADDRESS")]
    listen: SocketAddr,
    /// The name of the MTA.
    #[arg(long, value_name = "NAME", default_value = "sink1")]
    name: String,
    /// Read packets of the transport, without associations.
    #[arg(long)]
    raw: bool,
}

/// Runs the sink until the benchmark ends the connection.
///
/// # Errors
///
/// The address is taken, or the benchmark cannot be reached.
pub fn run(args: &SinkArgs) -> io::Result<()> {
    child::run(args.control, |tally, _| begin(args.clone(), tally))
}

async fn begin(args: SinkArgs, tally: Arc<Tally>) -> io::Result<()> {
    let listener = TcpListener::bind(args.listen).await?;
    if args.raw {
        tokio::spawn(raw::receive(listener, tally));
        return Ok(());
    }
    let name = Ia5String::new(&args.name).map_err(io::Error::other)?;
    tokio::spawn(accept(listener, name, tally));
    Ok(())
}

async fn accept(listener: TcpListener, name: Ia5String, tally: Arc<Tally>) {
    let responder = Arc::new(Responder::default());
    while let Ok((stream, address)) = listener.accept().await {
        let (responder, name, tally) = (Arc::clone(&responder), name.clone(), Arc::clone(&tally));
        let answer = async move {
            // A connection without TCP_NODELAY is slow, and still correct.
            let _ = stream.set_nodelay(true);
            let remote = Remote { address, tls: None };
            match open(&responder, Box::new(stream), remote, name).await {
                Ok(open) => swallow(open, &tally).await,
                Err(_) => tally.trouble(),
            }
        };
        tokio::spawn(answer);
    }
}

async fn open(
    responder: &Responder,
    stream: Box<tokio::net::TcpStream>,
    remote: Remote,
    name: Ia5String,
) -> Result<OpenAssociation, NotOpen> {
    let caller = respond(responder, stream, remote).await?;
    let decision = Decision::Accept(MtaBindResult::Authenticated(MtaResponder {
        responder_name: name,
        responder_credentials: Credentials::Simple(Password::ia5(names::PASSWORD.as_bytes())),
        ..MtaResponder::default()
    }));
    caller.answer(async { decision }).await
}

/// Receives and confirms without a look at the octets.
async fn swallow(mut open: OpenAssociation, tally: &Tally) {
    loop {
        let kept = match open.next().await {
            Next::Incoming(_) => receive(&mut open, tally).await,
            // What was begun before is sent anew.
            Next::Resume(_) => {
                let unknown = Exception::UnrecoverableProceduralError;
                open.refuse(unknown).await.is_ok()
            }
            Next::Ended(_) => return,
            _ => true,
        };
        if !kept {
            return tally.trouble();
        }
    }
}

async fn receive(open: &mut OpenAssociation, tally: &Tally) -> bool {
    let mut before = 0;
    loop {
        match open.part().await {
            Part::Octets(octets) => {
                let count = u64::try_from(octets.len()).unwrap_or(u64::MAX);
                before += count;
                // Long messages are seen while they come.
                tally.octets(count);
            }
            Part::Checkpoint(point) => {
                if open.secured(point).is_err() {
                    return false;
                }
            }
            Part::Complete(_) => {
                let confirmed = open.confirm().await.is_ok();
                if confirmed {
                    tally.message(0);
                }
                return confirmed;
            }
            Part::Interrupted(_) | Part::Discarded => return true,
            Part::Ended(_) => return before == 0,
        }
    }
}
