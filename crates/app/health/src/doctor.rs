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

use clap::Args;
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_settings::Settings;

use crate::dns::{self, Notice};
use crate::nodes;
use crate::row::Row;
use crate::status;

pub(crate) use config::Config;
pub(crate) use section::{Section, level};
pub(crate) use show::in_json;
use unit::Unit;

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
        let notice = Notice::new(args.json || args.quiet);
        sections.extend(domains(settings, &args.address, &notice));
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
    let nodes = settings.map(nodes::alone).unwrap_or_default();
    let unit_name = unit::name(nodes.first());
    let unit = Unit::asked(&unit_name);
    let unit = unit.as_ref();
    let of_unit = unit.filter(|_| config.path.as_deref().is_some_and(unit::is_unit_of));
    let running = |settings| running(settings, config.path.as_deref());
    let (system, pid) = settings.map(running).unwrap_or_default();
    let mut machine = clock::rows(settings);
    machine.extend(kernel::rows(settings));
    let unit_row = |path| unit::row(&unit_name, unit, path);
    machine.extend(config.path.as_deref().map(unit_row));
    let user = unit::user(settings, of_unit);
    machine.push(unit::user_row(user.as_deref()));
    if let (Some(settings), Some(path)) = (settings, &config.path) {
        machine.extend(disk::rows(settings));
        machine.extend(limits::memory(settings, of_unit, pid.is_some()));
        // The connections of the settings are those of a gateway.
        let descriptors = || limits::descriptors(settings, of_unit, pid);
        machine.extend(nodes.is_empty().then(descriptors));
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
fn running(settings: &Settings, file: Option<&Path>) -> (Vec<Row>, Option<u32>) {
    match status::rows(settings, file) {
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

/// The checks of `vere dns check` for every local domain; a machine with spool nodes alone has no domains.
pub(crate) fn domains(
    settings: &Arc<Settings>,
    addresses: &[IpAddr],
    notice: &Notice,
) -> Vec<Section> {
    if !nodes::alone(settings).is_empty() {
        return Vec::new();
    }
    match dns::examined(settings, addresses, notice) {
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
