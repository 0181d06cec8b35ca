//! A shell that types the commands of a page.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Step, compare, compare::ports_moved};
use crate::harness::Child;

/// How often a command may ask.
const PROMPTS_MAX: usize = 3;

/// Longest time until an output is as shown.
const LOOK_MAX: Duration = Duration::from_secs(30);

/// How the commands of a page are typed.
#[derive(Debug, Default)]
pub(crate) struct Shell {
    /// Variables of the environment.
    pub(crate) environment: Vec<(String, OsString)>,
    /// Texts of the page, and what stands for them in this run. The first one that fits is taken.
    pub(crate) texts: Vec<(String, String)>,
    /// Ports of the page, which are moved.
    pub(crate) ports: Vec<u16>,
    pub(crate) offset: u16,
    /// Beginnings of commands without an effect: typed again until the output is as shown.
    pub(crate) looks: &'static [&'static str],
    /// Beginnings of commands that ask, and the answer to every prompt.
    pub(crate) prompts: &'static [&'static str],
    pub(crate) answer: &'static str,
    /// Beginnings of commands that run until the end of the page.
    pub(crate) servers: &'static [&'static str],
    /// Beginnings of commands with other exit codes than 0.
    pub(crate) codes: &'static [(&'static str, &'static [i32])],
    /// Servers that were started, until the end.
    pub(crate) running: Vec<Child>,
}

/// Whether a command is one of those that begin so.
fn is_one(command: &str, beginnings: &[&str]) -> bool {
    beginnings.iter().any(|one| command.starts_with(one))
}

impl Shell {
    /// Types a command in a folder, and compares its output and exit code.
    pub(crate) fn step(&mut self, folder: &Path, step: &Step) {
        let command = self.put(&step.command);
        if is_one(&step.command, self.servers) {
            // Without a shell in between, which would end and leave the server behind.
            let mut server = self.command(folder, &format!("exec {command}"));
            self.running.push(Child::spawn_quiet(&mut server));
            return;
        }
        let start = Instant::now();
        let is_look = is_one(&step.command, self.looks);
        let said = loop {
            let (code, said) = self.once(folder, step, &command);
            if self.is_right(step, code, &said) {
                break said;
            }
            let may_change = is_look && start.elapsed() < LOOK_MAX;
            let shown = step.shown.join("\n");
            assert!(
                may_change,
                "{command}\nexpected:\n{shown}\nfound, with code {code:?}:\n{said}"
            );
            std::thread::sleep(Duration::from_millis(50));
        };
        self.learn(step, &said);
    }

    /// Runs a command to its end, and returns exit code and output.
    fn once(&self, folder: &Path, step: &Step, command: &str) -> (Option<i32>, String) {
        let mut shell = self.command(folder, command);
        let output = match is_one(&step.command, self.prompts) {
            false => shell.stdin(Stdio::null()).output().expect("a shell"),
            true => at_a_terminal(&shell, folder, self.answer),
        };
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        (output.status.code(), said)
    }

    /// A command, as it is typed here.
    pub(crate) fn typed(&self, folder: &Path, step: &Step) -> Command {
        self.command(folder, &self.put(&step.command))
    }

    fn command(&self, folder: &Path, command: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(folder);
        shell.envs(self.environment.iter().map(|(name, value)| (name, value)));
        shell
    }

    /// Whether a command ended as the page says. A refusal of a server is shown with `<** `, and swaks fails then. A
    /// finding of `vere status` is one more exit code.
    fn is_right(&self, step: &Step, code: Option<i32>, said: &str) -> bool {
        // A finding about the disk of the machine is none about the page.
        let is_nearly_full = said.contains(" free below ");
        let shows = |mark: &str| step.shown.iter().any(|line| line.starts_with(mark));
        let is_refused = shows("<** ");
        let codes = self.codes.iter();
        let mut codes = codes.filter(|(begin, _)| step.command.starts_with(begin));
        let finding = [i32::from(shows("WARNING: "))];
        let wanted = codes.next().map_or(&finding[..], |(_, codes)| codes);
        let is_ended = match is_refused {
            true => code.is_some_and(|code| code != 0),
            false => is_nearly_full || code.is_some_and(|code| wanted.contains(&code)),
        };
        let mut shown = step.shown.iter();
        let is_left_out = |line: &String| is_nearly_full && line.starts_with("OK: ");
        is_ended && shown.all(|line| is_left_out(line) || self.has(said, line))
    }

    /// Whether an output has a shown line.
    pub(crate) fn has(&self, said: &str, line: &str) -> bool {
        compare::has(said, line, |word| self.put(word))
    }

    /// Keeps the queue id of a message in place of the page's.
    fn learn(&mut self, step: &Step, said: &str) {
        let id = |line: &str| Some(line.split_once("queued as ")?.1.trim().to_owned());
        let shown = step.shown.iter().find_map(|line| id(line));
        if let (Some(shown), Some(found)) = (shown, said.lines().find_map(id)) {
            self.texts.insert(0, (shown, found));
        }
    }

    /// A text of the page as it is typed here.
    fn put(&self, text: &str) -> String {
        let mut text = ports_moved(text, &self.ports, self.offset);
        // Marks, so that no text is changed twice.
        for (number, (from, _)) in self.texts.iter().enumerate() {
            text = text.replace(from, &format!("\u{1}{number}\u{2}"));
        }
        for (number, (_, to)) in self.texts.iter().enumerate() {
            text = text.replace(&format!("\u{1}{number}\u{2}"), to);
        }
        text
    }
}

/// Runs a command at a terminal of its own, where a person answers the prompts; its output is not the terminal's.
fn at_a_terminal(shell: &Command, folder: &Path, answer: &str) -> std::process::Output {
    let words: Vec<_> = shell
        .get_args()
        .map(|word| word.to_string_lossy())
        .collect();
    let typed = words.last().expect("a command");
    std::fs::write(folder.join(".typed"), typed.as_bytes()).expect("a file");
    let mut terminal = Command::new("script");
    terminal.args(["-qec", "sh .typed >.said 2>&1", "/dev/null"]);
    let variables = shell.get_envs();
    terminal.envs(variables.filter_map(|(name, value)| Some((name, value?))));
    let mut terminal = terminal
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("script, of bsdutils");
    let mut input = terminal.stdin.take().expect("piped");
    // A command that asks for less is no failure.
    let answers = format!("{answer}\n").repeat(PROMPTS_MAX);
    let _ = input.write_all(answers.as_bytes());
    let mut output = terminal.wait_with_output().expect("its end");
    drop(input);
    output.stdout = std::fs::read(folder.join(".said")).expect("its output");
    output
}
