//! The reference manual of the file.

use std::fmt::Write;

use crate::table::{Fallback, File, Opt, Section, Shape};

/// Writes the reference of all options of a file as Markdown.
///
/// `docs/reference/config.md` and `docs/reference/volume.md` are the output; a test fails when a page differs.
#[must_use]
pub fn reference(of: File) -> String {
    let introduction = match of {
        File::System => INTRODUCTION,
        File::Volume => VOLUME,
    };
    let mut out = String::from(introduction);
    for one in of.sections() {
        section(&mut out, of, one);
    }
    out
}

const VOLUME: &str = "\
# Reference of the file of a volume

Written by `vere config reference --volume`; change the table in `crates/base/settings/src/table/volume.rs` instead.

`vere fs init` writes the file `NAME.toml` of a volume on mail accounts, and each machine may have its own
settings there. The smallest working file:

```toml
version = 1

[[account]]
number = 1
url = \"imaps://ann@mail.example.org/\"
password_file = \"ann.pw\"
```

Unknown keys, wrong types and values out of range are errors with their line, told by every command of
`vere fs`. Relative paths start at the directory of the file. Sizes are written `\"512 B\"`, `\"64 KiB\"`,
`\"10 MB\"`; spans `\"250ms\"`, `\"30s\"`, `\"5m\"`, `\"4h\"`, `\"5d\"`.

A changed file takes effect at the next mount; `vere fs mode` changes `mode` of a running one.
";

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

fn section(out: &mut String, of: File, section: &Section) {
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
    let effect = match of {
        File::System => "reload",
        File::Volume => "takes effect",
    };
    let _ = writeln!(
        out,
        "| key | value | default | {effect} | |\n|---|---|---|---|---|"
    );
    for option in section.options {
        row(out, of, option);
    }
}

fn row(out: &mut String, of: File, option: &Opt) {
    let default = match option.default {
        Fallback::Required(_) => "required".to_owned(),
        Fallback::Is(text) => format!("`{text}`"),
        Fallback::Nothing(text) => text.to_owned(),
    };
    let effect = of.effect(option);
    let wanted = option.kind.wanted();
    let cells = format!(
        "| `{}` | {wanted} | {default} | {effect} | {} |",
        option.name, option.text
    );
    let _ = writeln!(out, "{cells}");
}
