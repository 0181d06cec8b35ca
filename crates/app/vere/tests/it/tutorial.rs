//! The tutorial, typed as it stands: every `$ ` line of a console block is run by a shell in the directory of a demo,
//! and the output must have the lines shown below the command.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::harness::{program, run, vere};
use crate::mounts::can_mount;
use crate::operate::{DEMO_PORTS, Demo, free_offset};
use crate::pages::{Shell, Step, steps};

/// The page.
const TUTORIAL: &str = include_str!("../../../../../docs/tutorial.md");
/// Sections that go on with the demo of the one before, and are run by one test.
#[derive(Debug)]
struct Group {
    sections: &'static [&'static str],
    /// Sections before, and the beginnings of the commands there whose files this group needs.
    before: &'static [(&'static str, &'static [&'static str])],
}

const MAIL: Group = group(&["1", "2", "3", "4"], &[]);
const BREAKS: Group = group(&["5"], &[]);
const STRANGERS: Group = group(&["6"], &[]);
const LISTS: Group = group(&["7"], &[("6", &["sed "])]);
const JUDGEMENT: Group = group(&["8"], &[("6", &["sed "]), ("7", &["echo ", "cat "])]);
const FILES: Group = group(&["9"], &[]);
const MACHINES: Group = group(
    &["Two machines", "Another lead"],
    &[("9", &["printf ", "mkdir run/files", "./vere fs init"])],
);
const OTHERS: Group = group(&["10", "11", "12"], &[]);

const fn group(
    sections: &'static [&'static str],
    before: &'static [(&'static str, &'static [&'static str])],
) -> Group {
    Group { sections, before }
}

/// Ports of the tutorial beside those of the demo: one where nobody listens, and one of a second server of lists.
const OTHER_PORTS: [u16; 2] = [2599, 2054];
/// Commands without an effect.
const LOOKS: [&str; 13] = [
    "./vere trace",
    "./vere queue list",
    "./vere status",
    "./vere spool stat",
    "./vere dnsbl query",
    "./vere explain",
    "./vere x400 show",
    "./vere x400 archive",
    "./vere fs status",
    "curl -s -u",
    "curl -s http",
    "curl --cacert",
    "cat run/other",
];
/// Commands that no machine can run for a test, each with the reason.
const NOT_RUN: [(&str, &str); 2] = [
    ("mutt ", "a program with windows of its own"),
    ("make clean", "the directory of the test is removed"),
];

#[test]
fn messages_are_sent_and_read() {
    follow(&MAIL, &["swaks", "curl", "python3"]);
}

#[test]
fn what_is_broken_goes_on() {
    follow(&BREAKS, &["swaks"]);
}

#[test]
fn strangers_are_refused_and_put_off() {
    follow(&STRANGERS, &["swaks", "curl"]);
}

#[test]
fn clients_are_listed() {
    follow(&LISTS, &["swaks"]);
}

#[test]
fn messages_of_strangers_are_judged() {
    follow(&JUDGEMENT, &["swaks"]);
}

#[test]
fn files_are_kept_in_mailboxes() {
    if can_mount() {
        follow(&FILES, &["script", "curl", "pgrep"]);
    }
}

#[test]
fn two_machines_have_the_same_files() {
    if can_mount() {
        follow(&MACHINES, &["script"]);
    }
}

#[test]
fn other_mtas_and_mail_programs_are_served() {
    follow(&OTHERS, &["curl"]);
}

/// Types the commands of a group, where the machine has these programs.
fn follow(group: &Group, programs: &[&str]) {
    if programs.iter().all(|name| program(name).is_some()) {
        let mut session = Session::start();
        session.prepare(group);
        session.type_all(group);
    }
}

/// The section of a step: its number, or the heading of a part of section 9.
fn section(step: &Step) -> &str {
    let heading = step.section.as_str();
    heading
        .split_once(". ")
        .map_or(heading, |(number, _)| number)
}

#[test]
fn every_section_is_run() {
    for step in steps(TUTORIAL) {
        let groups = [
            MAIL, BREAKS, STRANGERS, LISTS, JUDGEMENT, FILES, MACHINES, OTHERS,
        ];
        let is_run = |group: &Group| group.sections.contains(&section(&step));
        assert!(groups.iter().any(is_run), "{step:?} is run by no test");
    }
}

/// The role whose process the page means by `PID`.
fn role(command: &str) -> Option<&'static str> {
    match command {
        "kill -9 PID" => Some("gateway"),
        "kill -STOP PID" | "kill -CONT PID" => Some("spool-a"),
        _ => None,
    }
}

/// Somebody who follows the tutorial, with two terminals.
struct Session {
    folder: tempfile::TempDir,
    shell: Shell,
    demo: Option<Demo>,
}

impl Session {
    /// A directory as a clone has it, and a demo that runs there.
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let link = folder.path().join("vere");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_vere"), link).expect("a link");
        let offset = free_offset();
        let home = OsString::from(folder.path());
        let shell = Shell {
            environment: vec![("HOME".to_owned(), home)],
            ports: DEMO_PORTS.into_iter().chain(OTHER_PORTS).collect(),
            offset,
            looks: &LOOKS,
            prompts: &["./vere fs ", "XDG_STATE_HOME=$PWD/run/state2 ./vere fs"],
            answer: "tutorial",
            servers: &["./vere dnsbl serve"],
            // The client is listed.
            codes: &[("./vere dnsbl query", &[4])],
            ..Shell::default()
        };
        let demo = Some(Demo::start(folder.path(), offset));
        Self {
            folder,
            shell,
            demo,
        }
    }

    /// Types commands of earlier sections, for their files.
    fn prepare(&mut self, group: &Group) {
        let steps = steps(TUTORIAL);
        let wanted = |step: &&Step| {
            let mut before = group.before.iter();
            before.any(|(name, begins)| {
                let mut begins = begins.iter();
                *name == section(step) && begins.any(|begin| step.command.starts_with(begin))
            })
        };
        for step in steps.iter().filter(wanted) {
            self.shell.step(self.folder.path(), step);
        }
    }

    /// Types the commands of a group, and stops the demo.
    fn type_all(mut self, group: &Group) {
        if group.sections == FILES.sections {
            let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs");
            run(Command::new("cp")
                .arg("-r")
                .arg(docs)
                .arg(self.folder.path()));
        }
        let steps = steps(TUTORIAL);
        let steps = steps.iter();
        for step in steps.filter(|step| group.sections.contains(&section(step))) {
            self.step(step);
        }
        self.interrupt();
    }

    fn step(&mut self, step: &Step) {
        if NOT_RUN.iter().any(|(one, _)| step.command.starts_with(one)) {
            return;
        }
        match step.command.as_str() {
            "make run" => self.restart(),
            command => {
                if let Some(role) = role(command) {
                    self.name_process(role);
                }
                self.shell.step(self.folder.path(), step);
            }
        }
    }

    /// Ctrl-C in the first terminal.
    fn interrupt(&mut self) {
        self.demo.take().expect("a demo").interrupt();
    }

    fn restart(&mut self) {
        self.interrupt();
        self.demo = Some(Demo::start(self.folder.path(), self.shell.offset));
    }

    /// Puts the process of a role in place of `PID`, as `./vere status` prints it.
    fn name_process(&mut self, role: &str) {
        let mut status = vere();
        status
            .args(["status", "--json"])
            .current_dir(self.folder.path());
        let output = status.output().expect("vere status");
        let status: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let rows = status["system"]["roles"].as_array().expect("roles").iter();
        let mut rows = rows.filter(|row| row["name"] == role);
        let pid = rows.next().and_then(|row| row["pid"].as_u64());
        let pid = pid.unwrap_or_else(|| panic!("{role} has no process: {status:#}"));
        self.shell.texts = vec![("PID".to_owned(), pid.to_string())];
    }
}
