//! The reference manual of the file.

use std::fmt::Write;

use crate::table::{Fallback, Opt, Section, Shape, sections};

/// Writes the reference of all options as Markdown.
///
/// `docs/reference/config.md` is the output; a test fails when the file differs.
#[must_use]
pub fn reference() -> String {
    let mut out = String::from(INTRODUCTION);
    for one in sections() {
        section(&mut out, one);
    }
    out
}

const INTRODUCTION: &str = "\
# Configuration reference

Written by `vere config reference`; change the table in `crates/base/settings/src/table` instead.

The configuration is a TOML file. The smallest working file:

```toml
version = 1
hostname = \"mx.example.org\"
```

Unknown keys, wrong types and values out of range are errors with their line; `vere check-config FILE`
lists all errors. Relative paths start at the directory of the file. `{data}` at the beginning of a
path is the value of `data`. Sizes are written `\"512 B\"`, `\"64 KiB\"`, `\"10 MB\"`; spans `\"250ms\"`,
`\"30s\"`, `\"5m\"`, `\"4h\"`, `\"5d\"`.

A reload applies the whole new file. If the new file has an error, the system keeps the old settings and
logs the error. Options marked *restart* take effect at the next start.
";

fn section(out: &mut String, section: &Section) {
    let title = match section.shape {
        Shape::Always if section.name.is_empty() => "Top level".to_owned(),
        Shape::Always | Shape::Optional => format!("`[{}]`", section.name),
        Shape::Repeated => format!("`[[{}]]`", section.name),
    };
    let note = match section.shape {
        Shape::Always => "",
        Shape::Optional => " Without this section the service is off.",
        Shape::Repeated => " The section may be repeated.",
    };
    // Writing to a String cannot fail.
    let _ = writeln!(out, "\n## {title}\n\n{}{note}\n", section.text);
    out.push_str("| key | value | default | reload | |\n|---|---|---|---|---|\n");
    for option in section.options {
        row(out, option);
    }
}

fn row(out: &mut String, option: &Opt) {
    let default = match option.default {
        Fallback::Required(_) => "required".to_owned(),
        Fallback::Is(text) => format!("`{text}`"),
        Fallback::Nothing(text) => text.to_owned(),
    };
    let reload = if option.live { "live" } else { "restart" };
    let wanted = option.kind.wanted();
    let cells = format!(
        "| `{}` | {wanted} | {default} | {reload} | {} |",
        option.name, option.text
    );
    let _ = writeln!(out, "{cells}");
}
