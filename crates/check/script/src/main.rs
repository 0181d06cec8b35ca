//! `vere-script`: runs protocol scripts against a daemon, or with no address against the bare machine.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use vere_script::daemon::Target;
use vere_script::{Failure, Script, Verdict, bare, run_against};

/// Runs protocol scripts against a daemon, or without --to against the bare machine.
#[derive(Debug, Parser)]
struct Arguments {
    /// Where the daemon takes mail from servers.
    #[arg(long, value_name = "ADDRESS")]
    to: Option<SocketAddr>,
    /// Where the daemon takes mail from users.
    #[arg(long, value_name = "ADDRESS")]
    submission: Option<SocketAddr>,
    /// Where the daemon speaks IMAP.
    #[arg(long, value_name = "ADDRESS")]
    imap: Option<SocketAddr>,
    /// What the daemon grants to us: relay, priority, auth-in-clear, xclient, proxy, tls, auth.
    #[arg(
        long,
        value_name = "RIGHTS",
        value_delimiter = ',',
        default_value = "tls,auth"
    )]
    rights: Vec<String>,
    /// A limit of the daemon, under the name used in scripts; may be repeated.
    #[arg(long = "limit", value_name = "NAME=VALUE", value_parser = limit)]
    limits: Vec<(String, u64)>,
    /// The scripts; of a folder all files ending in .script.
    #[arg(required = true, value_name = "FILE")]
    scripts: Vec<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments, &mut io::stdout().lock()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(io::stderr(), "vere-script: {error}");
            ExitCode::from(2)
        }
    }
}

/// Runs all scripts, writes a line for each, and counts the failures.
fn run(
    arguments: &Arguments,
    out: &mut impl io::Write,
) -> Result<usize, Box<dyn std::error::Error>> {
    let (mut failed, mut skipped, mut passed) = (0, 0, 0);
    for path in files(&arguments.scripts)? {
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let script = Script::parse(&path.display().to_string(), &text)?;
        match run_one(arguments, &script) {
            Ok(Verdict::Passed) => {
                passed += 1;
                writeln!(out, "ok      {}", script.name)?;
            }
            Ok(Verdict::Skipped(reason)) => {
                skipped += 1;
                writeln!(out, "skipped {}: {reason}", script.name)?;
            }
            Err(failure) => {
                failed += 1;
                writeln!(out, "FAILED  {failure}")?;
            }
        }
    }
    writeln!(out, "{passed} passed, {failed} failed, {skipped} skipped")?;
    Ok(failed)
}

fn run_one(arguments: &Arguments, script: &Script) -> Result<Verdict, Failure> {
    match arguments.to {
        None => bare::run(script, bare::Pieces::Whole),
        Some(address) => {
            let target = Target {
                submission: arguments.submission,
                imap: arguments.imap,
                rights: arguments.rights.clone(),
                limits: arguments.limits.iter().cloned().collect(),
                ..Target::from(address)
            };
            run_against(target, script)
        }
    }
}

fn limit(text: &str) -> Result<(String, u64), String> {
    let (name, value) = text.split_once('=').ok_or("not of the form NAME=VALUE")?;
    let value = value.parse().map_err(|_| "the value is no number")?;
    Ok((name.to_owned(), value))
}

/// Replaces directories by their scripts, in order of names.
fn files(paths: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let mut inside = std::fs::read_dir(path)?
                .map(|entry| entry.map(|entry| entry.path()))
                .collect::<io::Result<Vec<_>>>()?;
            inside.retain(|path| path.extension() == Some(Path::new("script").as_os_str()));
            inside.sort();
            files.append(&mut inside);
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}
