//! The greylist on disk, so that a restart puts nobody off a second time. A list that is lost costs a delay, and nothing else.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use vere_process::secret;
use vere_screen::{Screen, Terms};
use vere_settings::Settings;

/// Names of the files in the folder of the front: the list, the list as it is written, the key of its entries.
const LIST: &str = "greylist";
const NEW: &str = "greylist.new";
const KEY: &str = "greylist.key";

/// Makes the engine with the list that was kept. Without the key or the list the engine begins with none.
pub(crate) fn screen(settings: &Settings, terms: Terms) -> Screen {
    let folder = settings.front_directory();
    let key = secret::load_or_make(&folder.join(KEY));
    let key = key.map(|key| *key.expose()).unwrap_or_else(|error| {
        tracing::warn!(%error, "the greylist begins anew");
        secret::random()
    });
    let mut screen = Screen::new(terms, key);
    let path = folder.join(LIST);
    match read(&path) {
        Ok(Some(octets)) => {
            if let Err(error) = screen.import_greylist(&octets) {
                tracing::warn!(%error, path = %path.display(), "the greylist begins anew");
            }
        }
        Ok(None) => {}
        Err(error) => tracing::warn!(%error, path = %path.display(), "the greylist begins anew"),
    }
    screen
}

fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// Writes the list, if there is one.
pub(crate) fn keep(settings: &Settings, screen: &Screen) {
    if settings
        .front
        .as_ref()
        .is_none_or(|front| front.greylist_delay.is_none())
    {
        return;
    }
    let folder = settings.front_directory();
    let (new, list): (PathBuf, PathBuf) = (folder.join(NEW), folder.join(LIST));
    let written = fs::write(&new, screen.export_greylist()).and_then(|()| fs::rename(&new, &list));
    if let Err(error) = written {
        tracing::warn!(%error, path = %list.display(), "the greylist cannot be kept");
    }
}
