//! `vere x400 archive`: options for the functions of the archive.

use std::io::{self, BufWriter, Write as _};

use vere_archive::command::{
    CommandError, ExportOptions, ExportTo, ExportWhat, FindOptions, VerifyOptions, export, find,
    verify,
};
use vere_archive::{Page, Query};
use vere_process::failure::Failure;
use vere_settings::X400;
use vere_units::Timestamp;

use crate::args::{ArchiveCommand, ExportArgs, FindArgs, QueryArgs};
use crate::when::now;

/// Rows of a table without a limit of its own.
const ROWS: u64 = 100;

/// Runs a command, which writes to standard output itself: an export may be long.
///
/// # Errors
/// When there is no archive, nothing is found, or files cannot be read or written.
pub(crate) fn run(command: &ArchiveCommand, settings: &X400) -> Result<(), Failure> {
    match carry_out(command, settings) {
        // A closed reader (`| head`) is no failure.
        Err(CommandError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => Ok(done?),
    }
}

fn carry_out(command: &ArchiveCommand, settings: &X400) -> Result<(), CommandError> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut notes = io::stderr().lock();
    let folder = settings.archive_folder();
    let now = now().timestamp();
    match command {
        ArchiveCommand::Find(FindArgs { query, json }) => {
            let options = FindOptions {
                folder,
                query: conditions(query, now),
                page: page(query, Some(query.limit.unwrap_or(ROWS))),
                json: *json,
            };
            find(&options, now, &mut out, &mut notes)?;
        }
        ArchiveCommand::Export(args) => {
            let options = ExportOptions {
                folder,
                what: what(args, now),
                to: to(args),
            };
            export(&options, &mut out, &mut notes)?;
        }
        ArchiveCommand::Verify { json } => {
            let options = VerifyOptions {
                folder,
                json: *json,
            };
            let verified = verify(&options, &mut out);
            // The result is written also where it is bad.
            out.flush()?;
            verified?;
        }
    }
    Ok(out.flush()?)
}

fn what(args: &ExportArgs, now: Timestamp) -> ExportWhat {
    match args.entry {
        Some(id) => ExportWhat::Entry(id),
        None => {
            let query = Box::new(conditions(&args.query, now));
            ExportWhat::Query(query, page(&args.query, args.query.limit))
        }
    }
}

fn to(args: &ExportArgs) -> ExportTo {
    match &args.into {
        _ if args.tar => ExportTo::Tar,
        Some(folder) => ExportTo::Folder(folder.clone()),
        None => ExportTo::Output,
    }
}

fn conditions(args: &QueryArgs, now: Timestamp) -> Query {
    Query {
        since: args.since.map(|past| past.before(now)),
        until: args.until.map(|past| past.before(now)),
        trace: args.trace,
        identifier: args.identifier.clone(),
        originator: args.from.clone(),
        recipient: args.to.clone(),
        kind: args.kind,
        source: args.source.clone(),
        destination: args.destination.clone(),
        content_type: args.content_type.as_ref().map(ToString::to_string),
    }
}

fn page(args: &QueryArgs, limit: Option<u64>) -> Page {
    Page {
        after: args.after,
        limit: limit.unwrap_or(u64::MAX),
        newest: args.newest,
    }
}
