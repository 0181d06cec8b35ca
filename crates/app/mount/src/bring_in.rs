//! `vere fs check --bring-in`: a journal that was set aside takes the place of the present one.
//!
//! The given journal is read whole before anything changes: a journal that is damaged, or of another volume or machine, keeps its
//! place, and so does the present journal.

use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use vere_mailfs::format::Keys;
use vere_mailfs::format::slot::SlotKeys;
use vere_mailfs::volume::{Inspected, Notice, Registrant, inspect};
use vere_process::failure::Failure;
use vere_settings::Volume as Described;

use crate::args::{SecretArgs, VolumeArgs};
use crate::control::{Request, ask};
use crate::engine::Engine;
use crate::folders::{self, DEATH_MAX, Description, Lock};
use crate::news::News;
use crate::open::keys_of;
use crate::rollback;
use crate::secrets::Opener;
use crate::serve::{LAST_SYNC, open, read_slot};
use crate::session;
use crate::swap;
use crate::volume::{How, storage};

/// The longest wait for an engine or a mount.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sends the changes of the present journal, and puts the given journal in its place: the next opening brings the changes in. A
/// failure before leaves both journals in their places. A run that was broken off behind the change goes on.
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
    let journal = folders::journal(&state);
    if let Some(before) = swap::begun(&journal, &state, given)? {
        let _lock = Lock::take_within(&state, DEATH_MAX)?;
        swap::settle(&journal, &before)?;
        eprintln!(
            "the journal {} has the place of the present one since a run that was broken off, which goes on",
            before.display()
        );
        return Ok(());
    }
    let given = rollback::find_aside(&state, given)?;
    let described = description.read()?;
    let opener = session::opener(secret, &described)?;
    // A slot that another machine has renewed is renewed here by the opening of the volume.
    let early = slot_keys(&description, &opener).ok();
    let early = early.map(|keys| read_whole(&given, &keys)).transpose()?;
    let engine = send_all(&description, &described, &opener)?;
    let inspected = match early {
        Some(inspected) => inspected,
        None => read_whole(&given, &slot_keys(&description, &opener)?)?,
    };
    expect_own(&engine, &given, inspected)?;
    // Until the journals have changed places, the lock keeps further processes from the volume.
    let _lock = engine.stop();
    let aside = swap::swap(&journal, &given)?;
    eprintln!(
        "the journal {} takes the place of the present one, of which the servers have everything: that one is in {}",
        given.display(),
        aside.display()
    );
    Ok(())
}

/// The changes are brought in.
pub(crate) fn end(volume: &VolumeArgs) -> Result<(), Failure> {
    let description = Description::named(&volume.name)?;
    let state = folders::state(read_slot(&description)?.head.volume)?;
    swap::end(&folders::journal(&state))
}

fn slot_keys(description: &Description, opener: &Opener) -> Result<SlotKeys, Failure> {
    keys_of(&read_slot(description)?, opener, &description.slot())
}

/// Reads a given journal, and changes nothing.
fn read_whole(given: &Path, keys: &SlotKeys) -> Result<Inspected, Failure> {
    let none = || Failure::new("expected a key in the slot; found none");
    let keys = Keys::of_epochs(&keys.keys).ok_or_else(none)?;
    let shown = given.display();
    let inspected = inspect(&storage(given)?, keys.local()).map_err(|error| {
        Failure::new(format!(
            "{shown}: expected a whole journal of this volume; found {error}. Nothing was changed"
        ))
    })?;
    if inspected.records == 0 {
        return Err(Failure::new(format!(
            "{shown}: expected a journal with changes; found no record. Nothing was changed"
        )));
    }
    Ok(inspected)
}

/// The journal must be of this machine: another machine gives equal numbers to different files.
fn expect_own(engine: &Engine, given: &Path, inspected: Inspected) -> Result<(), Failure> {
    let Some(writer) = inspected.writer else {
        return Ok(());
    };
    let asked = engine
        .host
        .with(PATIENCE, move |live, _| live.volume().registrant(writer));
    let found = match asked {
        Some(Ok(Registrant::ThisMachine)) => return Ok(()),
        Some(Ok(Registrant::Other(name))) => {
            format!("writer {writer}, which the machine {name} has registered")
        }
        Some(Ok(Registrant::Nobody)) => {
            format!("writer {writer}, of whose registration the log knows nothing")
        }
        Some(Err(errno)) => format!("no row of writer {writer}: {errno}"),
        None => "an engine that does not answer".to_owned(),
    };
    Err(Failure::new(format!(
        "{}: expected a journal of this machine; found {found}. The journals stay in their places",
        given.display()
    )))
}

/// Has the servers have everything of the present journal. The engine keeps further processes from the volume.
fn send_all(
    description: &Description,
    described: &Described,
    opener: &Opener,
) -> Result<Engine, Failure> {
    let mut news = |news| {
        if let News::Line(line) = news {
            eprintln!("{line}");
        }
    };
    let opened = open(description, described, opener, &How::default(), &mut news)?;
    let engine = Engine::start(opened)?;
    let (done, all_done) = channel();
    let asked = engine
        .host
        .with(PATIENCE, move |live, now| live.finish(now, done));
    let sent = asked.and_then(|()| all_done.recv_timeout(LAST_SYNC).ok());
    let stopped = engine.host.with(PATIENCE, |live, _| {
        live.volume().read_only().map(Notice::to_string)
    });
    let failure = match (sent, stopped) {
        (Some(Ok(())), Some(None)) => return Ok(engine),
        (_, Some(Some(reason))) => Failure::new(reason),
        _ => Failure::new(
            "expected the changes of the present journal on the servers within 60 s; found some that are not there yet: try again",
        ),
    };
    engine.stop();
    Err(failure)
}
