//! `vere dnsbl import`: a checked, sorted and merged list.

use std::collections::HashMap;
use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use vere_dnsbl::data::{DataError, Head, Kind, Value, ZoneData, name_text};
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_process::wording::counted;
use vere_units::Timestamp;

use super::networks;
use super::source::SourceArgs;
use vere_process::json::printed;

/// Refused lines that are named, each with the reason.
const NAMED_MAX: usize = 20;

/// Check, sort and merge a list, and write the result in a format of rbldnsd.
///
/// Duplicates are dropped, exclusions are applied, and adjacent networks with equal values are merged. IPv4 becomes
/// ip4set, IPv6 ip6trie, names dnset, and a list with several of them a combined dataset. The output replaces an older
/// file at once.
///
/// Example: vere dnsbl import drop.txt --output drop.ip4set
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct ImportArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// The file to write.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Leave lines with errors out. Without the option the first error ends the import, and no file is written.
    #[arg(long)]
    skip_errors: bool,
    /// Print JSON: an object with `read`, `refused`, `errors`, `format`, `written` (`ipv4`, `ipv6`, `names`) and
    /// `output`.
    #[arg(long)]
    json: bool,
}

/// What was written.
#[derive(Debug, Default)]
struct Written {
    ipv4: u64,
    ipv6: u64,
    names: u64,
}

/// Refused lines.
#[derive(Debug, Default)]
struct Refused {
    count: u64,
    named: Vec<String>,
}

impl Refused {
    fn add(&mut self, error: &DataError) {
        self.count += 1;
        if self.named.len() < NAMED_MAX {
            self.named.push(error.to_string());
        }
    }
}

/// Runs the command.
///
/// # Errors
/// When a file cannot be read or written, and when a line has an error.
pub(super) fn run(args: &ImportArgs) -> Result<Outcome, Failure> {
    let mut builder = ZoneData::build();
    let mut refused = Refused::default();
    let files = args.source.files();
    for source in &files {
        if matches!(source.kind, Kind::Combined | Kind::Generic) {
            let text = format!(
                "expected a list of addresses or names; found {} in the format {}, which needs no conversion",
                source.file, source.kind
            );
            return Err(Failure::new(text));
        }
        source.read(&mut builder, &mut |error| {
            if !args.skip_errors {
                return Err(error);
            }
            refused.add(&error);
            Ok(())
        })?;
    }
    let read = builder.entries();
    let zone = builder.finish();
    let written = replace(&args.output, &zone)?;
    let lines = written.ipv4 + written.ipv6 + written.names;
    let mut text = format!(
        "read {} from {}; refused {}; wrote {} to {}\n",
        counted(read, "entry", "entries"),
        counted(files.len() as u64, "file", "files"),
        counted(refused.count, "line", "lines"),
        counted(lines, "entry", "entries"),
        args.output.display(),
    );
    for error in &refused.named {
        text += &format!("  {error}\n");
    }
    if refused.count > refused.named.len() as u64 {
        text += "  ...\n";
    }
    let value = json!({
        "read": read,
        "refused": refused.count,
        "errors": refused.named,
        "format": format_of(&zone).map_or("combined", Kind::name),
        "written": { "ipv4": written.ipv4, "ipv6": written.ipv6, "names": written.names },
        "output": args.output.display().to_string(),
    });
    Ok(Outcome::Print(printed(args.json, value, text)))
}

/// Writes a temporary file, and renames the file when the octets are on the disk.
fn replace(path: &Path, zone: &ZoneData) -> Result<Written, Failure> {
    let failed =
        |error: io::Error| Failure::new(format!("cannot write {}: {error}", path.display()));
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let done = || {
        let file = tempfile::Builder::new()
            .prefix(".vere-dnsbl-")
            // The server of the list runs as another user; the umask takes rights away.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)?;
        let mut output = BufWriter::new(file);
        let written = write(&mut output, zone)?;
        let file = output
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        File::open(folder)?.sync_all()?;
        Ok(written)
    };
    done().map_err(failed)
}

/// The format of the whole list; `None` if it has entries of several.
fn format_of(zone: &ZoneData) -> Option<Kind> {
    let kinds = kinds(zone);
    match kinds.as_slice() {
        [] => Some(Kind::Ip4Set),
        [kind] => Some(*kind),
        _ => None,
    }
}

fn kinds(zone: &ZoneData) -> Vec<Kind> {
    let (mut v4, mut v6, mut names) = (false, false, false);
    zone.each_v4(|_, _, _| v4 = true);
    zone.each_v6(|_, _, _| v6 = true);
    zone.each_name(|_, _, _| names = true);
    let all = [
        (v4, Kind::Ip4Set),
        (v6, Kind::Ip6Trie),
        (names, Kind::DnSet),
    ];
    let present = all.into_iter().filter(|(present, _)| *present);
    present.map(|(_, kind)| kind).collect()
}

/// Writes a zone as one file.
fn write(output: &mut impl Write, zone: &ZoneData) -> io::Result<Written> {
    let kinds = kinds(zone);
    let combined = kinds.len() > 1;
    let format = format_of(zone).unwrap_or(Kind::Combined);
    writeln!(
        output,
        "# {format}, written by vere dnsbl import; rbldnsd(8) has the format."
    )?;
    write_head(output, zone.head())?;
    let mut written = Written::default();
    for kind in kinds {
        if combined {
            writeln!(output, "$DATASET {kind} @")?;
        }
        match kind {
            Kind::Ip6Trie => written.ipv6 = write_v6(output, zone)?,
            Kind::DnSet => written.names = write_names(output, zone)?,
            _ => written.ipv4 = write_v4(output, zone)?,
        }
    }
    Ok(written)
}

fn write_head(output: &mut impl Write, head: &Head) -> io::Result<()> {
    if let Some(soa) = &head.soa {
        let (origin, person) = (name_text(&soa.origin), name_text(&soa.person));
        let times = [soa.serial, soa.refresh, soa.retry, soa.expire, soa.minimum];
        let times = times.map(|time| time.to_string()).join(" ");
        writeln!(output, "$SOA {} {origin} {person} {times}", soa.ttl)?;
    }
    if let Some(servers) = &head.name_servers {
        let names = servers.names.iter().map(|name| name_text(name));
        let names = names.collect::<Vec<_>>().join(" ");
        writeln!(output, "$NS {} {names}", servers.ttl)?;
    }
    if let Some(ttl) = head.ttl {
        writeln!(output, "$TTL {ttl}")?;
    }
    if head.timestamp.is_some() || head.expires.is_some() {
        let (stamp, expires) = (time(head.timestamp), time(head.expires));
        writeln!(output, "$TIMESTAMP {stamp} {expires}")?;
    }
    Ok(())
}

/// A time as `$TIMESTAMP` has it.
fn time(seconds: Option<u64>) -> String {
    let Some(millis) = seconds.and_then(|seconds| seconds.checked_mul(1000)) else {
        return "0".to_owned();
    };
    let text = Timestamp::from_millis(millis).to_string();
    let seconds: String = text.chars().take("2026-11-28T12:00:00".len()).collect();
    seconds.replace('T', ":")
}

/// A value as a line has it: `:A:text`.
fn value_text(value: &Value) -> String {
    let text = value.resolved().unwrap_or_default();
    format!(":{}:{text}", value.address)
}

/// The most frequent value, left out behind entries.
#[derive(Debug, Default)]
struct Usual {
    counts: HashMap<*const Value, u64>,
    usual: Option<(*const Value, u64, String)>,
}

impl Usual {
    fn count(&mut self, values: &[&Value]) {
        for value in values {
            let place: *const Value = *value;
            let count = self.counts.entry(place).or_insert(0);
            *count += 1;
            let most = self.usual.as_ref().map_or(0, |(_, most, _)| *most);
            match &mut self.usual {
                Some((usual, most, _)) if *usual == place => *most = *count,
                usual if *count > most => *usual = Some((place, *count, value_text(value))),
                _ => {}
            }
        }
    }

    fn write_head(&self, output: &mut impl Write) -> io::Result<()> {
        match &self.usual {
            Some((_, _, text)) => writeln!(output, "{text}"),
            None => Ok(()),
        }
    }

    /// Writes an entry with its values, and gives the number of lines.
    fn write(&self, output: &mut impl Write, entry: &str, values: &[&Value]) -> io::Result<u64> {
        for value in values {
            let place: *const Value = *value;
            match &self.usual {
                Some((usual, _, _)) if *usual == place => writeln!(output, "{entry}")?,
                _ => writeln!(output, "{entry} {}", value_text(value))?,
            }
        }
        Ok(values.len() as u64)
    }
}

fn write_v4(output: &mut impl Write, zone: &ZoneData) -> io::Result<u64> {
    let mut usual = Usual::default();
    zone.each_v4(|_, _, values| usual.count(values));
    usual.write_head(output)?;
    let mut lines = Ok(0);
    zone.each_v4(|first, last, values| {
        // An ip4set has no network without a prefix.
        for network in networks::of_v4(first, last, 1) {
            add(&mut lines, || {
                usual.write(output, &network.to_string(), values)
            });
        }
    });
    lines
}

fn write_v6(output: &mut impl Write, zone: &ZoneData) -> io::Result<u64> {
    let mut usual = Usual::default();
    zone.each_v6(|_, _, values| usual.count(values));
    usual.write_head(output)?;
    let mut lines = Ok(0);
    zone.each_v6(|first, last, values| {
        for network in networks::of_v6(first, last) {
            // The length also tells an address with a leading colon from a default value.
            add(&mut lines, || {
                usual.write(
                    output,
                    &format!("{}/{}", network.address, network.prefix),
                    values,
                )
            });
        }
    });
    lines
}

fn write_names(output: &mut impl Write, zone: &ZoneData) -> io::Result<u64> {
    let mut usual = Usual::default();
    zone.each_name(|_, _, values| usual.count(values));
    usual.write_head(output)?;
    let mut lines = Ok(0);
    zone.each_name(|name, below, values| {
        let star = if below { "*." } else { "" };
        let name = format!("{star}{}", name_text(name));
        add(&mut lines, || match values {
            [] => writeln!(output, "!{name}").map(|()| 1),
            values => usual.write(output, &name, values),
        });
    });
    lines
}

/// Adds the lines of an entry, unless an earlier entry could not be written.
fn add(lines: &mut io::Result<u64>, write: impl FnOnce() -> io::Result<u64>) {
    if let Ok(count) = lines {
        match write() {
            Ok(more) => *count += more,
            Err(error) => *lines = Err(error),
        }
    }
}
