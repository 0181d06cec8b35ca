//! What the pages of all benchmarks share.

/// One colour for each system.
pub(crate) const COLOURS: [&str; 6] = [
    "#9aa5b1", "#6b7785", "#d9822b", "#c2577a", "#2f6fdb", "#3a9b6c",
];

/// The look of every page.
pub(crate) const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1b2430;--paper:#fff;--line:#d8dee6}\
@media(prefers-color-scheme:dark){:root{--ink:#e6ebf2;--paper:#141a22;--line:#364150}}\
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);\
max-width:62rem;margin:2rem auto;padding:0 1rem}\
table{border-collapse:collapse;width:100%}\
th,td{border-bottom:1px solid var(--line);padding:.25rem .6rem;text-align:right}\
th:first-child,td:first-child{text-align:left}\
figure{margin:1.5rem 0}svg{width:100%;height:auto}svg text{fill:var(--ink);font-size:12px}";

/// Text as it must stand in a page.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
