//! The first sections of the tutorial, typed as they stand: every `$ ` line of a console block is run by a shell in the
//! folder of a demo, and the output must have the lines shown below the command.

use std::path::Path;
use std::process::Command;

use crate::harness::{program, wait_for};
use crate::operate::{DEMO_PORTS, Demo, free_offset};

/// The page.
const TUTORIAL: &str = include_str!("../../../../../docs/tutorial.md");
/// Sections with commands for a running demo and clients of SMTP and IMAP.
const SECTIONS: [&str; 5] = ["1.", "2.", "3.", "4.", "5."];
/// A port of the tutorial where nobody listens.
const NOWHERE: u16 = 2599;

/// A command, and the lines shown below it.
#[derive(Debug, Default)]
struct Step {
    command: String,
    shown: Vec<String>,
}

/// The steps of the sections, in their order.
fn steps() -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let (mut is_wanted, mut is_console, mut goes_on) = (false, false, false);
    for line in TUTORIAL.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            is_wanted = SECTIONS.iter().any(|number| heading.starts_with(number));
        } else if line.starts_with("```") {
            is_console = line == "```console";
        } else if is_wanted && is_console {
            match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => steps.push(Step {
                    command: command.to_owned(),
                    shown: Vec::new(),
                }),
                (None, Some(step)) if goes_on => step.command += &format!("\n{line}"),
                (None, Some(step)) => step.shown.push(line.to_owned()),
                (None, None) => panic!("{line} has no command"),
            }
            goes_on = steps
                .last()
                .is_some_and(|step| step.command.ends_with('\\'));
        }
    }
    steps
}

/// A text with the ports of a demo at an offset.
fn at_offset(text: &str, offset: u16) -> String {
    let mut text = text.to_owned();
    // Marks, so that no port is moved twice.
    for port in DEMO_PORTS.into_iter().chain([NOWHERE]) {
        for before in [":", ", "] {
            text = text.replace(&format!("{before}{port}"), &format!("{before}@{port}@"));
        }
    }
    for port in DEMO_PORTS.into_iter().chain([NOWHERE]) {
        text = text.replace(&format!("@{port}@"), &(port + offset).to_string());
    }
    text
}

/// Whether an output has the words of a shown line, in order. Words with digits differ from run to run, except ports.
fn has(output: &str, shown: &str, offset: u16) -> bool {
    let wanted: Vec<String> = shown
        .split_whitespace()
        .map(|word| (word, at_offset(word, offset)))
        .filter(|(word, moved)| word != moved || !word.contains(|c: char| c.is_ascii_digit()))
        .map(|(_, moved)| moved)
        .collect();
    output.lines().any(|line| {
        let mut words = line.split_whitespace();
        wanted.iter().all(|wanted| words.any(|word| word == wanted))
    })
}

#[test]
fn the_first_sections_of_the_tutorial_work_as_they_stand() {
    for client in ["swaks", "curl", "python3"] {
        if program(client).is_none() {
            return;
        }
    }
    let folder = tempfile::tempdir().expect("a temporary directory");
    let link = folder.path().join("vere");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_vere"), link).expect("a link");
    let offset = free_offset();
    let demo = Demo::start(folder.path(), offset);
    let steps = steps();
    assert!(steps.len() > 15, "{steps:?}");
    for step in &steps {
        run(folder.path(), step, offset);
    }
    demo.interrupt();
}

/// Runs a command until the output has all shown lines; commands with effects run once.
fn run(folder: &Path, step: &Step, offset: u16) {
    let command = at_offset(&step.command, offset);
    let looks = [
        "./vere trace",
        "./vere queue list",
        "./vere status",
        "curl -s -u",
    ];
    let is_look = looks.iter().any(|look| command.starts_with(look));
    let mut said = String::new();
    let mut once = || {
        let output = Command::new("sh")
            .args(["-c", &command])
            .current_dir(folder)
            .output();
        let output = output.expect("a shell");
        said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let is_right =
            output.status.success() && step.shown.iter().all(|line| has(&said, line, offset));
        is_right.then_some(())
    };
    match is_look {
        true => wait_for(&format!("{command}: {:?}", step.shown), once),
        false => {
            let done = once();
            assert!(
                done.is_some(),
                "{command}: expected {:?}; found {said}",
                step.shown
            );
        }
    }
}
