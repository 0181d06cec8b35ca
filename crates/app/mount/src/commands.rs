//! Commands for a running mount.

use std::fmt::Write as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use vere_fuse::{Strength, Unmounted, unmount};
use vere_process::failure::Failure;

use crate::args::{Mode, ModeArgs, UmountArgs, VolumeArgs};
use crate::control::{Request, ask};
use crate::folders::{self, Description, Lock};
use crate::progress::{Watch, sending};
use crate::serve::{LAST_SYNC, read_slot};
use crate::status;

/// The longest time of a status.
const STATUS_TIMEOUT: Duration = Duration::from_secs(15);
/// Time between looks at the end of a process.
const LOOK: Duration = Duration::from_millis(20);

fn state(name: &str) -> Result<std::path::PathBuf, Failure> {
    folders::state(read_slot(&Description::named(name)?)?.head.volume)
}

fn not_mounted(name: &str) -> Failure {
    Failure::new(format!(
        "{name}: expected a mounted volume; found none. `vere fs mount` mounts it"
    ))
}

pub(crate) fn status(args: &VolumeArgs) -> Result<String, Failure> {
    let socket = folders::control(&state(&args.name)?);
    let status = ask(&socket, &Request::Status, Some(STATUS_TIMEOUT))?
        .ok_or_else(|| not_mounted(&args.name))?;
    if args.json {
        return Ok(format!("{status:#}\n"));
    }
    let described = Description::named(&args.name)?.read().ok();
    Ok(status::shown(&status, described.as_ref()))
}

pub(crate) fn sync(args: &VolumeArgs) -> Result<String, Failure> {
    let socket = folders::control(&state(&args.name)?);
    let _watch = Watch::start(args.json, sending(socket.clone()));
    let done = ask(&socket, &Request::Sync, None)?.ok_or_else(|| not_mounted(&args.name))?;
    Ok(if args.json {
        format!("{done:#}\n")
    } else {
        String::new()
    })
}

pub(crate) fn mode(args: &ModeArgs) -> Result<String, Failure> {
    let name = &args.volume.name;
    let request = Request::Mode {
        strong: args.mode.map(|mode| mode == Mode::Strong),
        strategy: args.strategy,
    };
    let answer = ask(
        &folders::control(&state(name)?),
        &request,
        Some(STATUS_TIMEOUT),
    )?;
    let answer = answer.ok_or_else(|| not_mounted(name))?;
    let word = |key: &str| answer[key].as_str().unwrap_or_default();
    Ok(if args.volume.json {
        format!("{answer:#}\n")
    } else if args.strategy.is_some() {
        format!("{}, {}\n", word("mode"), word("strategy"))
    } else {
        format!("{}\n", word("mode"))
    })
}

pub(crate) fn umount(args: &UmountArgs) -> Result<String, Failure> {
    if args.what.contains('/') && !args.what.ends_with(".toml") {
        return unmount_folder(Path::new(&args.what), args.force);
    }
    let state = state(&args.what)?;
    let request = Request::Umount { force: args.force };
    let socket = folders::control(&state);
    let _watch = Watch::start(false, sending(socket.clone()));
    let answer = ask(&socket, &request, Some(LAST_SYNC))?;
    let answer = answer.ok_or_else(|| not_mounted(&args.what))?;
    if answer["clean"] == Value::Bool(false) {
        return Ok(
            "Programs still use the mount: the mount ends with the last of these programs, or by --force.\n"
                .to_owned(),
        );
    }
    let start = Instant::now();
    while start.elapsed() < LAST_SYNC.saturating_add(STATUS_TIMEOUT) {
        if Lock::take(&state).is_ok() {
            return Ok(String::new());
        }
        thread::sleep(LOOK);
    }
    Ok("The mount is gone; its process still sends the last changes.\n".to_owned())
}

/// By the folder: for a mount whose process has ended, too.
fn unmount_folder(folder: &Path, force: bool) -> Result<String, Failure> {
    let strength = if force {
        Strength::Forced
    } else {
        Strength::Soft
    };
    Ok(match unmount(folder, strength)? {
        Unmounted::Clean => String::new(),
        Unmounted::Detached => {
            "Programs still use the mount: the mount ends with the last of these programs, or by --force.\n"
                .to_owned()
        }
    })
}

pub(crate) fn accounts(args: &VolumeArgs) -> Result<String, Failure> {
    let volume = Description::named(&args.name)?.read()?;
    // A volume that is not mounted has accounts all the same.
    let live = state(&args.name)
        .ok()
        .and_then(|state| {
            let socket = folders::control(&state);
            ask(&socket, &Request::Status, Some(STATUS_TIMEOUT)).ok()
        })
        .flatten();
    let further = crate::volume::terms(&volume).further_accounts();
    let rows: Vec<Value> = volume
        .accounts
        .iter()
        .map(|account| {
            let now = live.as_ref().and_then(|live| {
                let mut accounts = live["accounts"].as_array().into_iter().flatten();
                accounts.find(|of| of["account"].as_u64() == Some(account.number.into()))
            });
            let now = now.unwrap_or(&Value::Null);
            json!({
                "number": account.number,
                "url": account.url,
                "group": account.group,
                "encoding": if account.base64 { "base64" } else { "8bit" },
                "connections_max": crate::provider::connections_max(account),
                "lead": account.number == volume.lead,
                "copy": further.contains(&account.number),
                "mounted": live.is_some(),
                "failing": now["failing"],
                "used_octets": now["used_octets"],
                "limit_octets": now["limit_octets"],
            })
        })
        .collect();
    if args.json {
        return Ok(format!("{:#}\n", Value::Array(rows)));
    }
    Ok(rows.iter().map(account_line).collect())
}

fn account_line(row: &Value) -> String {
    let word = |key: &str| row[key].as_str().unwrap_or_default();
    let mut line = format!(
        "{:3} group {:3} {:6} {}",
        row["number"].as_u64().unwrap_or(0),
        row["group"].as_u64().unwrap_or(0),
        word("encoding"),
        word("url"),
    );
    if row["lead"] == Value::Bool(true) {
        line.push_str(", lead");
    }
    if row["copy"] == Value::Bool(true) {
        line.push_str(", copy of changes and names");
    }
    if row["mounted"] == Value::Bool(true) {
        let state = row["failing"].as_str();
        let state = state.map_or("works".to_owned(), |fault| format!("fails: {fault}"));
        // Writing into a text does not fail.
        let _written = write!(line, ", {state}, {}", status::room(row));
    } else {
        line.push_str(", not mounted");
    }
    line.push('\n');
    line
}
