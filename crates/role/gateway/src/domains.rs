//! Writes the list of local domains for the web server, which must not read the directory of accounts.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use tokio::time::sleep;
use vere_process::{accept, published};

use super::group::Groups;
use super::process::Process;

/// The interval between two looks at the directory: one number is read.
const LOOK: Duration = Duration::from_secs(1);

/// Keeps the list as the directory is, for ever, if there is a web server.
pub(super) async fn publish(groups: Rc<Groups>) {
    let process = groups.process();
    if process.settings().web.is_none() {
        return;
    }
    let mut written = None;
    let mut fails = false;
    loop {
        // A directory that does not answer is asked again.
        let revision = process.router.directory().store().revision().ok();
        if revision.is_none() || revision != written {
            match write(process) {
                Ok(()) => {
                    written = revision;
                    fails = false;
                }
                Err(error) if !fails => {
                    tracing::error!(%error, "the web server keeps its earlier list of local domains");
                    fails = true;
                }
                Err(_) => {}
            }
        }
        sleep(LOOK).await;
    }
}

fn write(process: &Process) -> io::Result<()> {
    let settings = process.settings();
    accept::private_folder(&settings.web_directory())?;
    let domains = process.router.directory().store().domains();
    let domains = domains.map_err(io::Error::other)?;
    let names = domains.iter().map(|domain| &domain.name);
    published::write(&settings.web_domains(), names)
}
