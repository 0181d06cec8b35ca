//! Commands for a running mount.

use std::fmt::Write as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use vere_fuse::{Strength, Unmounted, unmount};
use vere_process::failure::Failure;

use crate::args::{UmountArgs, VolumeArgs};
use crate::control::{Request, ask};
use crate::folders::{self, Description, Lock};
use crate::serve::{LAST_SYNC, read_slot};

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
    Ok(shown(&status))
}

/// The state for people.
fn shown(status: &Value) -> String {
    let lines = [
        ("mounted at", "mounted_at"),
        ("generation", "generation"),
        ("writer", "writer"),
        ("changes waiting", "rows_waiting"),
        ("octets waiting", "octets_waiting"),
        ("octets on their way", "octets_sending"),
        ("commits on their way", "commits_sending"),
        ("octets of the journal", "journal_octets"),
        ("octets in the cache", "cache_octets"),
        ("copies missing", "copies_missing"),
        ("read-only", "read_only"),
    ];
    let mut text = String::new();
    let mut line = |name: &str, value: &Value| {
        let value = match value {
            Value::Null => return,
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        // Writing into a text does not fail.
        let _written = writeln!(text, "{name:22} {value}");
    };
    for (name, key) in lines {
        line(name, &status[key]);
    }
    for account in status["accounts"].as_array().into_iter().flatten() {
        let health = account["failing"]
            .as_str()
            .map_or("works".to_owned(), |fault| format!("fails: {fault}"));
        let value = format!("{health}, {} requests", account["requests"]);
        line(
            &format!("account {}", account["account"]),
            &Value::String(value),
        );
    }
    text
}

pub(crate) fn sync(args: &VolumeArgs) -> Result<String, Failure> {
    let socket = folders::control(&state(&args.name)?);
    let done = ask(&socket, &Request::Sync, None)?.ok_or_else(|| not_mounted(&args.name))?;
    Ok(if args.json {
        format!("{done:#}\n")
    } else {
        String::new()
    })
}

pub(crate) fn umount(args: &UmountArgs) -> Result<String, Failure> {
    if args.what.contains('/') && !args.what.ends_with(".toml") {
        return unmount_folder(Path::new(&args.what), args.force);
    }
    let state = state(&args.what)?;
    let request = Request::Umount { force: args.force };
    let answer = ask(&folders::control(&state), &request, Some(LAST_SYNC))?;
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
    if args.json {
        let rows: Vec<Value> = volume
            .accounts
            .iter()
            .map(|account| {
                json!({
                    "number": account.number,
                    "url": account.url,
                    "group": account.group,
                    "encoding": if account.base64 { "base64" } else { "8bit" },
                    "connections_max": account.connections_max,
                    "lead": account.number == volume.lead,
                })
            })
            .collect();
        return Ok(format!("{:#}\n", Value::Array(rows)));
    }
    let mut text = String::new();
    for account in &volume.accounts {
        let lead = if account.number == volume.lead {
            " lead"
        } else {
            ""
        };
        let encoding = if account.base64 { "base64" } else { "8bit" };
        // Writing into a text does not fail.
        let _written = writeln!(
            text,
            "{:5} group {:5} {encoding:6} {}{lead}",
            account.number, account.group, account.url
        );
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn a_status_for_people() {
        let status = serde_json::json!({
            "mounted_at": "/mnt", "generation": 7, "read_only": null,
            "accounts": [{ "account": 1, "requests": 2, "failing": "no room" }],
        });
        let text = shown(&status);
        assert!(text.contains("mounted at             /mnt\n"), "{text}");
        assert!(
            text.contains("account 1              fails: no room, 2 requests\n"),
            "{text}"
        );
        assert!(!text.contains("read-only"));
    }
}
