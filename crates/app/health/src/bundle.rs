//! `vere support-bundle`: facts for a helper, in a file without secrets.

mod anonymous;
mod archive;
mod args;
mod facts;
mod folders;
mod journal;
mod metrics;
mod parts;
mod readme;
mod scrub;
mod settings;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_process::wording::size;

use crate::doctor;
use crate::figures::counted;

use archive::{Entry, Form};
pub use args::{BundleArgs, Further};
use parts::Made;
use scrub::Scrubber;

/// Longest time for all parts together.
const WHOLE: Duration = Duration::from_secs(120);

/// Runs the command; `find` finds the file of the settings.
///
/// # Errors
/// When the file exists already, has another ending, or cannot be written.
pub fn run(
    args: &BundleArgs,
    find: impl FnOnce() -> Result<PathBuf, Failure>,
    further: &[Further],
) -> Result<Outcome, Failure> {
    let path = match &args.file {
        Some(path) => path.clone(),
        None => PathBuf::from(format!("vere-support-{}.tar.zst", facts::moment())),
    };
    let form = Form::of(&path)?;
    if path.symlink_metadata().is_ok() {
        return Err(Failure::new(format!(
            "expected a new file; found {}: name another, or remove it",
            path.display()
        )));
    }
    let until = Instant::now() + WHOLE;
    let found = find();
    let mut made = Vec::new();
    let mut scrubber = Scrubber::new(args.anonymous)?;
    match found {
        Ok(config) => {
            let (config, sections) = doctor::of_file(&config);
            made.extend(settings::parts(&config, &mut scrubber));
            let parts = parts::all(args, config.settings.as_ref(), sections, further);
            made.extend(parts.into_iter().map(|part| part.made(until)));
        }
        Err(failure) => {
            made.push(Made::missing(
                "settings.toml",
                "the settings",
                failure.to_string(),
            ));
            let parts = parts::of_machine(args);
            made.extend(parts.into_iter().map(|part| part.made(until)));
        }
    }
    write(&path, form, &made, &scrubber, args)
}

/// Scrubs the parts, and writes them with a text about them.
fn write(
    path: &Path,
    form: Form,
    made: &[Made],
    scrubber: &Scrubber,
    args: &BundleArgs,
) -> Result<Outcome, Failure> {
    let mut entries: Vec<Entry> = Vec::with_capacity(made.len() + 1);
    let mut lines = Vec::new();
    for part in made {
        let reason = part
            .text
            .as_ref()
            .err()
            .map(|reason| scrubber.scrub(reason));
        let text = part.text.as_ref().map(|text| scrubber.scrub(text));
        lines.push((
            part.name,
            part.about,
            text.as_ref().map(String::len).ok(),
            reason,
        ));
        if let Ok(text) = text {
            entries.push(Entry {
                name: part.name,
                text,
            });
        }
    }
    let about = readme::text(&lines, args.anonymous);
    entries.insert(
        0,
        Entry {
            name: "README.txt",
            text: about,
        },
    );
    let bytes = archive::write(path, form, &entries)?;
    let text = match args.json {
        true => {
            let part = |(name, _, bytes, reason): &readme::Line| json!({ "name": name, "bytes": bytes, "reason": reason });
            let parts: Vec<_> = lines.iter().map(part).collect();
            let file = path.display().to_string();
            let value = json!({ "file": file, "bytes": bytes, "parts": parts });
            format!("{value:#}\n")
        }
        false => told(path, bytes, &lines),
    };
    Ok(Outcome::Print(text))
}

fn told(path: &Path, bytes: u64, lines: &[readme::Line]) -> String {
    let mut text = String::new();
    for line in lines {
        text += &readme::row(line);
    }
    let count = lines.iter().filter(|line| line.2.is_some()).count();
    text + &format!(
        "\nwritten: {}, {}, {}, readable by you alone\n\
         It has no passwords, keys or messages. Read it before you send it: README.txt inside says what each file has.\n",
        path.display(),
        counted(count as u64, "file"),
        size(bytes)
    )
}

#[cfg(test)]
mod tests;
