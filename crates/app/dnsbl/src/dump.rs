//! `vere dnsbl dump`: a list for other programs.

use std::io::{self, BufWriter, Write};

use clap::{Args, ValueEnum};
use serde_json::{Value as Json, json};
use vere_dnsbl::data::{Record, RecordData, Value, ZoneData, name_text};
use vere_process::failure::Failure;

use super::bind;
use super::networks;
use super::source::SourceArgs;
use super::stopped::Stopped;

/// Print a list as a zone file, as networks, or as JSON.
///
/// A zone file has a name for each address, and wildcards for networks of whole octets (IPv4) and nibbles (IPv6); the
/// text of a wildcard names its network. A list without $SOA and $NS gets placeholders for `named`.
///
/// Example: vere dnsbl dump bl.example.org:ip4set:addresses --as bind
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct DumpArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// The form of the output.
    #[arg(long = "as", value_enum, value_name = "FORM", default_value_t = Form::Cidr)]
    form: Form,
    /// The name of the zone, unless the source names it.
    #[arg(long, value_name = "NAME")]
    zone: Option<String>,
}

/// Forms of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// A zone file of BIND (RFC 1035 section 5).
    Bind,
    /// A network a line.
    Cidr,
    /// A JSON object.
    Json,
}

/// Runs the command.
///
/// # Errors
/// When a file cannot be read or has an error, and when the output cannot be written.
pub(super) fn run(args: &DumpArgs, output: &mut impl Write) -> Result<(), Stopped> {
    let name = args.zone.clone().or_else(|| args.source.zone());
    if args.form == Form::Bind && name.is_none() {
        let text = "expected the name of the zone: ZONE:FORMAT:FILE, or --zone NAME; found neither";
        return Err(Failure::new(text).into());
    }
    let zone = args.source.read()?;
    let mut output = BufWriter::new(output);
    match args.form {
        Form::Bind => bind::write(&mut output, &zone, &name.unwrap_or_default())?,
        Form::Cidr => cidr(&mut output, &zone)?,
        Form::Json => serde_json::to_writer_pretty(&mut output, &as_json(&zone))
            .map_err(io::Error::from)
            .and_then(|()| writeln!(output))?,
    }
    Ok(output.flush()?)
}

fn cidr(output: &mut impl Write, zone: &ZoneData) -> io::Result<()> {
    let mut done = Ok(());
    zone.each_v4(|first, last, _| {
        for network in networks::of_v4(first, last, 0) {
            if done.is_ok() {
                done = writeln!(output, "{network}");
            }
        }
    });
    zone.each_v6(|first, last, _| {
        for network in networks::of_v6(first, last) {
            if done.is_ok() {
                done = writeln!(output, "{network}");
            }
        }
    });
    done
}

fn values_json(values: &[&Value]) -> Json {
    let values = values.iter();
    let value = |value: &&Value| json!({ "a": value.address, "txt": value.resolved() });
    values.map(value).collect()
}

fn as_json(zone: &ZoneData) -> Json {
    let (mut v4, mut v6, mut names) = (Vec::new(), Vec::new(), Vec::new());
    zone.each_v4(|first, last, values| {
        v4.push(json!({ "first": first, "last": last, "values": values_json(values) }));
    });
    zone.each_v6(|first, last, values| {
        v6.push(json!({ "first": first, "last": last, "values": values_json(values) }));
    });
    zone.each_name(|name, below, values| {
        let star = if below { "*." } else { "" };
        let name = format!("{star}{}", name_text(name));
        names.push(json!({ "name": name, "values": values_json(values) }));
    });
    let records: Vec<Json> = zone.all_records().iter().map(record_json).collect();
    let subzones: Vec<Json> = zone
        .subzones()
        .map(|(name, zone)| json!({ "name": name_text(name), "data": as_json(zone) }))
        .collect();
    json!({ "ipv4": v4, "ipv6": v6, "names": names, "records": records, "subzones": subzones })
}

fn record_json(record: &Record) -> Json {
    let (kind, value) = match &record.data {
        RecordData::A(address) => ("A", json!(address)),
        RecordData::Aaaa(address) => ("AAAA", json!(address)),
        RecordData::Txt(text) => ("TXT", json!(String::from_utf8_lossy(text))),
        RecordData::Mx(preference, exchange) => {
            let exchange = name_text(exchange);
            (
                "MX",
                json!({ "preference": preference, "exchange": exchange }),
            )
        }
    };
    json!({ "name": name_text(&record.name), "type": kind, "ttl": record.ttl, "value": value })
}
