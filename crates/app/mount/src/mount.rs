//! `vere fs mount`: a process in the foreground or in the background.

use std::env;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};

use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};
use vere_fuse::Options;
use vere_process::failure::Failure;
use vere_settings::Volume as Described;

use crate::args::{Mode, MountArgs};
use crate::bars;
use crate::folders::{self, Description};
use crate::lines;
use crate::news::News;
use crate::secrets::Opener;
use crate::serve::{Task, read_slot, serve};
use crate::volume::How;

/// The longest line of the process in the background, in octets.
const LINE_MAX: u64 = 64 << 10;

/// News of the process in the background at its start, a line each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Told {
    News(News),
    Ready,
    Error(String),
}

pub(crate) fn run(args: &MountArgs) -> Result<(), Failure> {
    let mut description = Description::named(&args.name)?;
    description.file = std::path::absolute(&description.file)?;
    let volume = description.read()?;
    let mut volume = volume;
    if let Some(mode) = args.mode {
        volume.strong = mode == Mode::Strong;
    }
    if args.background {
        return in_background(args, description, volume);
    }
    let passphrase = args
        .secret
        .passphrase_file
        .as_ref()
        .or(volume.passphrase_file.as_ref());
    let key = args.secret.key_file.as_ref().or(volume.key_file.as_ref());
    let opener = Opener::get(passphrase, key, false)?;
    if !args.foreground {
        return start(args, &description, &opener);
    }
    let task = task(args, description, volume, opener)?;
    let bar = bars::bar("reading the log");
    let ready = || {
        bar.finish_and_clear();
        Ok(())
    };
    serve(&task, &mut |news| show(&bar, &news), ready)
}

fn task(
    args: &MountArgs,
    description: Description,
    volume: Described,
    opener: Opener,
) -> Result<Task, Failure> {
    let name = description.label();
    Ok(Task {
        description,
        volume,
        opener,
        point: std::path::absolute(&args.point)?,
        options: Options {
            name,
            allow_other: args.allow_other,
            read_only: args.read_only,
            suid: args.suid,
            devices: args.dev,
        },
        background: args.background,
        how: How {
            expect: args.expect_head,
            // Only the log tells whether a commit is in the chain.
            local: args.expect_head.is_none(),
            ..How::default()
        },
    })
}

fn show(bar: &ProgressBar, news: &News) {
    match news {
        News::Progress(read, all) => {
            bars::show(bar, *read, *all);
        }
        // The lines of a mount in the foreground are there already.
        News::Line(_) => {}
    }
}

/// Starts a process in the background, and waits until the mount can be used.
fn start(args: &MountArgs, description: &Description, opener: &Opener) -> Result<(), Failure> {
    let state = folders::state(read_slot(description)?.head.volume)?;
    folders::make_private(&state)?;
    let log = state.join("mount.log");
    let errors = lines::open(&log)?;
    let mut command = Command::new(env::current_exe()?);
    command.args(["fs", "mount", "--background"]);
    for (flag, wanted) in [
        ("--allow-other", args.allow_other),
        ("--read-only", args.read_only),
        ("--suid", args.suid),
        ("--dev", args.dev),
    ] {
        if wanted {
            command.arg(flag);
        }
    }
    if let Some(mode) = args.mode {
        command.arg("--mode").arg(mode.word());
    }
    if let Some(head) = args.expect_head {
        command.arg("--expect-head").arg(head.to_string());
    }
    command
        .arg("--")
        .arg(&description.file)
        .arg(std::path::absolute(&args.point)?);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(errors);
    let mut child = command.spawn()?;
    if let Some(mut secret) = child.stdin.take() {
        secret.write_all(&opener.encode())?;
    }
    let told = child
        .stdout
        .take()
        .ok_or_else(|| Failure::new("expected a pipe; found none"))?;
    let mut told = BufReader::new(told);
    let bar = bars::bar("reading the log");
    loop {
        let mut line = String::new();
        (&mut told).take(LINE_MAX).read_line(&mut line)?;
        match serde_json::from_str(&line) {
            Ok(Told::News(News::Line(line))) => bar.suspend(|| eprintln!("{line}")),
            Ok(Told::News(news)) => show(&bar, &news),
            Ok(Told::Ready) => {
                bar.finish_and_clear();
                return Ok(());
            }
            Ok(Told::Error(text)) => return Err(Failure::new(text)),
            Err(_) => {
                let text = "expected a mount; found the end of its process";
                return Err(Failure::new(format!("{text}, see {}", log.display())));
            }
        }
    }
}

fn in_background(
    args: &MountArgs,
    description: Description,
    volume: Described,
) -> Result<(), Failure> {
    let outcome = serve_in_background(args, description, volume);
    if let Err(failure) = &outcome {
        tell(&Told::Error(failure.to_string()));
    }
    outcome
}

fn serve_in_background(
    args: &MountArgs,
    description: Description,
    volume: Described,
) -> Result<(), Failure> {
    // A new session: the end of the terminal does not concern the mount.
    nix::unistd::setsid()?;
    let opener = Opener::decode(io::stdin().lock())?;
    let task = task(args, description, volume, opener)?;
    env::set_current_dir("/")?;
    let ready = || {
        tell(&Told::Ready);
        Ok(())
    };
    serve(&task, &mut |news| tell(&Told::News(news)), ready)
}

fn tell(told: &Told) {
    let line = serde_json::to_string(told).unwrap_or_default();
    // After the start the pipe has no reader.
    let _unread = writeln!(io::stdout(), "{line}");
}
