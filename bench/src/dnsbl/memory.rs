//! Memory of a server with millions of addresses, and the time until its first answer.

use super::list::Shape;
use super::plan::{DATA_SEED, Plan};
use super::questions::Maps;
use super::results::Results;
use super::servers::{Limit, ListFile, Server, Site, System};
use crate::error::BenchError;
use crate::process::guard;

/// Addresses with bars.
pub(super) const ADDRESSES: usize = 10_000_000;

/// The figures with bars.
pub(super) fn resident(shape: Shape) -> String {
    format!("10 M addresses {}: memory", shape.words())
}

pub(super) fn load(shape: Shape) -> String {
    format!("10 M addresses {}: load", shape.words())
}

/// Starts each server alone.
pub(super) fn measure(
    plan: &Plan,
    site: &Site<'_>,
    results: &mut Results,
) -> Result<(), BenchError> {
    for shape in plan.shapes {
        let listed = shape.addresses(ADDRESSES, DATA_SEED);
        let file = ListFile::of(&listed, site)?;
        // The last address of the file: the server has read all of them.
        let Some(last) = listed.last() else { continue };
        let probe = Maps::of(&[*last]).address(*last);
        drop(listed);
        for system in System::ALL {
            let server = Server::started(
                system,
                site,
                &file.path,
                Limit::Off,
                &probe,
                &mut results.header,
            );
            let Some(server) = server else { continue };
            let name = system.name();
            let memory = server
                .resident_mb()
                .map_err(BenchError::of(format!("memory of {name}")))?;
            results.figures.add(name, resident(*shape), memory, "MB");
            results
                .figures
                .add(name, load(*shape), server.load.as_secs_f64(), "s");
            if guard::is_stopped() {
                return Err(BenchError::Stopped);
            }
        }
    }
    Ok(())
}
