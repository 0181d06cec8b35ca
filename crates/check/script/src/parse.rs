//! A script's file.

use std::time::Duration;

use vere_units::Span;

use crate::template::{Template, TemplateError};

/// A parsed script.
#[derive(Clone, Debug)]
pub struct Script {
    /// The name for error texts: the name of the file.
    pub name: String,
    /// The needs of the script.
    pub requirements: Vec<Requirement>,
    /// The statements, in order.
    pub statements: Vec<Statement>,
}

/// A need of a script; a subject without the need skips the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// `@listener submission`: the port for users and not the one for servers.
    Submission,
    /// `@listener imap`: IMAP, and not SMTP.
    Imap,
    /// `@peer RIGHT` or `@peer no-RIGHT`: what the client may do or not.
    Right {
        /// `relay`, `auth-in-clear`, `xclient`, `proxy` or `tls`.
        right: String,
        /// Whether the extension must be present or absent.
        has: bool,
    },
    /// `@limit NAME VALUE`: a bound of the server, by name in `Limits`.
    Limit {
        /// The field.
        name: String,
        /// The value: octets, a count, or milliseconds.
        value: u64,
    },
    /// `@set NAME`: a switch of the server that is off by default, under its name in
    /// `ServerConfig`.
    Switch(String),
    /// `@only bare REASON`: makes no sense against a daemon.
    Bare(String),
    /// `@only together REASON`: makes no sense when what leaves together arrives in pieces.
    Together(String),
}

/// A line of a script.
#[derive(Clone, Debug)]
pub struct Statement {
    /// The line number in the file, from 1.
    pub line: usize,
    /// Which connection, from 1.
    pub connection: u32,
    /// What it says.
    pub action: Action,
}

/// The side that a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// `C`
    Client,
    /// `S`
    Server,
}

/// The action of a line.
#[derive(Clone, Debug)]
pub enum Action {
    /// `C: text` sends the text and a CRLF; `C| text` the text alone. Consecutive lines are sent
    /// together.
    Send {
        /// The text.
        text: Template,
        /// Whether a CRLF follows.
        line_end: bool,
    },
    /// `S: pattern`: the next line of the server.
    Line(Template),
    /// `S+ pattern`: the next reply has a line that matches behind the code.
    Has(Template),
    /// `S- pattern`: the next reply has no line that matches behind the code.
    HasNot(Template),
    /// `--`: the pending octets are sent.
    Flush,
    /// `= wait TIME`
    Wait(Duration),
    /// `= tls`: both sides shake hands.
    Tls,
    /// `= closed`: the server has closed without further output.
    Closed,
    /// `= close`: the client closes.
    Close,
    /// `= silent`: the server sends no output.
    Silent,
    /// `= scram USER PASSWORD`: AUTH SCRAM-SHA-256 up to the final reply.
    Scram {
        /// The user.
        user: Template,
        /// The password.
        password: Template,
    },
    /// `= shut-down`: the server is told to go down.
    ShutDown,
    /// `M: text`: the message stored last, in words, see [`crate::Subject::message`].
    Message(Template),
}

/// The error in a script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{script}:{line}: {problem}")]
pub struct ParseError {
    /// The script.
    pub script: String,
    /// The line, from 1.
    pub line: usize,
    /// The problem in the line.
    pub problem: String,
}

impl Script {
    /// Parses the text of a script.
    ///
    /// # Errors
    ///
    /// [`ParseError`] with the first line that is no line of a script.
    pub fn parse(name: &str, text: &str) -> Result<Self, ParseError> {
        let mut script = Self {
            name: name.to_owned(),
            requirements: Vec::new(),
            statements: Vec::new(),
        };
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            script.add(number, line).map_err(|problem| ParseError {
                script: name.to_owned(),
                line: number,
                problem,
            })?;
        }
        Ok(script)
    }

    fn add(&mut self, number: usize, line: &str) -> Result<(), String> {
        if line.trim().is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if let Some(directive) = line.strip_prefix('@') {
            if !self.statements.is_empty() {
                return Err("a requirement must stand before the first line".to_owned());
            }
            self.requirements.push(requirement(directive)?);
            return Ok(());
        }
        let (connection, action) = statement(line)?;
        self.statements.push(Statement {
            line: number,
            connection,
            action,
        });
        Ok(())
    }
}

fn requirement(directive: &str) -> Result<Requirement, String> {
    let (key, value) = directive.split_once(' ').unwrap_or((directive, ""));
    let value = value.trim();
    match key {
        "listener" if value == "submission" => Ok(Requirement::Submission),
        "listener" if value == "imap" => Ok(Requirement::Imap),
        "peer" => {
            let (right, has) = match value.strip_prefix("no-") {
                Some(right) => (right, false),
                None => (value, true),
            };
            if ![
                "relay",
                "priority",
                "auth-in-clear",
                "xclient",
                "proxy",
                "tls",
                "auth",
            ]
            .contains(&right)
            {
                return Err(format!("unknown right {right}"));
            }
            Ok(Requirement::Right {
                right: right.to_owned(),
                has,
            })
        }
        "limit" => {
            let (name, value) = value
                .split_once(' ')
                .ok_or("a limit needs a name and a value")?;
            let value = value.trim().parse().map_err(|_| "a limit needs a number")?;
            Ok(Requirement::Limit {
                name: name.to_owned(),
                value,
            })
        }
        "set" if !value.is_empty() => Ok(Requirement::Switch(value.to_owned())),
        "only" => match value.split_once(' ') {
            Some(("bare", reason)) => Ok(Requirement::Bare(reason.to_owned())),
            Some(("together", reason)) => Ok(Requirement::Together(reason.to_owned())),
            _ => Err("only bare or together, with a reason".to_owned()),
        },
        _ => Err(format!("unknown requirement @{directive}")),
    }
}

/// ```text
/// statement = side [connection] kind [SP text] / "=" [connection] SP action / "--"
/// side kind = "C:" / "C|" / "S:" / "S+" / "S-" / "M:"
/// ```
fn statement(line: &str) -> Result<(u32, Action), String> {
    if line.trim_end() == "--" {
        return Ok((1, Action::Flush));
    }
    let side = line.chars().next().unwrap_or(' ');
    let rest = line.get(side.len_utf8()..).unwrap_or_default();
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (connection, rest) = rest.split_at(digits);
    let connection = match connection {
        "" => 1,
        number => number.parse().map_err(|_| "bad number of a connection")?,
    };
    if side == '=' {
        return action(rest.trim()).map(|action| (connection, action));
    }
    let kind = rest.chars().next().unwrap_or(' ');
    let text = rest.get(kind.len_utf8()..).unwrap_or_default();
    let text = text.strip_prefix(' ').unwrap_or(text);
    let problem = |error: TemplateError| error.to_string();
    let pattern = || Template::parse_pattern(text).map_err(problem);
    let action = match (side, kind) {
        ('C', ':' | '|') => {
            let text = Template::parse(text).map_err(problem)?;
            Action::Send {
                text,
                line_end: kind == ':',
            }
        }
        ('S', ':') => Action::Line(pattern()?),
        ('S', '+') => Action::Has(pattern()?),
        ('S', '-') => Action::HasNot(pattern()?),
        ('M', ':') => Action::Message(pattern()?),
        _ => return Err("not a line of a script".to_owned()),
    };
    Ok((connection, action))
}

fn action(text: &str) -> Result<Action, String> {
    let mut words = text.split_ascii_whitespace();
    let problem = |error: TemplateError| error.to_string();
    let action = match (words.next(), words.next(), words.next()) {
        (Some("wait"), Some(time), None) => {
            let span: Span = time.parse().map_err(|_| format!("{time} is no time"))?;
            Action::Wait(span.duration())
        }
        (Some("tls"), None, None) => Action::Tls,
        (Some("closed"), None, None) => Action::Closed,
        (Some("close"), None, None) => Action::Close,
        (Some("silent"), None, None) => Action::Silent,
        (Some("shut-down"), None, None) => Action::ShutDown,
        (Some("scram"), Some(user), Some(password)) => Action::Scram {
            user: Template::parse(user).map_err(problem)?,
            password: Template::parse(password).map_err(problem)?,
        },
        _ => return Err(format!("unknown action {text}")),
    };
    match words.next() {
        None => Ok(action),
        Some(word) => Err(format!("{word} is too much")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        Script::parse("x", text).unwrap_err().to_string()
    }

    #[test]
    fn reads_every_kind_of_line() {
        let text = "# RFC\n@peer no-relay\n@limit errors_max 3\n@only bare it is so\n\n\
            S: 220 *\nC: NOOP\nC2| a\\r\n--\nS2+ SIZE *\nS2- DSN\n= wait 5m\n=2 tls\n= closed\n\
            = close\n= silent\n= shut-down\n= scram $u p\nM: from <>\n";
        let script = Script::parse("x", text).unwrap();
        assert_eq!(script.requirements.len(), 3);
        assert_eq!(script.statements.len(), 14);
        assert_eq!(script.statements[2].connection, 2);
        assert_eq!(script.statements[2].line, 8);
    }

    #[test]
    fn names_the_bad_line() {
        assert_eq!(
            problem("S: a\n@peer relay\n"),
            "x:2: a requirement must stand before the first line"
        );
        for (text, says) in [
            ("X: a", "not a line"),
            ("C a", "not a line"),
            ("@peer king", "unknown right"),
            ("@limit x", "needs"),
            ("@only", "reason"),
            ("@what", "unknown requirement"),
            ("= dance", "unknown action"),
            ("= wait", "unknown action"),
            ("= wait soon", "no time"),
            ("C: \\q", "escape"),
            ("S99999999999: a", "number"),
        ] {
            let problem = problem(text);
            assert!(
                problem.starts_with("x:1: ") && problem.contains(says),
                "{problem}"
            );
        }
    }
}
