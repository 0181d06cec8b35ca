//! `vere doctor`: the findings of `vere status`, `vere dns check` and `vere check-config`, and checks of the machine.

mod access;
mod clock;
mod config;
mod disk;
mod kernel;
mod limits;
mod ports;
mod section;
mod show;
mod unit;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_settings::Settings;

use crate::dns;
use crate::row::Row;
use crate::status;

pub(crate) use config::Config;
pub(crate) use section::{Section, level};
pub(crate) use show::in_json;
use unit::Unit;

/// Longest time for the look-ups and connections of all domains.
const DNS_PATIENCE: Duration = Duration::from_secs(120);

/// The scope of the examination.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Leave out the DNS and connections: look at this machine only.
    #[arg(long)]
    no_dns: bool,
    /// A public address of this machine, also behind NAT, for the checks of the DNS. May be repeated.
    #[arg(long, value_name = "IP", conflicts_with = "no_dns")]
    address: Vec<IpAddr>,
    /// Print the findings alone.
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
    /// Print JSON: an object with `level` and `sections`, each with `section` and `checks`, which have `check`, `level`,
    /// `text` and `remedy`.
    #[arg(long)]
    json: bool,
}

/// Runs the command; `find` finds the file of the settings. The exit codes are those of `vere status`.
///
/// # Errors
/// When a row has no form in JSON.
pub fn run(
    args: &DoctorArgs,
    find: impl FnOnce() -> Result<PathBuf, Failure>,
) -> Result<Outcome, Failure> {
    let config = Config::load(find());
    let mut sections = local(&config);
    if let Some(settings) = config.settings.as_ref().filter(|_| !args.no_dns) {
        sections.extend(domains(settings, &args.address, DNS_PATIENCE));
    }
    let level = level(&sections);
    let text = match args.json {
        true => in_json(&sections, level)?,
        false => show::in_text(&sections, level, args.quiet),
    };
    Ok(Outcome::Report(text, level.code()))
}

/// The checks of the machine and of the system, running or stopped.
pub(crate) fn local(config: &Config) -> Vec<Section> {
    let section = |name: &str, rows| Section {
        name: name.to_owned(),
        rows,
    };
    let settings = config.settings.as_deref();
    let unit = Unit::asked();
    let unit = unit.as_ref();
    let of_unit = unit.filter(|_| config.path.as_deref().is_some_and(unit::is_unit_of));
    let (system, pid) = settings.map(running).unwrap_or_default();
    let mut machine = clock::rows(settings);
    machine.extend(kernel::rows(settings));
    machine.extend(config.path.as_deref().map(|path| unit::row(unit, path)));
    let user = unit::user(settings, of_unit);
    machine.push(unit::user_row(user.as_deref()));
    if let (Some(settings), Some(path)) = (settings, &config.path) {
        machine.extend(disk::rows(settings));
        machine.extend(limits::memory(settings, of_unit, pid.is_some()));
        machine.push(limits::descriptors(settings, of_unit, pid));
        machine.extend(ports::rows(settings, pid.is_some()));
        machine.extend(access::rows(
            path,
            config.secrets,
            settings,
            user.as_deref(),
        ));
    }
    let mut sections = vec![section("settings", config.rows())];
    if settings.is_some() {
        sections.push(section("system", system));
    }
    sections.push(section("machine", machine));
    sections
}

/// The findings of `vere status`, and the process of a running supervisor.
fn running(settings: &Settings) -> (Vec<Row>, Option<u32>) {
    match status::rows(settings) {
        Ok(found) => found,
        Err(failure) => {
            let row = Row::critical(
                "status",
                format!("the supervisor does not answer: {failure}"),
                "as root or the system's user, see the log, then: systemctl restart vere",
            );
            (vec![row], None)
        }
    }
}

/// The checks of `vere dns check` for every local domain.
pub(crate) fn domains(
    settings: &Arc<Settings>,
    addresses: &[IpAddr],
    patience: Duration,
) -> Vec<Section> {
    match dns::examined(settings, addresses, patience) {
        Ok(checked) => checked
            .into_iter()
            .map(|(domain, rows)| Section { name: domain, rows })
            .collect(),
        Err(failure) => vec![Section {
            name: "domains".to_owned(),
            rows: vec![Row::warning(
                "dns",
                failure.to_string(),
                "see the domains with: vere domain list",
            )],
        }],
    }
}

/// As [`local`], for a known file.
pub(crate) fn of_file(path: &Path) -> (Config, Vec<Section>) {
    let config = Config::load(Ok(path.to_owned()));
    let sections = local(&config);
    (config, sections)
}
