//! The figures as a page without external resources.

use super::report::Report;
use crate::page;
use crate::row;

/// The whole page.
pub(super) fn page(report: &Report) -> String {
    let mut page = page::begin(
        "vere bench spool",
        &format!(
            "Messages stored and deleted, pipelined by one client with equal octets in flight, and \
             queues read back in blocks; medians of the rounds, systems taking turns. With one connection: {}. {}.",
            report.placement.unwrap_or("client and server anywhere"),
            report.header.machine.line()
        ),
    );
    for plot in &report.plots {
        report.lines(plot).draw(&mut page);
    }
    row::table(&report.rows()).draw(&mut page);
    page::list(report.header.skipped_lines(), &mut page);
    page + page::END
}
