//! `vere man` and `vere completions`: files of a package beside the program, written by the program itself, so that
//! files and program cannot differ.

#[cfg(test)]
mod documented;
mod reference;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::Shell;

use super::examples;
use vere_process::failure::Failure;
use vere_settings::File;

/// Pages about files.
const FILES: [(&str, File); 2] = [
    ("vere.toml.5", File::System),
    ("verefs.toml.5", File::Volume),
];

/// Write the manual pages.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write the pages into this directory, created when missing: `man1` with a page for each command, `man5`
    /// with vere.toml(5) and verefs.toml(5), and `man8` with mount.verefs(8). Read a page with `man -M DIRECTORY vere`.
    #[arg(value_name = "FOLDER", required_unless_present = "markdown")]
    folder: Option<PathBuf>,
    /// Print all commands as one page of Markdown instead.
    #[arg(long, conflicts_with = "folder")]
    markdown: bool,
}

/// Print a completion script for a shell.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// For bash: `source <(vere completions bash)`.
    shell: Shell,
}

/// Writes every page of the program that `cli` describes.
///
/// # Errors
/// When a folder or file cannot be written, with its name.
pub(crate) fn man(args: &ManArgs, cli: Command) -> Result<String, Failure> {
    let Some(folder) = &args.folder else {
        return Ok(reference::page(&cli));
    };
    let (commands, files) = (folder.join("man1"), folder.join("man5"));
    let written = |path: &Path, done: io::Result<()>| {
        done.map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))
    };
    written(&commands, fs::create_dir_all(&commands))?;
    written(&files, fs::create_dir_all(&files))?;
    // The directory may contain pages of other programs, so the new pages are completed elsewhere.
    let made = tempfile::tempdir()?;
    written(made.path(), clap_mangen::generate_to(cli, made.path()))?;
    for page in fs::read_dir(made.path())?.flatten() {
        // vere-bench brings the page about itself.
        if page.file_name() != "vere-bench.1" {
            written(&page.path(), complete(&page.path()))?;
            let page_there = commands.join(page.file_name());
            let copied = fs::copy(page.path(), &page_there);
            written(&page_there, copied.map(drop))?;
        }
    }
    for (name, of) in FILES {
        let page = files.join(name);
        written(&page, fs::write(&page, vere_settings::manual(of)))?;
    }
    let helpers = folder.join("man8");
    written(&helpers, fs::create_dir_all(&helpers))?;
    let page = helpers.join("mount.verefs.8");
    written(&page, fs::write(&page, ".so man1/vere-fs-mount.1\n"))?;
    Ok(String::new())
}

/// The section about files, and the page about settings.
const SYSTEM_FILES: (&str, &str) = (
    ".SH FILES\n.TP\n/etc/vere/vere.toml\nthe settings, unless \\-c FILE or VERE_CONFIG names others\n",
    "vere.toml(5)",
);

/// As [`SYSTEM_FILES`], for commands on volumes.
const FS_FILES: (&str, &str) = (
    ".SH FILES\n.TP\n~/.config/vere/fs/NAME.toml\naccounts and settings of the volume NAME\n.TP\n\
     ~/.config/vere/fs/NAME.slot\nthe key of the volume, closed by the passphrase or key file\n",
    "verefs.toml(5)",
);

/// The exit codes of a command, by the name of its page.
fn exit_status(name: &str) -> String {
    let fixed = match name {
        "vere-dial" => {
            "0: the mail would be accepted now; 3: it would wait; 4: it would be refused permanently; 1: the check was \
             not possible; 2: usage error."
        }
        "vere-status" => "0: OK; 1: warning; 2: critical, or a usage error; 3: unknown.",
        "vere-doctor" => "0: OK; 1: warning; 2: critical, or a usage error.",
        "vere-store-check" | "vere-store-repair" => {
            "0: nothing wrong, nothing lost; 3: damage or losses, which the output names; 1: failure; 2: usage error."
        }
        "vere-mailbox-undelete" => {
            "0: every matching message is back; 3: no message matches, or the quota became full on the way; 1: failure; \
             2: usage error."
        }
        "vere-resolve" => {
            "0: every address has a target; 4: mail for an address is refused; 1: failure; 2: usage error."
        }
        "vere-auth-test" => "0: accepted; 3: refused; 1: failure; 2: usage error.",
        "vere-dkim-activate" => {
            "0: the keys sign; 3: a record is not seen in the DNS yet; 1: failure; 2: usage error."
        }
        "vere-filter-test" => {
            "0: every filter has answered; 3: a filter gave no answer; 1: failure; 2: usage error."
        }
        "vere-reports-read" => {
            "0: everything is read; 3: something that looks like a report could not be read; 1: failure; 2: usage error."
        }
        "vere-backup-list" | "vere-backup-verify" => {
            "0: nothing is damaged; 3: damage, which the output names; 1: failure; 2: usage error."
        }
        "vere-restore" => {
            "0: everything is restored; 3: something is lost, with --salvage; 1: failure; 2: usage error."
        }
        "vere-dns-check" => {
            "0: no finding; 3: findings; 1: the check was not possible; 2: usage error."
        }
        "vere-import" | "vere-export" => {
            "0: everything is transferred; 3: everything but messages that were refused; 1: the transfer stopped; 2: \
             usage error."
        }
        "vere-dnsbl-query" => {
            "0: accepted; 3: deferred; 4: refused; 1: the query was not possible; 2: usage error."
        }
        "vere-serve" => {
            "0: ended by SIGTERM or one SIGINT; 130: ended by two SIGINT; 1: failure; 2: usage error."
        }
        "vere-fs-mount" => {
            "0: done; 1: failure, with the reason on standard error; 2: usage error. As mount.verefs: 0, 32 (not mounted) \
             and 1 (usage error), as mount(8) expects."
        }
        "vere-sendmail" => return sendmail_codes(),
        _ => "0: done; 1: failure, with the reason on standard error; 2: usage error.",
    };
    fixed.to_owned()
}

fn sendmail_codes() -> String {
    let codes = vere_sendmail::EXIT_CODES.iter();
    let codes: Vec<String> = codes
        .map(|(code, meaning)| format!("{code}: {meaning}"))
        .collect();
    format!("{}.", codes.join("; "))
}

/// Adds the sections that the definitions of commands lack.
fn complete(page: &Path) -> io::Result<()> {
    use std::io::Write as _;
    let name = page.file_stem().unwrap_or_default().to_string_lossy();
    let own = match &*name {
        "vere-sendmail" => sendmail_sections(),
        "vere-fs-mount" => fstab_sections(),
        _ => format!(".SH \"EXIT STATUS\"\n{}\n", exit_status(&name)),
    };
    let is_of_volume = name == "vere-fs" || name.starts_with("vere-fs-");
    let (files, of_file) = if is_of_volume { FS_FILES } else { SYSTEM_FILES };
    let mut others = vec![of_file.to_owned()];
    let mut above = &*name;
    while let Some((upper, _)) = above.rsplit_once('-') {
        // `check-config` is a single word.
        if page.with_file_name(format!("{upper}.1")).exists() {
            others.insert(0, format!("{upper}(1)"));
        }
        above = upper;
    }
    let also = format!(
        ".SH \"SEE ALSO\"\n{}\n",
        others.join(", ").replace('-', "\\-")
    );
    let examples = examples::section(&name);
    let mut file = fs::OpenOptions::new().append(true).open(page)?;
    file.write_all([&own, &examples, files, &also].concat().as_bytes())
}

fn sendmail_sections() -> String {
    let plain = |text: &str| text.replace('-', "\\-");
    let mut text = ".SH \"COMMAND LINES\"\n.nf\n".to_owned();
    for line in vere_sendmail::SYNOPSIS {
        text += &format!("{}\n", plain(line));
    }
    text += ".fi\n.SH \"CLASSIC OPTIONS\"\n";
    for (option, meaning) in vere_sendmail::OPTIONS {
        text += &format!(".TP\n{}\n{}\n", plain(option), plain(meaning));
    }
    text += ".SH \"EXIT STATUS\"\n";
    for (code, meaning) in vere_sendmail::EXIT_CODES {
        text += &format!(".TP\n{code}\n{meaning}\n");
    }
    text
}

fn fstab_sections() -> String {
    let plain = |text: &str| text.replace('-', "\\-");
    let mut text = ".SH \"MOUNT.VEREFS\"\nThe program is the helper of mount(8) for file systems of the type verefs when \
                    its name is mount.verefs; /etc/fstab may have a line such as\n.PP\n.nf\n"
        .to_owned();
    text += "home  /home/ann/files  verefs  noauto,_netdev,user=ann,passphrase_file=/home/ann/phrase  0  0\n.fi\n.PP\n";
    text += &format!("{}\n", plain(vere_mount::fstab::SYNOPSIS));
    for (options, meaning) in vere_mount::fstab::OPTIONS {
        text += &format!(".TP\n{}\n{}\n", plain(options), plain(meaning));
    }
    text += &format!(".SH \"EXIT STATUS\"\n{}\n", exit_status("vere-fs-mount"));
    text
}

/// Gives the script that completes the commands of `cli` in a shell.
pub(crate) fn completions(args: &CompletionsArgs, cli: &Command) -> String {
    // Scripts for some shells offer hidden commands too.
    let shown = cli.get_subcommands().filter(|one| !one.is_hide_set());
    let mut command = Command::new("vere").subcommands(shown.cloned());
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "vere", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use std::process;

    use clap::{CommandFactory as _, ValueEnum as _};

    use super::*;
    use crate::Cli;

    /// Every command of the help, as `vere-queue-list`.
    fn shown(command: &Command, name: &str, found: &mut Vec<String>) {
        for one in command.get_subcommands().filter(|one| !one.is_hide_set()) {
            shown(one, &format!("{name}-{}", one.get_name()), found);
        }
        found.push(name.to_owned());
    }

    #[test]
    fn every_command_has_a_page_that_man_takes() {
        let folder = tempfile::tempdir().unwrap();
        let new = folder.path().join("new");
        let args = ManArgs {
            folder: Some(new.clone()),
            markdown: false,
        };
        let foreign = new.join("man1/vere-bench.1");
        fs::create_dir_all(new.join("man1")).unwrap();
        fs::write(&foreign, "foreign").unwrap();
        man(&args, Cli::command()).unwrap();
        assert_eq!(fs::read_to_string(&foreign).unwrap(), "foreign");
        fs::remove_file(&foreign).unwrap();
        let mut names = Vec::new();
        shown(&Cli::command(), "vere", &mut names);
        names.retain(|name| name != "vere-bench");
        assert!(names.len() > 40, "{names:?}");
        let mut pages: Vec<PathBuf> = names
            .iter()
            .map(|name| new.join("man1").join(format!("{name}.1")))
            .collect();
        assert_eq!(fs::read_dir(new.join("man1")).unwrap().count(), pages.len());
        pages.extend(FILES.map(|(name, _)| new.join("man5").join(name)));
        for page in &pages {
            assert!(page.exists(), "{}", page.display());
        }
        for page in pages.iter().take(names.len()) {
            let text = fs::read_to_string(page).unwrap();
            for section in [".SH \"EXIT STATUS\"", ".SH FILES", ".SH \"SEE ALSO\""] {
                assert_eq!(text.matches(section).count(), 1, "{}", page.display());
            }
        }
        let example = ".SH EXAMPLES\n.TP\n\\&vere queue hold example.com\n";
        for (page, part) in [
            ("queue-list", "vere(1), vere\\-queue(1), vere.toml(5)"),
            ("queue-hold", example),
            ("sendmail", "\\-bs\n"),
            ("sendmail", "\n75\n"),
            ("fs-mount", "passphrase_file=FILE"),
            ("fs-status", "verefs.toml(5)"),
        ] {
            let file = new.join(format!("man1/vere-{page}.1"));
            let text = fs::read_to_string(file).unwrap();
            assert!(text.contains(part), "{part} in {text}");
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
    fn every_shell_has_its_script() {
        for shell in Shell::value_variants() {
            let script = completions(&CompletionsArgs { shell: *shell }, &Cli::command());
            assert!(script.contains("quickstart"), "{shell}");
            assert!(!script.contains("demo"), "{shell}");
            // Printing removes control characters of a terminal.
            let steers = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
            assert!(!script.contains(steers), "{shell}");
        }
    }
}
