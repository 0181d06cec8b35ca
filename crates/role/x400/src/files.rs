//! Files of local users: one for each unit.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use bytes::Bytes;
use tokio::task::spawn_blocking;
use vere_mta400::{Destination as Next, RecordRecipient};
use vere_queue::{Attempt, Destination, Disposition, Envelope, RecipientResult};
use vere_units::TraceId;

use crate::process::Process;

/// Writes a unit into the folder of its user; `None` when the process ends meanwhile.
pub(crate) async fn file(
    process: Rc<Process>,
    destination: Destination,
    envelope: Rc<Envelope>,
    body: Bytes,
) -> Option<Attempt> {
    let text = destination.to_string();
    let user = text.strip_prefix("file:")?.to_owned();
    let tags = envelope
        .mail
        .recipients
        .iter()
        .filter_map(|one| one.orcpt.as_deref());
    let places: Vec<u32> = tags.filter_map(RecordRecipient::place_of).collect();
    let unit = process
        .mta()
        .outgoing(&body, &places, &Next::File(user.clone()));
    let pieces = match unit {
        Ok(unit) => unit.apdu.map(|apdu| apdu.to_pieces()).unwrap_or_default(),
        Err(error) => {
            return Some(attempt(
                &envelope,
                Disposition::Failed,
                "5.6.0",
                error.to_string(),
            ));
        }
    };
    let folder = process.settings().x400.as_ref()?.users_folder().join(&user);
    let trace = envelope.head.trace;
    // The blocking task never panics; it is cancelled only when the process ends.
    let written = spawn_blocking(move || write(&folder, trace, &pieces))
        .await
        .ok()?;
    Some(match written {
        Ok(path) => attempt(
            &envelope,
            Disposition::Delivered,
            "2.1.5",
            path.display().to_string(),
        ),
        Err(error) => {
            let full = error.kind() == io::ErrorKind::StorageFull;
            let status = if full { "4.3.1" } else { "4.3.0" };
            attempt(
                &envelope,
                Disposition::Deferred,
                status,
                format!("cannot write: {error}"),
            )
        }
    })
}

/// Writes aside, syncs and renames. The id names the file, so a second write of a unit replaces the first.
fn write(folder: &Path, trace: TraceId, pieces: &[Bytes]) -> io::Result<PathBuf> {
    if !folder.is_dir() {
        std::fs::create_dir_all(folder)?;
        for parent in folder.ancestors().skip(1).take(2) {
            File::open(parent)?.sync_all()?;
        }
    }
    let (aside, path) = (
        folder.join(format!(".{trace}.part")),
        folder.join(format!("{trace}.p1")),
    );
    let mut file = File::create(&aside)?;
    for piece in pieces {
        file.write_all(piece)?;
    }
    file.sync_all()?;
    std::fs::rename(&aside, &path)?;
    File::open(folder)?.sync_all()?;
    Ok(path)
}

fn attempt(envelope: &Envelope, disposition: Disposition, status: &str, reply: String) -> Attempt {
    let result = RecipientResult {
        disposition,
        status: status.to_owned(),
        reply,
        from_remote: false,
    };
    Attempt {
        remote: "local".to_owned(),
        reports_taken_over: false,
        results: vec![result; envelope.mail.recipients.len()],
    }
}
