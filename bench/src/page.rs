//! The common parts of all benchmarks' pages.

/// A colour for each system.
pub(crate) const COLOURS: [&str; 6] = [
    "#9aa5b1", "#6b7785", "#d9822b", "#c2577a", "#2f6fdb", "#3a9b6c",
];

/// The look of every page.
const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1b2430;--paper:#fff;--line:#d8dee6}\
@media(prefers-color-scheme:dark){:root{--ink:#e6ebf2;--paper:#141a22;--line:#364150}}\
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);\
max-width:62rem;margin:2rem auto;padding:0 1rem}\
table{border-collapse:collapse;width:100%}\
th,td{border-bottom:1px solid var(--line);padding:.25rem .6rem;text-align:right}\
th:first-child,td:first-child{text-align:left}\
figure{margin:1.5rem 0}svg{width:100%;height:auto}svg text{fill:var(--ink);font-size:12px}";

/// The beginning of a page: its title, and its text.
pub(crate) fn begin(title: &str, text: &str) -> String {
    let (title, text) = (escape(title), escape(text));
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\
         <style>{STYLE}</style><h1>{title}</h1><p>{text}</p>"
    )
}

/// Adds lines as a list.
pub(crate) fn list(lines: impl IntoIterator<Item: AsRef<str>>, page: &mut String) {
    page.push_str("<ul>");
    for line in lines {
        page.push_str(&format!("<li>{}</li>", escape(line.as_ref())));
    }
    page.push_str("</ul>");
}

/// The end of a page.
pub(crate) const END: &str = "</html>\n";

/// Text with the special characters of HTML escaped.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// A figure with three significant digits.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 1e6 => format!("{:.2} M", value / 1e6),
        size if size >= 1e4 => format!("{:.0} k", value / 1e3),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 1.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}
