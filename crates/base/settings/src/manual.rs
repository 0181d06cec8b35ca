//! The manual page of the file, for man(1).

use roff::{Inline, Roff, bold, italic, roman};

use crate::table::{Fallback, Opt, Section, Shape, sections};

/// Writes vere.toml(5), the reference of all options, as a manual page in man(7).
///
/// The text of every option is the text in [`reference`](crate::reference).
#[must_use]
pub fn manual() -> String {
    let mut page = Roff::new();
    page.control("TH", ["vere.toml", "5", "", "Veredarius"])
        .control("SH", ["NAME"])
        .text([roman("vere.toml - the configuration of the mail system")])
        .control("SH", ["DESCRIPTION"]);
    for paragraph in INTRODUCTION {
        page.control("PP", []).text(prose(paragraph));
    }
    for one in sections() {
        section(&mut page, one);
    }
    page.control("SH", ["SEE ALSO"]).text([
        bold("vere"),
        roman("(1), "),
        bold("vere-check-config"),
        roman("(1)"),
    ]);
    page.to_roff()
}

const INTRODUCTION: &[&str] = &[
    "The configuration is a TOML file: the file named with `--config`, else `$VERE_CONFIG`, else `run/vere.toml`, \
     else `/etc/vere/vere.toml`. `version` and `hostname` are required; every other key has a default.",
    "Unknown keys, wrong types and values out of range are errors with their line; `vere check-config` lists all \
     errors. Relative paths start at the directory of the file. `{data}` at the beginning of a path is the value of \
     `data`. Sizes are written \"512 B\", \"64 KiB\", \"10 MB\"; spans \"250ms\", \"30s\", \"5m\", \"4h\", \"5d\".",
    "On SIGHUP the system applies the whole new file. If the new file has an error, the system keeps the old settings \
     and logs the error. Options marked \"restart\" take effect at the next start.",
];

fn section(page: &mut Roff, section: &Section) {
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
        option(page, one);
    }
}

fn option(page: &mut Roff, option: &Opt) {
    let default = match option.default {
        Fallback::Required(_) => "required".to_owned(),
        Fallback::Is(text) => format!("default `{text}`"),
        Fallback::Nothing(text) => format!("default: {text}"),
    };
    let reload = if option.live { "" } else { "; restart" };
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
    use crate::table::sections;

    #[test]
    fn every_section_and_option_has_its_paragraph() {
        let page = manual();
        for section in sections() {
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
        for line in manual()
            .lines()
            .filter(|line| line.starts_with(['.', '\'']))
        {
            assert!(known.iter().any(|one| line.starts_with(one)), "{line}");
        }
    }
}
