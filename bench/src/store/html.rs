//! The figures as one page without outside parts.

use std::fmt::Write;

use super::report::Report;
use crate::page::{STYLE, escape};

/// The whole page.
pub(super) fn page(report: &Report) -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>vere bench store</title>\
         <style>{STYLE}</style><h1>vere bench store</h1>\
         <p>A mailbox of {} messages ({} MiB); medians of the rounds, systems taking turns. {}.</p>",
        report.messages,
        report.octets >> 20,
        escape(&report.machine.line())
    );
    for rows in report.tables().iter().filter(|rows| rows.len() > 1) {
        table(rows, &mut page);
    }
    page.push_str("<ul>");
    for line in report.remarks() {
        let _ = write!(page, "<li>{}</li>", escape(&line));
    }
    page.push_str("</ul><h2>CPU time of all processes, ms</h2>");
    table(&report.cpu_cells(), &mut page);
    page.push_str("</html>\n");
    page
}

fn table(rows: &[Vec<String>], page: &mut String) {
    page.push_str("<table>");
    for row in rows {
        page.push_str("<tr>");
        for cell in row {
            let _ = write!(page, "<td>{}</td>", escape(cell));
        }
        page.push_str("</tr>");
    }
    page.push_str("</table>");
}
