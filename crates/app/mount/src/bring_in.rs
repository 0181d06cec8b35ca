//! `vere fs check --bring-in`: a journal that was set aside takes the place of the present one.

use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use vere_mailfs::volume::Notice;
use vere_process::failure::Failure;

use crate::args::{SecretArgs, VolumeArgs};
use crate::control::{Request, ask};
use crate::engine::Engine;
use crate::folders::{self, Description, Lock};
use crate::news::News;
use crate::rollback;
use crate::serve::{LAST_SYNC, open, read_slot};
use crate::session;
use crate::volume::How;

/// The longest wait for an engine or a mount.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sends the changes of the present journal, and puts the given journal in its place: the next opening brings the changes in. A
/// failure before leaves both journals in their places.
pub(crate) fn change_journals(
    volume: &VolumeArgs,
    secret: &SecretArgs,
    given: &Path,
) -> Result<(), Failure> {
    let description = Description::named(&volume.name)?;
    let state = folders::state(read_slot(&description)?.head.volume)?;
    let socket = folders::control(&state);
    if ask(&socket, &Request::Progress, Some(PATIENCE))?.is_some() {
        return Err(Failure::new(format!(
            "{}: expected a volume that is not mounted; found a mount: `vere fs umount` first",
            volume.name
        )));
    }
    let given = rollback::find_aside(&state, given)?;
    send_all(&description, secret)?;
    let _lock = Lock::take(&state)?;
    let aside = rollback::swap(&folders::journal(&state), &given)?;
    eprintln!(
        "the journal {} takes the place of the present one, of which the servers have everything: that one is in {}",
        given.display(),
        aside.display()
    );
    Ok(())
}

/// Has the servers have everything of the present journal.
fn send_all(description: &Description, secret: &SecretArgs) -> Result<(), Failure> {
    let mut news = |news| {
        if let News::Line(line) = news {
            eprintln!("{line}");
        }
    };
    let described = description.read()?;
    let opener = session::opener(secret, &described)?;
    let opened = open(description, &described, &opener, &How::default(), &mut news)?;
    let engine = Engine::start(opened)?;
    let (done, all_done) = channel();
    let asked = engine
        .host
        .with(PATIENCE, move |live, now| live.finish(now, done));
    let sent = asked.and_then(|()| all_done.recv_timeout(LAST_SYNC).ok());
    let stopped = engine.host.with(PATIENCE, |live, _| {
        live.volume().read_only().map(Notice::to_string)
    });
    engine.host.stop();
    match (sent, stopped) {
        (Some(Ok(())), Some(None)) => Ok(()),
        (_, Some(Some(reason))) => Err(Failure::new(reason)),
        _ => Err(Failure::new(
            "expected the changes of the present journal on the servers within 60 s; found some that are not there yet: try again",
        )),
    }
}
