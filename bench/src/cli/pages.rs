//! `vere-bench man` and `vere-bench completions`: pages and scripts for packages, made of the definitions of commands.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::Cli;

/// Writes the manual pages.
#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// The directory; `man1` in the directory gets a page for each command. Read a page with `man -M DIRECTORY
    /// vere-bench`.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// Print a completion script for a shell.
#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// For bash: `source <(vere-bench completions bash)`.
    shell: Shell,
}

/// Command lines for the manual pages: name of the page, line, effect.
const EXAMPLES: &[(&str, &str, &str)] = &[
    (
        "vere-bench-trouble",
        "vere-bench trouble --quick",
        "1,000 clients of each kind that do nothing, beside honest ones.",
    ),
    (
        "vere-bench-trouble",
        "vere-bench trouble --only data,fetch --json figures.json",
        "10,000 that park messages, 10,000 that do not read, and the figures as JSON.",
    ),
    (
        "vere-bench-front",
        "vere-bench front --quick",
        "Every row and every system, with few connections and short loads.",
    ),
    (
        "vere-bench-front",
        "vere-bench front --only bounces,storm --system gateway,postfix",
        "Bounced sessions, and good mail among bounces, beside Postfix alone.",
    ),
    (
        "vere-bench-kill",
        "vere-bench kill --vere /usr/bin/vere --victim gateway --victim spool",
        "Processes of a whole system killed 20 times during 10,000 messages.",
    ),
];

/// Writes every page.
///
/// # Errors
/// When a directory or file cannot be written; the text names the path.
pub(super) fn man(args: &ManArgs) -> io::Result<()> {
    let folder = args.folder.join("man1");
    let written = |path: &Path, done: io::Result<()>| {
        done.map_err(|error| io::Error::other(format!("cannot write {}: {error}", path.display())))
    };
    written(&folder, fs::create_dir_all(&folder))?;
    // The directory may contain pages of other programs, so the new pages are completed elsewhere.
    let made = tempfile::tempdir()?;
    clap_mangen::generate_to(Cli::command(), made.path())?;
    for entry in fs::read_dir(made.path())?.flatten() {
        let (page, there) = (entry.path(), folder.join(entry.file_name()));
        let name = page.file_stem().unwrap_or_default().to_string_lossy();
        complete(&page, &name)?;
        written(&there, fs::copy(&page, &there).map(drop))?;
    }
    Ok(())
}

/// Adds the sections that the definitions of commands lack.
fn complete(page: &Path, name: &str) -> io::Result<()> {
    let plain = |text: &str| text.replace('-', "\\-");
    let mut text = ".SH \"EXIT STATUS\"\n0: the command ran, whatever the figures are; 1: it did not, and standard \
                    error says why; 2: usage error.\n"
        .to_owned();
    let examples = EXAMPLES.iter().filter(|(page, ..)| *page == name);
    for (index, (_, line, effect)) in examples.enumerate() {
        if index == 0 {
            text += ".SH EXAMPLES\n";
        }
        text += &format!(".TP\n\\&{}\n\\&{}\n", plain(line), plain(effect));
    }
    let above = match name {
        "vere-bench" => "",
        _ => "vere\\-bench(1), ",
    };
    text += &format!(".SH \"SEE ALSO\"\n{above}vere(1)\n");
    fs::OpenOptions::new()
        .append(true)
        .open(page)?
        .write_all(text.as_bytes())
}

/// Prints the script for a shell.
pub(super) fn completions(args: &CompletionsArgs) -> io::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "vere-bench", &mut script);
    io::stdout().write_all(&script)
}

#[cfg(test)]
mod tests {
    use std::process;

    use clap::Parser as _;

    use super::*;

    #[test]
    fn every_command_has_a_page_that_man_takes() {
        let folder = tempfile::tempdir().unwrap();
        let args = ManArgs {
            folder: folder.path().join("new"),
        };
        man(&args).unwrap();
        let mut pages = vec![args.folder.join("man1/vere-bench.1")];
        let command = Cli::command();
        let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
        for command in shown {
            let name = format!("man1/vere-bench-{}.1", command.get_name());
            pages.push(args.folder.join(name));
        }
        for page in &pages {
            let text = fs::read_to_string(page).unwrap();
            for section in [".SH \"EXIT STATUS\"", ".SH \"SEE ALSO\""] {
                assert_eq!(text.matches(section).count(), 1, "{}", page.display());
            }
        }
        // If groff is installed, the pages must produce no warning.
        let groff = process::Command::new("groff")
            .args(["-man", "-ww", "-z", "-Tutf8"])
            .args(&pages)
            .output();
        if let Ok(said) = groff {
            assert_eq!(String::from_utf8_lossy(&said.stderr), "");
        }
    }

    #[test]
    fn every_example_can_be_typed_and_is_of_its_page() {
        for (page, line, effect) in EXAMPLES {
            assert!(effect.ends_with('.'), "{effect}");
            assert!(line.replace(' ', "-").starts_with(page), "{line}");
            let parsed = Cli::try_parse_from(line.split(' '));
            parsed.unwrap_or_else(|error| panic!("{line}: {error}"));
        }
    }
}
