//! `vere-bench store`: a mailbox of real mail read, searched, filled and emptied over IMAP, beside
//! Dovecot with mdbox and with Maildir, Cyrus without and with an index of words, and Courier.
//!
//! The systems run side by side and take turns, A B A B; every figure is the median of the rounds.
//! A single client loop speaks to all systems, and the answers are counted and compared.

mod ask;
mod curve;
mod deliver;
mod fill;
mod forecast;
mod growth;
mod html;
pub(crate) mod imap;
mod linker;
mod mail;
mod memory;
mod offices;
mod peer;
mod plan;
mod queries;
mod report;
mod room;
mod run;
pub(crate) mod systems;
mod table;
mod tasks;
pub(crate) mod usage;

use clap::ValueEnum;

pub use imap::ImapError;
pub use peer::MailPeer;
pub use plan::StoreArgs;
pub use systems::SystemName;

use crate::error::BenchError;
use crate::output::{Header, note};
use crate::peer::{program, there};
use crate::process::guard;
use curve::Curves;
use growth::Growing;
use mail::Mail;
use plan::Plan;
use run::Run;
use systems::System;

/// Runs the benchmark, prints its table, and writes the files asked for.
///
/// A peer that is not installed is skipped, said on standard error and in the results. SIGINT, SIGTERM and SIGHUP
/// end it early: what was found until then is told, marked as incomplete.
///
/// # Errors
///
/// [`BenchError`] when a part of the benchmark itself fails, or a signal ended it; what was found before is told
/// as well. Figures that miss their bars are not an error.
pub fn run(args: &StoreArgs) -> Result<(), BenchError> {
    guard::stop_on_signals();
    let (quick, base) = (args.common.quick, args.common.base());
    let mut header = Header::new("store", quick, &base);
    if args.growth {
        let (curves, end) = grow(args, header)?;
        args.common
            .publish(&curves.table(), &curves.json(), &curves.page())?;
        return end;
    }
    let plan = Plan::of(args);
    let mail = read(args, plan.messages)?;
    let usual = match quick {
        true => &SystemName::COMMON[..],
        false => SystemName::value_variants(),
    };
    let systems = start(args, usual, &mut header)?;
    let (report, end) = Run::of(&plan, header, systems).whole(&mail, &base);
    args.common
        .publish(&report.table(), &report.json(), &html::page(&report))?;
    end
}

/// Measures how figures grow with the mailbox.
fn grow(
    args: &StoreArgs,
    mut header: Header,
) -> Result<(Curves, Result<(), BenchError>), BenchError> {
    let mut sizes = growth::SIZES.to_vec();
    if args.common.quick {
        sizes.truncate(growth::QUICK_SIZES);
    }
    sizes.retain(|size| args.messages.is_none_or(|most| *size <= most));
    note("making the mail");
    let mail = read(args, sizes.last().copied().unwrap_or(1))?;
    let mut systems = start(args, &[SystemName::Vere], &mut header)?;
    systems.retain(|system| match growth::check(system) {
        Ok(()) => true,
        Err(error) => {
            header.skipped.push(format!("{}: {error}", system.name));
            false
        }
    });
    let mut growing = Growing::of(&mut header, &systems, &mail);
    let end = growing.through(&sizes);
    let points = growing.points;
    let end = run::ended(end, &mut header);
    let curves = Curves {
        header,
        systems: systems.iter().map(|system| system.name).collect(),
        points,
        complete: end.is_ok(),
    };
    Ok((curves, end))
}

fn read(args: &StoreArgs, messages: usize) -> Result<Mail, BenchError> {
    let failed = BenchError::of(format!("cannot read {}", args.mail.display()));
    Mail::read(&args.mail, messages).map_err(failed)
}

/// The requested systems, else the usual systems, without the systems that failed to start.
fn start(
    args: &StoreArgs,
    usual: &[SystemName],
    header: &mut Header,
) -> Result<Vec<System>, BenchError> {
    let base = args.common.base();
    let vere = program(args.common.vere.as_deref())?;
    let wanted = match args.system.as_slice() {
        [] => usual,
        wanted => wanted,
    };
    let mut systems = Vec::new();
    for name in wanted {
        systems.extend(there(System::start(*name, &vere, &base), header)?);
    }
    Ok(systems)
}
