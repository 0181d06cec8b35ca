//! A check of a store that nobody else uses.

use std::cell::Cell;
use std::path::Path;

use vere_control::StoreProgress;
use vere_parsing::Decoders;
use vere_store::{Check, CheckReport, StoreError};

use super::MaintenanceError;
use crate::checking::StoreFigures;
use crate::index::SharedIndex;
use crate::mail_store::MailStore;
use crate::search;
use crate::steps::at_once;

/// Checks a store that nobody else uses.
///
/// # Errors
/// When the store or its index cannot be read.
pub(super) fn at_rest(
    store: &mut MailStore,
    folder: &Path,
    decoders: &Decoders,
    told: &dyn Fn(&StoreProgress),
) -> Result<StoreFigures, MaintenanceError> {
    let report = report_of(store, told)?;
    told(&StoreProgress::new("search index", 0, 0));
    let index = SharedIndex::open(folder, store.log_id()).map_err(MaintenanceError::Index)?;
    let index = search::check(store, &index, decoders)?;
    Ok(StoreFigures::of(&report, index, store.count_dead()?))
}

/// Reads everything but the index.
fn report_of(
    store: &mut MailStore,
    told: &dyn Fn(&StoreProgress),
) -> Result<CheckReport, StoreError> {
    let mut check = Check::default();
    let survey = store.log_survey()?;
    let survey = at_once(store, survey)?;
    let octets = survey.octets();
    let done = Cell::new(0);
    check.surveyed(
        octets,
        survey.run(&|more| {
            done.set(done.get() + more);
            told(&StoreProgress::new("log", done.get(), octets));
        }),
    );
    let reader = store.body_reader();
    loop {
        let claims = store.check_rows(&mut check)?;
        let Some(claims) = at_once(store, claims)? else {
            return Ok(check.finish());
        };
        for claim in claims {
            check.compare(&reader, claim);
            told(&StoreProgress::new(
                "messages",
                check.stored_octets(),
                octets,
            ));
        }
    }
}
