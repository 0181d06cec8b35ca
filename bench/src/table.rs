//! Tables of results, for terminals and for pages.

use std::fmt::Write as _;

use crate::page::escape;

/// Cells in columns, below a head, which may be empty.
#[derive(Debug, Default)]
pub(crate) struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(head: impl IntoIterator<Item: Into<String>>) -> Self {
        Self {
            head: head.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table for a terminal: columns as wide as their cells, figures to the right, words to the left.
    pub(crate) fn text(&self) -> String {
        let all = || std::iter::once(&self.head).chain(&self.rows);
        let columns = all().map(Vec::len).max().unwrap_or(0);
        let width = |column| {
            let cells = all().filter_map(|row| row.get(column));
            cells
                .map(|cell: &String| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let right: Vec<bool> = (0..columns).map(|column| self.is_figures(column)).collect();
        let mut text = String::new();
        for row in all().filter(|row| !row.is_empty()) {
            let mut line = String::new();
            for ((cell, width), right) in row.iter().zip(&widths).zip(&right) {
                let _ = match right {
                    true => write!(line, "{cell:>width$}  "),
                    false => write!(line, "{cell:<width$}  "),
                };
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// Whether a column has figures only; the first column has names.
    fn is_figures(&self, column: usize) -> bool {
        let mut cells = self.rows.iter().filter_map(|row| row.get(column));
        column > 0 && cells.all(|cell| is_figure(cell))
    }

    /// Adds the table to a page.
    pub(crate) fn draw(&self, page: &mut String) {
        page.push_str("<table>");
        line("th", &self.head, page);
        for row in &self.rows {
            line("td", row, page);
        }
        page.push_str("</table>");
    }
}

fn line(kind: &str, cells: &[String], page: &mut String) {
    if cells.is_empty() {
        return;
    }
    page.push_str("<tr>");
    for cell in cells {
        let _ = write!(page, "<{kind}>{}</{kind}>", escape(cell));
    }
    page.push_str("</tr>");
}

/// Whether a cell is a number as [`short`](crate::page::short) writes numbers, or stands for an absent number.
fn is_figure(cell: &str) -> bool {
    let number = cell.trim_end_matches([' ', 'M', 'k']);
    matches!(number, "" | "-") || number.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn figures_stand_to_the_right_and_words_to_the_left() {
        let mut table = Table::new(["system", "x", "verdict"]);
        for row in [["a", "1.69 M", "ok"], ["long <name>", "-", ""]] {
            table.push(row.map(str::to_owned).into());
        }
        let text = table.text();
        let lines: Vec<&str> = text.lines().collect();
        let expected = [
            "system            x  verdict",
            "a            1.69 M  ok",
            "long <name>       -",
        ];
        assert_eq!(lines, expected);
        let mut page = String::new();
        table.draw(&mut page);
        assert!(page.starts_with("<table><tr><th>system</th>"), "{page}");
        assert!(page.contains("<td>long &lt;name&gt;</td>"), "{page}");
        page.clear();
        Table::default().draw(&mut page);
        assert_eq!(
            (page.as_str(), Table::default().text()),
            ("<table></table>", String::new())
        );
    }
}
