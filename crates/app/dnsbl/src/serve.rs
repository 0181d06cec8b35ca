//! `vere dnsbl serve`: the server of block lists alone.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use serde_json::json;
use vere_process::failure::Failure;
use vere_process::log::{self, Level};
use vere_process::outcome::Outcome;
use vere_settings::{DnsblData, Settings};

use crate::config::{Config, ServeLists};

/// The address without any in flags and settings; `make run` has the same.
const LISTEN: &str = "127.0.0.1:2053";
/// The name of the machine in SOA records of a server without settings.
const HOSTNAME: &str = "dnsbl.invalid";

/// Run the server of block lists alone, until a signal stops it.
///
/// With `--zone` no configuration file is needed; other settings then have their defaults, unless `-c` names a file with
/// a section `[dnsbl]`. SIGHUP reads the files again; changed files are noticed within a minute. A file with an error
/// changes nothing: the log has file, line and reason.
///
/// Example: vere dnsbl serve --listen 127.0.0.1:2053 --zone bl.example.org:ip4set:addresses
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct ServeArgs {
    /// An address for queries by UDP and TCP; may be repeated. 127.0.0.1:2053 without any.
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Vec<SocketAddr>,
    /// A zone with its format and files, as rbldnsd writes it; may be repeated, also for one zone.
    #[arg(long, value_name = "NAME:FORMAT:FILE[,FILE...]")]
    zone: Vec<String>,
    /// Threads for UDP; half of the cores, at most 8, without the option.
    #[arg(long, value_name = "N")]
    threads: Option<u32>,
}

/// Runs the server.
///
/// # Errors
/// When the arguments or settings are wrong, no zone can be read, or an address is taken.
pub(super) fn run(
    args: &ServeArgs,
    config: Config<'_>,
    serve: ServeLists,
) -> Result<Outcome, Failure> {
    let (settings, file) = match (args.zone.is_empty(), config.file()) {
        (true, _) => {
            let (path, settings) = config.load()?;
            (settings, Some(path))
        }
        (false, None) => (Arc::new(Settings::parse(&text(args)?, "--zone")?), None),
        (false, Some(_)) => (config.load()?.1, None),
    };
    let settings = with_flags(args, settings)?;
    let log = log::start(&settings, "dnsbl")?;
    let reload = file.map(|path| (path, Level::of(&log, "dnsbl")));
    serve(&settings, reload)?;
    Ok(Outcome::Exit(ExitCode::SUCCESS))
}

/// The settings with what the flags say.
fn with_flags(args: &ServeArgs, settings: Arc<Settings>) -> Result<Arc<Settings>, Failure> {
    let flags = Settings::parse(&text(args)?, "--zone")?;
    let (mut settings, Some(flags)) = (Arc::unwrap_or_clone(settings), flags.dnsbl) else {
        return Err(Failure::new("expected a zone: --zone NAME:FORMAT:FILE"));
    };
    let Some(dnsbl) = settings.dnsbl.as_mut() else {
        let text = "expected --zone, or a section [dnsbl] in the settings";
        return Err(Failure::new(text));
    };
    if !args.listen.is_empty() {
        dnsbl.listen = flags.listen;
    }
    if !args.zone.is_empty() {
        dnsbl.zones = flags.zones;
    }
    dnsbl.threads = args.threads.or(dnsbl.threads);
    Ok(Arc::new(settings))
}

/// The flags as settings, with the same checks and defaults.
fn text(args: &ServeArgs) -> Result<String, Failure> {
    let mut text = format!("version = 1\nhostname = {}\n[dnsbl]\n", json!(HOSTNAME));
    let listen: Vec<String> = match args.listen.as_slice() {
        [] => vec![LISTEN.to_owned()],
        listen => listen.iter().map(ToString::to_string).collect(),
    };
    let _infallible = writeln!(text, "listen = {}", json!(listen));
    if let Some(threads) = args.threads {
        let _infallible = writeln!(text, "threads = {threads}");
    }
    let mut zones: Vec<(&str, Vec<String>)> = Vec::new();
    for zone in &args.zone {
        let parts = zone.split_once(':');
        let (name, data) = parts.ok_or_else(|| wrong(zone, "expected NAME:FORMAT:FILE"))?;
        let data = DnsblData::parse(data).map_err(|expected| wrong(zone, &expected))?;
        let files = data.files.iter().map(std::path::absolute);
        let files = files.collect::<std::io::Result<Vec<PathBuf>>>()?;
        let files: Vec<_> = files.iter().map(|file| file.to_string_lossy()).collect();
        let data = format!("{}:{}", data.format, files.join(","));
        match zones.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => known.push(data),
            None => zones.push((name, vec![data])),
        }
    }
    for (name, data) in zones {
        let name = name.trim_end_matches('.');
        let (name, data) = (json!(name), json!(data));
        let _infallible = writeln!(text, "[[dnsbl.zone]]\nname = {name}\ndata = {data}");
    }
    Ok(text)
}

fn wrong(zone: &str, expected: &str) -> Failure {
    Failure::new(format!("--zone {zone}: {expected}"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: ServeArgs,
    }

    fn args(line: &str) -> ServeArgs {
        let words = format!("serve {line}");
        let line = Line::try_parse_from(words.split_whitespace());
        line.unwrap().args
    }

    #[test]
    fn zones_of_one_name_are_one_zone_with_several_datasets() {
        let line = "--listen [::1]:53 --zone bl.test:ip4set:/a,/b --zone wl.test:dnset:c --zone bl.test:generic:/d";
        let settings = Settings::parse(&text(&args(line)).unwrap(), "flags").unwrap();
        let dnsbl = settings.dnsbl.unwrap();
        assert_eq!(dnsbl.listen, ["[::1]:53".parse().unwrap()]);
        let zones: Vec<_> = dnsbl
            .zones
            .iter()
            .map(|zone| (zone.name.as_str(), zone.data.len()))
            .collect();
        assert_eq!(zones, [("bl.test", 2), ("wl.test", 1)]);
        assert_eq!(
            dnsbl.zones[0].data[0].files,
            [PathBuf::from("/a"), "/b".into()]
        );
        assert!(dnsbl.zones[1].data[0].files[0].is_absolute());
    }

    #[test]
    fn what_is_wrong_is_said() {
        for zone in [
            "bl.test",
            "bl.test:ip4set",
            "bl.test:ip4set:",
            "bl.test:hosts:/a",
        ] {
            let error = text(&args(&format!("--zone {zone}")))
                .unwrap_err()
                .to_string();
            assert!(
                error.starts_with(&format!("--zone {zone}: expected ")),
                "{error}"
            );
        }
    }
}
