//! `vere fs rebuild --salvage`: content without names, where log or pages are beyond use.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use serde_json::{Value, json};
use vere_mailfs::format::Keys;
use vere_mailfs::volume::{Placed, Salvage, Salvaged, lost_writer};
use vere_ports::files::Caller;
use vere_process::failure::Failure;
use vere_recovery::Recovered;
use vere_settings::Volume as Described;

use super::search;
use crate::bars::{bar, show};
use crate::host::{Event, Host};
use crate::runs;
use crate::volume::{self, Live, Lost};

/// The longest silence of an engine; the rows of a large volume hold the engine for seconds.
const SILENCE_MAX: Duration = Duration::from_secs(600);

fn owner() -> Caller {
    Caller {
        uid: nix::unistd::getuid().as_raw(),
        gid: nix::unistd::getgid().as_raw(),
    }
}

/// Reads every mail with content.
pub(super) fn read(
    described: &Described,
    tag: &str,
    recovered: &Recovered,
) -> Result<Arc<Salvaged>, Failure> {
    let none = || Failure::new("expected a key in the slot; found none");
    let all = &recovered.keys.keys;
    let (epoch, _) = all.last().ok_or_else(none)?;
    let of = volume::create(
        recovered.volume,
        *epoch,
        Keys::of_epochs(all).ok_or_else(none)?,
    )?;
    let salvage = Salvage::new(
        &volume::terms(described).accounts,
        of.volume,
        std::sync::Arc::clone(&of.keys),
    );
    let bar = bar("reading");
    let found = search::salvage(
        &described.accounts,
        tag,
        salvage,
        &mut |stage, done, all| {
            bar.set_message(stage);
            show(&bar, done, all);
        },
    );
    bar.finish_and_clear();
    found.map(Arc::new)
}

/// What a new tree begins with, should the log have no commit at all.
pub(super) fn lost(found: &Salvaged, recovered: &Recovered) -> Lost {
    let mut rows = recovered.facts.rows.clone();
    rows.push(lost_writer(found.last_writer()));
    Lost {
        last_writer: found.last_writer(),
        generation: found.generation().max(recovered.facts.generation),
        rows,
        owner: owner(),
    }
}

/// Puts the content into the tree, where the log has lost commits. `generation` is that of the newest commit in the chain.
pub(super) fn place(
    host: &Host<Live>,
    events: &Sender<Event<Live>>,
    found: &Arc<Salvaged>,
    is_lost: bool,
) -> Result<Value, Failure> {
    if !is_lost {
        return Ok(report(found, None));
    }
    let of = Arc::clone(found);
    let placed = host.with(SILENCE_MAX, move |live, now| {
        live.salvage(now, owner(), &of)
    });
    let placed = placed.ok_or_else(|| {
        Failure::new("expected an answer of the engine within 10 minutes; found none")
    })?;
    let placed = placed.map_err(|errno| Failure::new(format!("rows of the volume: {errno}")))?;
    if placed.files > 0 {
        let bar = bar("writing");
        let written = runs::wait(events, &mut |stage, done, all| {
            bar.set_message(stage);
            show(&bar, done, all);
        });
        bar.finish_and_clear();
        written.map_err(Failure::new)?;
    }
    Ok(report(found, Some(&placed)))
}

fn report(found: &Salvaged, placed: Option<&Placed>) -> Value {
    let report = found.report();
    json!({
        "folder": placed.filter(|placed| placed.files > 0).map(|placed| &placed.folder),
        "files": placed.map_or(0, |placed| placed.files),
        "octets": placed.map_or(0, |placed| placed.octets),
        "packs": report.packs,
        "commits": report.commits,
        "frames": report.frames,
        "frames_damaged": report.frames_damaged,
        "frames_left_out": report.left_out,
        "unusable": report.unusable,
        "unusable_more": report.unusable_more,
    })
}

/// For people.
pub(super) fn shown(salvaged: &Value) -> String {
    let number = |key: &str| salvaged[key].as_u64().unwrap_or(0);
    let mut text = match salvaged["folder"].as_str() {
        Some(folder) => format!(
            "{} files with {} octets are salvaged into the folder {folder}",
            number("files"),
            number("octets")
        ),
        None => "nothing is salvaged: no content without a file".to_owned(),
    };
    text.push_str(&format!(
        "; {} packs and {} commits read, {} damaged frames",
        number("packs"),
        number("commits"),
        number("frames_damaged")
    ));
    for reason in salvaged["unusable"].as_array().into_iter().flatten() {
        text.push_str("\nunusable: ");
        text.push_str(reason.as_str().unwrap_or_default());
    }
    let left = number("unusable_more");
    if left > 0 {
        text.push_str(&format!("\nand {left} further mails"));
    }
    text
}
