//! `vere filter test`: shows a message to the filters of the configuration, as the gateway does.

use std::fs::File;
use std::io::{self, Read};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bytes::Bytes;
use clap::Args;
use vere_filters::{Filters, Mail, Session};
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_settings::{FilteredMail, Settings, nearest};

use super::report::Report;

/// Show a message to the content filters of the configuration, and print their answers.
///
/// Asks as the gateway does at the end of DATA: in order, each about the message as the ones before have changed it. With
/// `--account` the message is a submitted message, otherwise a received message; a filter named by `--filter` is asked
/// about both. The command delivers no mail and learns no sender. Line ends of the file become CRLF. Exit code 0: every
/// filter has answered, 3: a filter gave no answer.
#[derive(Debug, Args)]
pub struct TestArgs {
    /// The file of the message; `-` for standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Ask this filter alone.
    #[arg(long, value_name = "NAME")]
    filter: Option<String>,
    /// The address of the client.
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    client: IpAddr,
    /// The verified name of the client.
    #[arg(long, value_name = "NAME", default_value = "")]
    client_name: String,
    /// The name in EHLO.
    #[arg(long, value_name = "NAME", default_value = "localhost")]
    helo: String,
    /// The reverse-path; empty by default.
    #[arg(long, value_name = "ADDRESS", default_value = "")]
    from: String,
    /// A recipient; may be repeated.
    #[arg(long, value_name = "ADDRESS", default_value = "postmaster")]
    to: Vec<String>,
    /// The account of a message by submission.
    #[arg(long, value_name = "ACCOUNT", default_value = "")]
    account: String,
    /// Print JSON: an object with `filters`, `deferred_by`, `changed_bytes`, `changed_header`, `reverse_path`,
    /// `recipients_added`, `recipients_deleted` and `discarded`; a filter has `filter`, `kind`, `address`,
    /// `verdict`, `text`, `score`, `required`, `virus`, `symbols`, `changes`, `milliseconds`.
    #[arg(long)]
    json: bool,
}

/// Asks, and returns the answers as text.
///
/// # Errors
/// When there is no such filter, a password or the message cannot be read, or the message is longer than `limits.message_size_max`.
pub(super) fn run(args: &TestArgs, settings: &Settings) -> Result<Outcome, Failure> {
    let mut settings = settings.clone();
    choose(&mut settings, args.filter.as_deref())?;
    let mail = match args.account.is_empty() {
        true => Mail::Received,
        false => Mail::Submitted,
    };
    let filters = Filters::new(&settings).map_err(|error| Failure::new(error.to_string()))?;
    let size_max = settings.limits.message_size_max.as_u64();
    let message = Bytes::from(read(&args.file, size_max)?);
    let recipients: Vec<&str> = args.to.iter().map(String::as_str).collect();
    let session = Session {
        client: args.client.to_canonical(),
        port: 0,
        client_name: &args.client_name,
        helo: &args.helo,
        reverse_path: &args.from,
        recipients: &recipients,
        account: &args.account,
        id: "filter-test",
        host: &settings.hostname,
        tls_version: "",
        tls_cipher: "",
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let findings = runtime.block_on(filters.ask(mail, &message, &session));
    let report = Report::of(&settings, &findings);
    let text = match args.json {
        true => vere_process::json::to_json(&report)?,
        false => report.text(),
    };
    let code = match report.is_whole() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(3),
    };
    Ok(Outcome::Report(text, code))
}

/// Leaves the filter of a name.
fn choose(settings: &mut Settings, name: Option<&str>) -> Result<(), Failure> {
    if settings.filters.is_empty() {
        return Err(Failure::new(
            "no filter: write [[filter]] into the configuration",
        ));
    }
    let Some(name) = name else {
        return Ok(());
    };
    let known = settings.filters.iter().map(|filter| filter.name.as_str());
    let near = nearest(name, known).map(|near| format!(", the nearest known one is {near}"));
    settings.filters.retain(|filter| filter.name == name);
    for filter in &mut settings.filters {
        filter.mail = FilteredMail::All;
    }
    match settings.filters.is_empty() {
        true => Err(Failure::new(format!(
            "--filter: there is no [[filter]] named {name:?}{}",
            near.unwrap_or_default()
        ))),
        false => Ok(()),
    }
}

fn read(file: &Path, size_max: u64) -> Result<Vec<u8>, Failure> {
    let mut octets = Vec::new();
    let mut take = |from: &mut dyn Read| {
        from.take(size_max.saturating_add(1))
            .read_to_end(&mut octets)
    };
    let done = match file.as_os_str() == "-" {
        true => take(&mut io::stdin().lock()),
        false => File::open(file).and_then(|mut file| take(&mut file)),
    };
    done.map_err(|error| Failure::new(format!("cannot read {}: {error}", file.display())))?;
    if u64::try_from(octets.len()).unwrap_or(u64::MAX) > size_max {
        let text = format!(
            "{}: expected a message of at most limits.message_size_max ({size_max} bytes); found a longer one",
            file.display()
        );
        return Err(Failure::new(text));
    }
    Ok(with_crlf(&octets))
}

/// The message as it comes by SMTP.
fn with_crlf(octets: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(octets.len());
    let mut before = 0;
    for octet in octets {
        if *octet == b'\n' && before != b'\r' {
            message.push(b'\r');
        }
        message.push(*octet);
        before = *octet;
    }
    message
}
