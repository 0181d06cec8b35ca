//! The guides, typed as they stand: every command of a page is run beside a system that fits the page, or is named in
//! a table with the reason why it is not.

mod judged;
mod machines;
mod mail;
mod moves;
mod pages;
mod queues;
mod settings;
mod volumes;

use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::harness::{System, program};
use crate::pages::{Shell, steps};

use pages::{is_left_out, text};

/// Commands that ask; somebody answers with `yes`, which is a password too.
const PROMPTS: [&str; 11] = [
    "vere fs",
    "vere auth test",
    "vere account add",
    "vere account passwd",
    "vere account del",
    "vere store remove-account",
    "vere mailbox purge",
    "vere queue reroute",
    "vere queue bounce",
    "vere queue purge",
    "vere quarantine refuse",
];
/// Commands without an effect.
const LOOKS: [&str; 12] = [
    "vere node list",
    "vere status",
    "vere trace",
    "vere queue list",
    "vere queue show",
    "vere mailbox list",
    "vere mailbox expunged",
    "vere spool stat",
    "vere dkim list",
    "vere explain",
    "vere dnsbl query",
    "curl https://mta-sts",
];

/// Texts of a page, and what stands for them in a test.
type Texts<'a> = &'a [(&'a str, &'a str)];
/// Beginnings of commands with other exit codes than 0.
type Codes = &'static [(&'static str, &'static [i32])];

/// Somebody at the machine of a system, who follows guides.
struct Operator {
    folder: PathBuf,
    shell: Shell,
}

impl Operator {
    /// A shell beside a running system. Absent where the machine has no terminals for programs.
    fn of(system: &System, texts: Texts<'_>, codes: Codes) -> Option<Self> {
        Self::with(system.directory.path(), &system.config, texts, codes)
    }

    /// A shell in a folder in which `vere` is the program under test, with these settings; `sudo` does nothing.
    fn with(folder: &Path, config: &Path, texts: Texts<'_>, codes: Codes) -> Option<Self> {
        program("script")?;
        let texts = texts.iter();
        let texts = texts.map(|(from, to)| ((*from).to_owned(), (*to).to_owned()));
        let environment = [
            ("PATH", with_programs(&folder.join("bin"))),
            ("VERE_CONFIG", config.into()),
            ("HOME", folder.into()),
        ];
        let environment = environment.into_iter();
        let shell = Shell {
            environment: environment
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            texts: texts.collect(),
            looks: &LOOKS,
            prompts: &PROMPTS,
            answer: "yes",
            codes,
            ..Shell::default()
        };
        let folder = folder.to_owned();
        Some(Self { folder, shell })
    }

    /// A path below the folder.
    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Puts a path of this test in place of one of the page.
    fn place(&mut self, shown: &str, name: &str) {
        let path = self.path(name).display().to_string();
        self.shell.texts.push((shown.to_owned(), path));
    }

    /// Types the commands of a page.
    fn follow(&mut self, page: &str) {
        self.follow_where(page, |_| true);
    }

    /// Types some commands of a page.
    fn follow_where(&mut self, page: &str, is_wanted: impl Fn(&str) -> bool) {
        let mut typed = 0;
        for step in steps(&text(page)) {
            if !is_left_out(page, &step.command) && is_wanted(&step.command) {
                self.shell.step(&self.folder, &step);
                typed += 1;
            }
        }
        assert!(typed > 0, "no command of {page} is run");
    }
}

/// The search path of programs, with the program under test first.
fn with_programs(folder: &Path) -> OsString {
    std::fs::create_dir_all(folder).expect("a directory");
    for (name, program) in [
        ("vere", env!("CARGO_BIN_EXE_vere")),
        ("sudo", "/usr/bin/env"),
    ] {
        // An earlier page of this system may have left it.
        let _ = symlink(program, folder.join(name));
    }
    let mut path = OsString::from(folder);
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path
}

/// The folder of the guides.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/guides")
}
