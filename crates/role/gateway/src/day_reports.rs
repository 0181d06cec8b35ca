//! Reports to other systems about a day (UTC): counts, files, and mail behind each day (`[reports]`).
//!
//! ```text
//! judging ──────────▶ dmarc ──┐
//!                             ├──▶ counts of the day ──▶ sending ──▶ making ──▶ queue, https
//! outbound, couriers ──▶ tls ──┘
//! ```
//!
//! Counting delays no mail, and no failure of counting loses mail: a full disk, or a silent DNS, loses counts. A kill loses the counts of the
//! last [`LOOK`].

pub(super) mod dmarc;
mod making;
mod sending;
mod tls;
mod wanted;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use vere_observed::Files;
use vere_reports::Kind;

use self::sending::Sending;
use self::wanted::is_wanted;
use super::group::Groups;
use super::process::Process;

/// The time between two looks at new counts and due reports.
const LOOK: Duration = Duration::from_secs(5);
/// The folder below the data folder.
const FOLDER: &str = "reports";

/// The files of counts, once a report is wanted and the files can be opened.
#[derive(Debug, Default)]
struct Shelf(RefCell<Option<Rc<Files>>>);

impl Shelf {
    fn files(&self, process: &Process) -> Option<Rc<Files>> {
        if ![Kind::Dmarc, Kind::Tls]
            .into_iter()
            .any(|kind| is_wanted(process, kind))
        {
            return None;
        }
        let mut files = self.0.borrow_mut();
        if files.is_none() {
            *files = open(process).map(Rc::new);
        }
        files.clone()
    }
}

fn open(process: &Process) -> Option<Files> {
    let folder = process.settings().data.join(FOLDER);
    let opened = Files::open(&folder);
    opened
        .inspect_err(|error| {
            tracing::warn!(%error, path = %folder.display(), "counts for reports cannot be kept yet");
        })
        .ok()
}

/// Counts observations and sends due reports, until the gateway ends. Web servers of strangers hold up no counting, and their DNS no counts of
/// connections.
pub(super) async fn keep(groups: Rc<Groups>) {
    let shelf = Shelf::default();
    tokio::join!(
        count_messages(&groups, &shelf),
        count_connections(&groups, &shelf),
        send(&groups, &shelf, Kind::Dmarc),
        send(&groups, &shelf, Kind::Tls)
    );
}

async fn count_messages(groups: &Groups, shelf: &Shelf) {
    loop {
        tokio::time::sleep(LOOK).await;
        let process = groups.process();
        dmarc::count(process, shelf.files(process).as_deref()).await;
    }
}

async fn count_connections(groups: &Groups, shelf: &Shelf) {
    loop {
        tokio::time::sleep(LOOK).await;
        let process = groups.process();
        tls::count(process, shelf.files(process).as_deref()).await;
    }
}

async fn send(groups: &Rc<Groups>, shelf: &Shelf, kind: Kind) {
    let mut sending = Sending::of(kind);
    loop {
        tokio::time::sleep(LOOK).await;
        let process = groups.process();
        if !is_wanted(process, kind) || !groups.are_recovered() {
            continue;
        }
        if let Some(files) = shelf.files(process) {
            sending.look(groups, &files).await;
        }
    }
}
