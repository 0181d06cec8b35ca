//! `vere fs check` and `vere fs gc`: by the process of the mount, or else on a volume opened for the run.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::mpsc::Sender;
use std::time::Duration;

use serde_json::Value;
use vere_mailfs::volume::CheckTerms;
use vere_process::failure::Failure;
use vere_process::wording::counted;

use crate::args::{CheckArgs, GcArgs, SecretArgs, VolumeArgs};
use crate::bring_in;
use crate::collections;
use crate::control::{Request, ask};
use crate::engine::Engine;
use crate::figures::octets;
use crate::folders::{self, Description};
use crate::host::Event;
use crate::news::News;
use crate::progress::Watch;
use crate::rollback::Leave;
use crate::runs;
use crate::serve::{finish, open, read_slot};
use crate::session;
use crate::volume::{How, Live, Upkeep};

/// The longest wait for a look at the progress.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) fn check(args: &CheckArgs) -> Result<(String, ExitCode), Failure> {
    let CheckArgs { data, repair, .. } = *args;
    let request = Request::Check { data, repair };
    let what = Upkeep::Check(CheckTerms { data, repair });
    let run = move |events: &Events| runs::run(events, what);
    let how = How {
        leave: Leave {
            // A journal that is brought in may know commits that the accounts have lost.
            accept_rollback: args.accept_rollback || args.bring_in.is_some(),
            leaves_branch: args.accept_rollback,
            journal_aside: args.set_journal_aside,
        },
        ..How::default()
    };
    if let Some(given) = &args.bring_in {
        bring_in::change_journals(&args.volume, &args.secret, given)?;
    }
    let report = perform(&args.volume, &args.secret, &request, &how, run)?;
    if args.bring_in.is_some() {
        bring_in::end(&args.volume)?;
    }
    let code = match report["clean"] {
        Value::Bool(true) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    };
    let text = if args.volume.json {
        format!("{report:#}\n")
    } else {
        checked(&report)
    };
    Ok((text, code))
}

pub(crate) fn collect(args: &GcArgs) -> Result<(String, ExitCode), Failure> {
    let report = perform(
        &args.volume,
        &args.secret,
        &Request::Collect,
        &How::default(),
        collections::run,
    )?;
    let has_failed = report["failed"]
        .as_array()
        .is_some_and(|all| !all.is_empty());
    let code = match has_failed {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    };
    let text = if args.volume.json {
        format!("{report:#}\n")
    } else {
        collected(&report)
    };
    Ok((text, code))
}

/// The way to an engine.
type Events = Sender<Event<Live>>;

/// Asks the process of the mount, or else opens the volume for the run. The progress is shown meanwhile.
fn perform(
    volume: &VolumeArgs,
    secret: &SecretArgs,
    request: &Request,
    how: &How,
    run: impl FnOnce(&Events) -> Result<Value, String>,
) -> Result<Value, Failure> {
    let description = Description::named(&volume.name)?;
    let state = folders::state(read_slot(&description)?.head.volume)?;
    let socket = folders::control(&state);
    let path = socket.clone();
    let look = move || {
        ask(&path, &Request::Progress, Some(PATIENCE))
            .ok()
            .flatten()
    };
    let watch = Watch::start(volume.json, look);
    if let Some(report) = ask(&socket, request, None)? {
        return Ok(report);
    }
    let mut news = |news| {
        if let News::Line(line) = news {
            eprintln!("{line}");
        }
    };
    drop(watch);
    let described = description.read()?;
    let opener = session::opener(secret, &described)?;
    let opened = open(&description, &described, &opener, how, &mut news)?;
    let engine = Engine::start(opened)?;
    let told = engine.events.clone();
    let watch = Watch::start(volume.json, move || Some(runs::progress(&told)));
    let report = run(&engine.events);
    drop(watch);
    finish(&engine.host);
    engine.host.stop();
    report.map_err(Failure::new)
}

/// A check for people.
pub(crate) fn checked(report: &Value) -> String {
    let mut text = String::new();
    for finding in report["findings"].as_array().into_iter().flatten() {
        let (weight, line) = (&finding["weight"], &finding["text"]);
        // Writing into a text does not fail.
        let _written = writeln!(
            text,
            "{:6} {}",
            weight.as_str().unwrap_or_default(),
            line.as_str().unwrap_or_default()
        );
    }
    let number = |key: &str| report[key].as_u64().unwrap_or(0);
    if number("left_out") > 0 {
        let _written = writeln!(text, "and {} further findings", number("left_out"));
    }
    let verdict = match report["clean"] {
        Value::Bool(true) => "clean",
        _ => "not clean",
    };
    let _written = writeln!(
        text,
        "{verdict}: {}, {}, {}, {} verified, {}",
        counted(number("mails"), "mail", "mails"),
        counted(number("packs"), "pack", "packs"),
        counted(number("inodes"), "inode", "inodes"),
        counted(number("verified"), "mail", "mails"),
        counted(number("repaired"), "repair", "repairs"),
    );
    text
}

fn collected(report: &Value) -> String {
    let mut text = String::new();
    for failed in report["failed"].as_array().into_iter().flatten() {
        let reason = failed["reason"].as_str().unwrap_or_default();
        // Writing into a text does not fail.
        let _written = writeln!(text, "account {}: {reason}", failed["account"]);
    }
    let number = |key: &str| report[key].as_u64().unwrap_or(0);
    let found = ["packs_found", "orphans_found", "duplicates_found"].map(number);
    let found = found.into_iter().fold(0, u64::saturating_add);
    let _written = writeln!(
        text,
        "{} removed ({}), {} of them commits and pages of the past; {found} found needless now, {} wait for their time, {} are not ours",
        counted(number("removed"), "mail", "mails"),
        octets(number("octets")),
        number("history"),
        number("waiting"),
        number("forged"),
    );
    if number("packs_moved") > 0 {
        let moved = octets(number("octets_moved"));
        let packs = counted(number("packs_moved"), "pack that was", "packs that were");
        let _written = writeln!(text, "{moved} moved out of {packs} less than half needed");
    }
    if number("files_rewritten") > 0 {
        let files = counted(number("files_rewritten"), "file", "files");
        let octets = octets(number("octets_rewritten"));
        let _written = writeln!(text, "{files} of many small pieces written anew ({octets})");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{check, checked, collected};
    use crate::args::{CheckArgs, SecretArgs, VolumeArgs};
    use vere_mailfs::format::slot::{Cost, NewSlot, Slot, SlotKeys, SlotSecret};
    use vere_mailfs::format::{PackNumber, VolumeId, VolumeKey};

    /// The command line counts before the description.
    #[test]
    fn a_given_passphrase_counts_before_a_described_key_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("home.toml");
        let text = "version = 1\nkey_file = \"/absent/key\"\n[[account]]\nnumber = 1\n\
            url = \"imap://ann@localhost/\"\npassword_file = \"/absent/password\"\n";
        crate::folders::write_private(&file, text.as_bytes()).unwrap();
        let new = NewSlot {
            volume: VolumeId([0xa7; 16]),
            pack: PackNumber(1),
            number: 1,
            cost: Cost::DEFAULT,
            salt: [1; 16],
            nonce: [2; 24],
        };
        let content = SlotKeys {
            keys: vec![(1, VolumeKey([7; 32]))],
            label: "test".to_owned(),
        };
        let slot = Slot::make(&new, &content, SlotSecret::KeyFile(&[1; 32])).unwrap();
        let place = folder.path().join("home.slot");
        crate::folders::write_private(&place, &slot.encode()).unwrap();
        let args = CheckArgs {
            set_journal_aside: false,
            bring_in: None,
            volume: VolumeArgs {
                name: file.display().to_string(),
                json: true,
            },
            data: false,
            repair: false,
            accept_rollback: false,
            secret: SecretArgs {
                passphrase_file: Some("/absent/passphrase".into()),
                key_file: None,
            },
        };
        let text = check(&args).unwrap_err().to_string();
        assert!(text.contains("/absent/passphrase"), "{text}");
    }

    #[test]
    fn reports_for_people() {
        let report = serde_json::json!({
            "clean": false, "left_out": 2, "mails": 5, "packs": 3, "inodes": 4, "verified": 0, "repaired": 0,
            "findings": [{ "kind": "lost", "weight": "loss", "text": "/a: gone" }],
        });
        assert_eq!(
            checked(&report),
            "loss   /a: gone\nand 2 further findings\nnot clean: 5 mails, 3 packs, 4 inodes, 0 mails verified, 0 repairs\n"
        );
        let report = serde_json::json!({
            "removed": 2, "octets": 10, "history": 1, "packs_moved": 2, "octets_moved": 2048, "files_rewritten": 1, "octets_rewritten": 4096, "packs_found": 1, "orphans_found": 2, "waiting": 3, "forged": 0,
            "failed": [{ "account": 2, "reason": "away" }],
        });
        assert_eq!(
            collected(&report),
            "account 2: away\n2 mails removed (10 octets), 1 of them commits and pages of the past; \
             3 found needless now, 3 wait for their time, 0 are not ours\n\
             2.0 KiB moved out of 2 packs that were less than half needed\n\
             1 file of many small pieces written anew (4.0 KiB)\n"
        );
    }
}
