//! The classic command line, as cron, mail programs and scripts use it: single letters, values attached
//! or in the next word, and a good many that mean nothing any more and are taken without complaint.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// The action of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Mode {
    /// `-bm`: send the message on standard input.
    #[default]
    Send,
    /// `-bs`: speak SMTP on standard input and output.
    Smtp,
    /// `-bp`, `mailq`: list the queue.
    ListQueue,
    /// `-bv`: check whether mail for the addresses would be accepted.
    Verify,
    /// `--help`: print the usage.
    Help,
    /// `-bi`, `-I`, `newaliases`: aliases are in force at once, so nothing is to be done.
    Nothing,
}

/// The parsed options.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Options {
    pub(super) mode: Mode,
    /// `-C`: the configuration file.
    pub(super) config: Option<PathBuf>,
    /// `-F`: the sender's full name.
    pub(super) full_name: Option<String>,
    /// `-f`, `-r`: the reverse-path; empty for the null reverse-path.
    pub(super) sender: Option<String>,
    /// `-i`, `-oi`: a line of one dot does not end the message.
    pub(super) dots_are_text: bool,
    /// `-t`: recipients stand in the header.
    pub(super) read_recipients: bool,
    /// `-B8BITMIME`.
    pub(super) eight_bit: bool,
    /// `-N`: what to report, as NOTIFY has it.
    pub(super) notify: Option<String>,
    /// `-R`: how much to return, as RET has it.
    pub(super) ret: Option<&'static str>,
    /// `-V`: the envelope id, plain.
    pub(super) envid: Option<String>,
    /// `-v`: show the dialogue.
    pub(super) verbose: bool,
    pub(super) recipients: Vec<String>,
}

/// The fault of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum UsageError {
    /// Unknown option.
    Unknown(char),
    /// The option needs a value.
    NoValue(char),
    /// Value not allowed for the option.
    Value(char, String),
    /// The option belongs to another command.
    Elsewhere(String, &'static str),
    /// A word is no text.
    NotText,
}

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown(letter) => write!(f, "unknown option -{letter}"),
            Self::NoValue(letter) => write!(f, "option -{letter} needs a value"),
            Self::Value(letter, value) => write!(f, "option -{letter} does not take {value:?}"),
            Self::Elsewhere(option, command) => write!(f, "{option} is done by `{command}`"),
            Self::NotText => f.write_str("an argument is not valid UTF-8"),
        }
    }
}

impl Options {
    /// Reads the words behind the program's name, by which it was called.
    pub(super) fn parse(called: &str, words: &[OsString]) -> Result<Self, UsageError> {
        let mut options = Self {
            mode: match called {
                "mailq" => Mode::ListQueue,
                "newaliases" => Mode::Nothing,
                _ => Mode::Send,
            },
            ..Self::default()
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let octets = word.as_bytes();
            if octets == b"--" {
                break;
            }
            if octets == b"--help" {
                options.mode = Mode::Help;
                return Ok(options);
            }
            match octets.strip_prefix(b"-") {
                Some(letters) if !letters.is_empty() => options.letters(letters, &mut words)?,
                // As getopt has it with a first operand: users of sendmail put options before it.
                _ => options.recipients.push(text(octets)?),
            }
        }
        for word in words {
            options.recipients.push(text(word.as_bytes())?);
        }
        Ok(options)
    }

    /// One word of options: letters in a row, of which the last may have a value.
    fn letters<'a>(
        &mut self,
        letters: &[u8],
        words: &mut impl Iterator<Item = &'a OsString>,
    ) -> Result<(), UsageError> {
        let mut rest = letters;
        while let Some((&letter, behind)) = rest.split_first() {
            rest = behind;
            let letter = char::from(letter);
            match letter {
                'i' => self.dots_are_text = true,
                't' => self.read_recipients = true,
                'v' => self.verbose = true,
                'I' => self.mode = Mode::Nothing,
                // Gateway, verbose logs, 8-bit, me too, no alias, and other settings of long ago.
                'G' | 'U' | 'c' | 'm' | 'n' | 's' | 'w' | 'x' => {}
                'q' => return Err(elsewhere("-q", "vere queue retry")),
                // A debugging level may be attached, and only so.
                'd' | 'e' if !behind.is_empty() || letter == 'd' => return Ok(()),
                _ => {
                    let value = match behind {
                        [] => words.next().map(|word| word.as_bytes()),
                        _ => Some(behind),
                    };
                    let value = text(value.ok_or(UsageError::NoValue(letter))?)?;
                    return self.valued(letter, value);
                }
            }
        }
        Ok(())
    }

    fn valued(&mut self, letter: char, value: String) -> Result<(), UsageError> {
        match letter {
            'b' => self.mode = mode(&value)?,
            'B' => match value.to_ascii_uppercase().as_str() {
                "8BITMIME" => self.eight_bit = true,
                "7BIT" => self.eight_bit = false,
                _ => return Err(UsageError::Value(letter, value)),
            },
            'C' => self.config = Some(OsStr::new(&value).into()),
            'F' => self.full_name = Some(value),
            'f' | 'r' => self.sender = Some(bare(&value).to_owned()),
            'N' => self.notify = Some(notify(&value)?),
            'R' => {
                self.ret = Some(match value.to_ascii_lowercase().as_str() {
                    "full" => "FULL",
                    "hdrs" | "headers" => "HDRS",
                    _ => return Err(UsageError::Value(letter, value)),
                });
            }
            'V' => self.envid = Some(value),
            'o' if value == "i" => self.dots_are_text = true,
            'o' if value == "v" => self.verbose = true,
            // Other settings of `-o` and `-O`, how the mail came, alias files, error modes, hop counts,
            // log labels and files: nothing here has them.
            'o' | 'O' | 'A' | 'e' | 'h' | 'L' | 'M' | 'p' | 'X' => {}
            _ => return Err(UsageError::Unknown(letter)),
        }
        Ok(())
    }
}

fn mode(value: &str) -> Result<Mode, UsageError> {
    Ok(match value {
        "m" => Mode::Send,
        "s" => Mode::Smtp,
        "p" => Mode::ListQueue,
        "v" => Mode::Verify,
        "i" => Mode::Nothing,
        "d" | "D" | "l" => return Err(elsewhere(&format!("-b{value}"), "vere serve")),
        "t" => return Err(elsewhere("-bt", "sendmail -bv ADDRESS")),
        _ => return Err(UsageError::Value('b', value.to_owned())),
    })
}

fn elsewhere(option: &str, command: &'static str) -> UsageError {
    UsageError::Elsewhere(option.to_owned(), command)
}

/// The keywords of `-N` as NOTIFY has them (RFC 3461 section 4.1).
fn notify(value: &str) -> Result<String, UsageError> {
    let upper = value.to_ascii_uppercase();
    let known = |word: &str| matches!(word, "SUCCESS" | "FAILURE" | "DELAY");
    if upper == "NEVER" || upper.split(',').all(known) {
        return Ok(upper);
    }
    Err(UsageError::Value('N', value.to_owned()))
}

/// An address without its angle brackets.
pub(super) fn bare(address: &str) -> &str {
    let address = address.trim();
    address
        .strip_prefix('<')
        .and_then(|inner| inner.strip_suffix('>'))
        .unwrap_or(address)
}

fn text(octets: &[u8]) -> Result<String, UsageError> {
    String::from_utf8(octets.to_vec()).map_err(|_| UsageError::NotText)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, UsageError> {
        let words: Vec<_> = line.split_whitespace().map(OsString::from).collect();
        Options::parse("sendmail", &words)
    }

    fn right(line: &str) -> Options {
        parse(line).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    #[test]
    fn what_cron_mail_programs_and_languages_call_is_understood() {
        let cron = right("-FCronDaemon -i -B8BITMIME -oem root");
        assert_eq!(cron.full_name.as_deref(), Some("CronDaemon"));
        assert!(cron.dots_are_text && cron.eight_bit && !cron.read_recipients);
        assert_eq!(cron.recipients, ["root"]);
        let mutt =
            right("-oem -oi -f me@example.org -N failure,delay -R hdrs -- -odd@example.net b");
        assert_eq!(mutt.sender.as_deref(), Some("me@example.org"));
        assert_eq!(mutt.notify.as_deref(), Some("FAILURE,DELAY"));
        assert_eq!(mutt.ret, Some("HDRS"));
        assert_eq!(mutt.recipients, ["-odd@example.net", "b"]);
        let php = right("-t -i -fme@example.org");
        assert!(php.read_recipients && php.dots_are_text);
        assert_eq!(php.sender.as_deref(), Some("me@example.org"));
        let together = right("-ti -f <> -em -odb -d8.99 -Ac a");
        assert!(together.read_recipients && together.dots_are_text);
        assert_eq!(together.sender.as_deref(), Some(""));
        assert_eq!(together.recipients, ["a"]);
        assert_eq!(right("-e m -h 5 -p ESMTP:me -L tag x").recipients, ["x"]);
    }

    #[test]
    fn the_name_and_b_choose_the_mode() {
        let called = |name| Options::parse(name, &[]).expect("no options").mode;
        assert_eq!(called("mailq"), Mode::ListQueue);
        assert_eq!(called("newaliases"), Mode::Nothing);
        assert_eq!(right("-bs").mode, Mode::Smtp);
        assert_eq!(right("-bp").mode, Mode::ListQueue);
        assert_eq!(right("-b v a@b").mode, Mode::Verify);
        assert_eq!(right("-I").mode, Mode::Nothing);
        assert_eq!(right("-bp --help -k").mode, Mode::Help);
        assert_eq!(right("-- --help").recipients, ["--help"]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(parse("-f"), Err(UsageError::NoValue('f')));
        assert_eq!(parse("-k x"), Err(UsageError::Unknown('k')));
        let never = UsageError::Value('N', "never,delay".to_owned());
        assert_eq!(parse("-N never,delay"), Err(never));
        assert_eq!(
            parse("-bd").map_err(|error| error.to_string()),
            Err("-bd is done by `vere serve`".to_owned())
        );
    }
}
