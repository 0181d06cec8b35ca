//! The figures as one page without outside parts.

use std::fmt::Write;

use super::report::Report;
use crate::page::{self, escape, short};
use crate::row::Bar;

/// The whole page.
pub(super) fn page(report: &Report) -> String {
    let mut page = page::begin(
        "vere bench spool",
        &format!(
            "Messages stored and deleted, pipelined by one client with equal octets in flight, and \
             queues read back in blocks; medians of the rounds, systems taking turns. With one connection: {}. {}.",
            report.placement.unwrap_or("client and server anywhere"),
            report.machine.line()
        ),
    );
    for plot in &report.plots {
        report.lines(plot).draw(&mut page);
    }
    page.push_str(
        "<table><tr><th>figure</th><th>value</th><th>unit</th><th>ratio</th><th>bar</th><th></th></tr>",
    );
    for row in report.rows() {
        let ratio = row
            .ratio()
            .map_or_else(String::new, |ratio| format!("{ratio:.2}"));
        let verdict = match row.ok() {
            Some(true) => "ok",
            Some(false) => "<b>missed</b>",
            None => "",
        };
        let _ = write!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{ratio}</td><td>{}</td><td>{verdict}</td></tr>",
            escape(&row.name),
            short(row.value),
            row.unit,
            escape(&row.bar.map(Bar::text).unwrap_or_default()),
        );
    }
    page.push_str("</table><ul>");
    for skipped in &report.skipped {
        let _ = write!(page, "<li>skipped: {}</li>", escape(skipped));
    }
    page.push_str("</ul></html>\n");
    page
}
