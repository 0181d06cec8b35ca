//! The MTA of X.400 under trouble: settings for a crowd and for an honest peer, and the honest peer.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use vere_associations::{Names, OpenAssociation, Peer, initiate, introduction};

use crate::x400::{Template, content, names, now};

/// How long anybody waits for an answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// The user of all units.
pub(super) const USER: &str = "inbox";

/// Octets of an honest unit.
const HONEST_OCTETS: usize = 1_000;
/// Names of MTAs in the crowd, each with as many associations as the settings allow one peer.
const MTAS: usize = 10;
/// Associations of each name.
const EACH: usize = 1_000;
/// The honest MTA.
const HONEST: &str = "honest";

/// The settings of an MTA for the crowd and the honest MTA. Units go into files.
pub(super) fn settings(listen: SocketAddr) -> String {
    let domain = names::domain(names::DOMAIN);
    let mut text = format!(
        "[x400]\nlisten = [\"{listen}\"]\nmta_name = \"{}\"\ndomain = \"{domain}\"\nsize_max = \"8 MiB\"\n\
         [[x400.route]]\naddress = \"{}\"\nto = \"file:{USER}\"\n",
        names::MTA,
        names::domain(&names::private(USER)),
    );
    for name in (0..MTAS).map(mta).chain([HONEST.to_owned()]) {
        let domain = names::domain(&names::private(&name));
        text += &format!(
            "[[x400.peer]]\nname = \"{name}\"\ndomain = \"{domain}\"\npassword = \"{}\"\n\
             associations_max = {EACH}\n",
            names::PASSWORD
        );
    }
    text
}

/// The name of client `number` of a crowd.
pub(super) fn mta(number: usize) -> String {
    format!("crowd{}", number % MTAS)
}

/// A runtime of one thread.
pub(super) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Opens an association by a name of the settings.
pub(super) async fn open(to: SocketAddr, name: &str) -> Result<OpenAssociation, String> {
    let bind = introduction(name, names::PASSWORD.as_bytes()).map_err(|error| error.to_string())?;
    let opened = initiate(&Peer::new(vec![to], bind), Names::new(name).next()).await;
    opened
        .map(|(open, _)| open)
        .map_err(|error| error.to_string())
}

/// Binds, and sends a unit; returns the time until it is confirmed.
pub(super) fn send(to: SocketAddr, number: u64) -> io::Result<Duration> {
    let template = Template::new(HONEST, USER, content(HONEST_OCTETS), now());
    let template = template.map_err(io::Error::other)?;
    runtime()?.block_on(async {
        let began = Instant::now();
        let sent = timeout(PATIENCE, async {
            let mut open = open(to, HONEST).await.map_err(io::Error::other)?;
            let outcome = open.transfer(&template.message(number)).await;
            match outcome.is_transferred() {
                true => Ok((open, began.elapsed())),
                false => Err(io::Error::other(format!("{outcome:?}"))),
            }
        });
        let (open, took) = sent.await.map_err(io::Error::other)??;
        // The release of a confirmed unit's association may fail.
        let _ = timeout(PATIENCE, open.release()).await;
        Ok(took)
    })
}
