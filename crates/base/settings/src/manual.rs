//! The manual page of the file, for man(1).

use roff::{Inline, Roff, bold, italic, roman};

use crate::table::{Fallback, File, Opt, Section, Shape};

/// Writes vere.toml(5) or verefs.toml(5), the reference of all options of a file, as a manual page in man(7).
///
/// The text of every option is the text in [`reference`](crate::reference).
#[must_use]
pub fn manual(of: File) -> String {
    let (name, about, introduction, command) = match of {
        File::System => (
            "vere.toml",
            "the configuration of the mail system",
            INTRODUCTION,
            "vere-check-config",
        ),
        File::Volume => (
            "verefs.toml",
            "the description of a volume on mail accounts",
            VOLUME,
            "vere-fs",
        ),
    };
    let mut page = Roff::new();
    page.control("TH", [name, "5", "", "Veredarius"])
        .control("SH", ["NAME"])
        .text([roman(format!("{name} - {about}"))])
        .control("SH", ["DESCRIPTION"]);
    for paragraph in introduction {
        page.control("PP", []).text(prose(paragraph));
    }
    for one in of.sections() {
        section(&mut page, of, one);
    }
    page.control("SH", ["SEE ALSO"]).text([
        bold("vere"),
        roman("(1), "),
        bold(command),
        roman("(1)"),
    ]);
    page.to_roff()
}

const VOLUME: &[&str] = &[
    "`vere fs init` writes the file NAME.toml of a volume, `~/.config/vere/fs/NAME.toml` by default. `version` and an \
     account are required; every other key has a default, and each machine may have its own settings.",
    "Unknown keys, wrong types and values out of range are errors with their line, told by every command of `vere fs`. \
     Relative paths start at the directory of the file. Sizes are written \"512 B\", \"64 KiB\", \"10 MB\"; spans \
     \"250ms\", \"30s\", \"5m\", \"4h\", \"5d\". A changed file takes effect at the next mount.",
];

const INTRODUCTION: &[&str] = &[
    "The configuration is a TOML file: the file named with `--config`, else `$VERE_CONFIG`, else `run/vere.toml`, \
     else `/etc/vere/vere.toml`. `version` and `hostname` are required; every other key has a default.",
    "Unknown keys, wrong types and values out of range are errors with their line; `vere check-config` lists all \
     errors. Relative paths start at the directory of the file. `{data}` at the beginning of a path is the value of \
     `data`. Sizes are written \"512 B\", \"64 KiB\", \"10 MB\"; spans \"250ms\", \"30s\", \"5m\", \"4h\", \"5d\".",
    "On SIGHUP the system applies the whole new file. If the new file has an error, the system keeps the old settings \
     and logs the error. Options marked \"restart\" take effect at the next start.",
];

fn section(page: &mut Roff, of: File, section: &Section) {
    let (title, note) = match section.shape {
        Shape::Always if section.name.is_empty() => ("TOP LEVEL".to_owned(), ""),
        Shape::Always => (format!("[{}]", section.name), ""),
        Shape::Optional => (
            format!("[{}]", section.name),
            " Without this section the service is off.",
        ),
        Shape::Repeated => (
            format!("[[{}]]", section.name),
            " The section may be repeated.",
        ),
    };
    page.control("SH", [title.as_str()])
        .text(prose(&format!("{}{note}", section.text)));
    for one in section.options {
        option(page, of, one);
    }
}

fn option(page: &mut Roff, of: File, option: &Opt) {
    let default = match option.default {
        Fallback::Required(_) => "required".to_owned(),
        Fallback::Is(text) => format!("default `{text}`"),
        Fallback::Nothing(text) => format!("default: {text}"),
    };
    let reload = match of.effect(option) {
        "restart" => "; restart",
        _ => "",
    };
    page.control("TP", []).text([
        bold(option.name),
        roman(" = "),
        italic(option.kind.wanted()),
    ]);
    let mut text = prose(option.text);
    text.push(roman(" ("));
    text.extend(prose(&default));
    text.push(roman(format!("{reload})")));
    page.text(text);
}

/// Converts text: parts between backquotes become bold.
fn prose(text: &str) -> Vec<Inline> {
    let parts = text.split('`').enumerate();
    parts
        .filter(|(_, part)| !part.is_empty())
        .map(|(place, part)| match place % 2 {
            0 => roman(part),
            _ => bold(part),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::manual;
    use crate::table::File;

    const FILES: [File; 2] = [File::System, File::Volume];

    #[test]
    fn every_section_and_option_has_its_paragraph() {
        for (of, section) in FILES
            .into_iter()
            .flat_map(|of| of.sections().map(move |one| (of, one)))
        {
            let page = manual(of);
            for option in section.options {
                // The name stands at the beginning of the line behind the tag's macro.
                let name = option.name.replace('-', "\\-");
                let tag = format!("\n.TP\n\\fB{name}\\fR = ");
                assert!(page.contains(&tag), "{}.{}", section.name, option.name);
            }
        }
    }

    #[test]
    fn no_line_of_text_is_taken_for_a_macro() {
        let known = [".TH ", ".SH ", ".PP", ".TP", ".ie ", ".el "];
        let pages = FILES.map(manual).concat();
        for line in pages.lines().filter(|line| line.starts_with(['.', '\''])) {
            assert!(known.iter().any(|one| line.starts_with(one)), "{line}");
        }
    }
}
