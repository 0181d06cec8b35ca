//! Which reports the settings want.

use vere_reports::Kind;

use crate::process::Process;

pub(super) fn is_wanted(process: &Process, kind: Kind) -> bool {
    let settings = process.settings();
    let reports = settings.reports.as_ref();
    reports.is_some_and(|reports| match kind {
        Kind::Dmarc => reports.dmarc,
        Kind::Tls => reports.tls,
    })
}
