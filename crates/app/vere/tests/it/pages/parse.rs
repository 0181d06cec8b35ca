//! The commands of a page.

/// Programs whose name begins a command in an indented block, where settings and outputs stand as well.
const PROGRAMS: [&str; 33] = [
    "vere",
    "./vere",
    "sudo",
    "apt",
    "systemctl",
    "journalctl",
    "make",
    "podman",
    "curl",
    "openssl",
    "tsig-keygen",
    "mutt",
    "swaks",
    "kill",
    "cp",
    "rm",
    "mkdir",
    "printf",
    "echo",
    "ls",
    "cat",
    "sed",
    "rsync",
    "tar",
    "chgrp",
    "usermod",
    "adduser",
    "git",
    "sleep",
    "diff",
    "python3",
    "head",
    "install",
];

/// A command, and the lines shown below it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    /// The heading above, without its marks.
    pub(crate) section: String,
    pub(crate) command: String,
    pub(crate) shown: Vec<String>,
}

/// Whether further lines of a block belong to its last command.
#[derive(Debug, Default, PartialEq, Eq)]
enum Open {
    /// They do not: an indented block without prompts has settings between its commands.
    #[default]
    Closed,
    /// The command goes on in the next line.
    GoesOn,
    /// The lines of input before the line with this text.
    Until(String),
    /// Lines of output.
    Shown,
}

/// The commands of a page, in their order.
///
/// In a fenced block a command begins with `$ `, and the lines below are its output. In an indented block a line that
/// begins with the name of a program is a command too, without any output.
pub(crate) fn steps(page: &str) -> Vec<Step> {
    let mut reader = Reader::default();
    for line in page.lines() {
        reader.line(line);
    }
    reader.steps
}

#[derive(Debug, Default)]
struct Reader {
    steps: Vec<Step>,
    section: String,
    is_fenced: bool,
    open: Open,
    /// Whether the last command had a prompt.
    is_prompted: bool,
}

impl Reader {
    fn line(&mut self, line: &str) {
        if line.trim_start().starts_with("```") {
            self.is_fenced = !self.is_fenced;
            self.open = Open::Closed;
        } else if self.is_fenced || line.starts_with("    ") {
            let text = line.strip_prefix("    ").filter(|_| !self.is_fenced);
            self.code(text.unwrap_or(line));
        } else if !line.is_empty() {
            self.open = Open::Closed;
            if let Some(heading) = line.strip_prefix('#') {
                self.section = heading.trim_start_matches(['#', ' ']).to_owned();
            }
        }
    }

    fn code(&mut self, line: &str) {
        let begins = self.begins(line);
        match (&self.open, self.steps.last_mut()) {
            (Open::GoesOn | Open::Until(_), Some(step)) => {
                step.command += "\n";
                step.command += line;
                self.follow(line);
            }
            _ if begins => {
                let command = line.trim_start();
                self.is_prompted = command.starts_with("$ ");
                let command = command.trim_start_matches("$ ").to_owned();
                self.open = Open::Closed;
                self.steps.push(Step {
                    section: self.section.clone(),
                    command: command.clone(),
                    shown: Vec::new(),
                });
                self.follow(&command);
            }
            (Open::Shown, Some(step)) => step.shown.push(line.to_owned()),
            _ => {}
        }
    }

    /// Decides what the next line is.
    fn follow(&mut self, line: &str) {
        let rest = match &self.open {
            Open::Until(end) if line != end => return,
            Open::Until(_) => "",
            _ => line,
        };
        let mark = rest
            .split_once("<<'")
            .and_then(|(_, rest)| rest.split('\'').next());
        self.open = match mark {
            Some(end) => Open::Until(end.to_owned()),
            None if rest.ends_with('\\') => Open::GoesOn,
            None if self.is_prompted => Open::Shown,
            None => Open::Closed,
        };
    }

    fn begins(&self, line: &str) -> bool {
        let line = line.trim_start();
        let is_value = |word: &str| word.contains('=') && !word.starts_with(['-', '"', '\'']);
        let mut first = line.trim_start_matches('(').split_whitespace();
        let first = first.find(|word| !is_value(word)).unwrap_or_default();
        line.starts_with("$ ") || (!self.is_fenced && PROGRAMS.contains(&first))
    }
}

#[test]
fn commands_are_told_from_settings_and_outputs() {
    let page = "\
# Page\n\ntext\n\n    [tls]\n    key = \"a\"\n    vere status   # why\n    X=1 vere fs \\\n      status home\n\n    output\n\n\
## Part\n```console\n$ cat > a <<'END'\nvere\nEND\n$ vere b \\\n  c\nsaid\n    more\n```\n```text\nvere: no command\n```\n";
    let found: Vec<_> = steps(page)
        .into_iter()
        .map(|step| (step.section, step.command, step.shown))
        .collect();
    let made = |section: &str, command: &str, shown: &[&str]| {
        let shown = shown.iter().map(|line| (*line).to_owned()).collect();
        (section.to_owned(), command.to_owned(), shown)
    };
    let expected: Vec<(String, String, Vec<String>)> = vec![
        made("Page", "vere status   # why", &[]),
        made("Page", "X=1 vere fs \\\n  status home", &[]),
        made("Part", "cat > a <<'END'\nvere\nEND", &[]),
        made("Part", "vere b \\\n  c", &["said", "    more"]),
    ];
    assert_eq!(found, expected);
}
