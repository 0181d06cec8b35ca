//! `vere sendmail`: sends mail from the programs and users of this machine, with the command line that
//! every Unix program knows. The program is also this when it is called `sendmail`, `mailq` or
//! `newaliases`.
//!
//! Reading order: `options` (the command line), `message` (what a program wrote, and whom it names),
//! `dialogue` (the conversation with the gateway). The page for users is `docs/sendmail.md`.

mod dialogue;
mod mailq;
mod message;
mod options;
mod usage;

use std::ffi::OsString;
use std::fmt;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use nix::unistd::{User, getuid};
use vere_settings::Settings;
use vere_smtp::address::AddrSpec;
use vere_smtp::command::Xtext;

use self::dialogue::{Dialogue, Refused, Submission};
use self::message::Prepared;
use self::options::{Mode, Options, UsageError, bare};
use self::usage::usage;
pub use self::usage::{EXIT_CODES, OPTIONS, SYNOPSIS};
use vere_process::config;

/// Where the gateway is looked for by users who may not read the settings.
const DEFAULT_SOCKET: &str = "/run/vere/sendmail.sock";
/// The default settings file. No file below the working directory: any user may own that directory.
const DEFAULT_CONFIG: &str = "/etc/vere/vere.toml";
/// Octets read of a message, the largest that any setting allows.
const INPUT_MAX: u64 = 1 << 30;
/// Longest wait for an absent system, which may just be restarting.
const START_PATIENCE: Duration = Duration::from_secs(10);
/// Pause between two attempts to connect.
const START_PAUSE: Duration = Duration::from_millis(100);
/// Longest wait for an answer: longer than the gateway waits for its spool nodes.
const ANSWER_PATIENCE: Duration = Duration::from_secs(120);

/// The exit codes of sysexits.h, which callers know.
mod exit {
    pub(crate) const USAGE: u8 = 64;
    pub(crate) const DATA: u8 = 65;
    pub(crate) const NO_USER: u8 = 67;
    pub(crate) const UNAVAILABLE: u8 = 69;
    pub(crate) const OS: u8 = 71;
    pub(crate) const IO: u8 = 74;
    pub(crate) const TEMPORARY: u8 = 75;
    pub(crate) const PROTOCOL: u8 = 76;
    pub(crate) const CONFIG: u8 = 78;
}

/// Whether the program is to be this one: by the name it is called, or by its first argument. Gives the
/// name and the words behind it.
pub fn called(arguments: &[OsString]) -> Option<(String, Vec<OsString>)> {
    let (program, words) = arguments.split_first()?;
    let name = Path::new(program).file_name()?.to_str()?;
    if matches!(name, "sendmail" | "mailq" | "newaliases") {
        return Some((name.to_owned(), words.to_vec()));
    }
    let (first, words) = words.split_first()?;
    (first == "sendmail").then(|| ("sendmail".to_owned(), words.to_vec()))
}

/// Runs the command of the arguments.
pub fn run(name: &str, words: &[OsString]) -> ExitCode {
    let done = Options::parse(name, words)
        .map_err(Failed::from)
        .and_then(|options| obey(&options));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            let _ = writeln!(io::stderr(), "{name}: {failed}");
            ExitCode::from(failed.code)
        }
    }
}

/// Checks a command line of `vere sendmail`.
///
/// # Errors
/// The fault of the command line.
pub fn understands(words: &[OsString]) -> Result<(), impl fmt::Display> {
    Options::parse("sendmail", words).map(drop)
}

/// The reason why no message was sent, and the exit code.
#[derive(Debug)]
struct Failed {
    code: u8,
    text: String,
}

impl Failed {
    fn new(code: u8, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
        }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<UsageError> for Failed {
    fn from(error: UsageError) -> Self {
        Self::new(exit::USAGE, error.to_string())
    }
}

impl From<Refused> for Failed {
    fn from(refused: Refused) -> Self {
        let code = match &refused {
            Refused::Reply { reply, .. } if reply.is_transient() => exit::TEMPORARY,
            Refused::Reply {
                recipient: true, ..
            } => exit::NO_USER,
            Refused::Reply { .. } => exit::UNAVAILABLE,
            Refused::Broken(_) => exit::TEMPORARY,
            Refused::Protocol(_) => exit::PROTOCOL,
        };
        let nothing = "; nothing was sent to anybody";
        Self::new(code, format!("{refused}{nothing}"))
    }
}

fn obey(options: &Options) -> Result<(), Failed> {
    match options.mode {
        Mode::Send => send(options),
        Mode::Smtp => bridge(options),
        Mode::ListQueue => list_queue(options),
        Mode::Verify => verify(options),
        Mode::Nothing => Ok(()),
        Mode::Help => {
            // A closed reader needs no help.
            let _ = io::stdout().write_all(usage().as_bytes());
            Ok(())
        }
    }
}

fn send(options: &Options) -> Result<(), Failed> {
    if options.recipients.is_empty() && !options.read_recipients {
        let text = "nobody to send to: name recipients, or use -t to take them from the header";
        return Err(Failed::new(exit::USAGE, text));
    }
    let user = Person::current()?;
    let mut input = Vec::new();
    io::stdin()
        .take(INPUT_MAX + 1)
        .read_to_end(&mut input)
        .map_err(|error| Failed::new(exit::IO, format!("cannot read the message: {error}")))?;
    if input.len() as u64 > INPUT_MAX {
        return Err(Failed::new(exit::DATA, "the message is larger than 1 GiB"));
    }
    let mut message = message::prepare(&input, options.dots_are_text);
    let mut dialogue = Dialogue::begin(connect(options)?, options.verbose)?;
    let domain = dialogue.domain().to_owned();
    let recipients = recipients(options, &message, &domain)?;
    let sender = sender(options, &user, &domain)?;
    if !message.has_from {
        let author = if sender.is_empty() {
            complete(&user.login, &domain)
        } else {
            sender.clone()
        };
        let name = options.full_name.as_deref().unwrap_or(&user.full_name);
        message.add_field("From", &message::from_value(name, &author));
    }
    dialogue.envelope(&Submission {
        sender: &sender,
        recipients: &recipients,
        notify: options.notify.as_deref(),
        ret: options.ret,
        envid: options.envid.as_ref().map(|id| xtext(id)),
        eight_bit: options.eight_bit || message.eight_bit,
    })?;
    dialogue.message(&message.octets)?;
    Ok(())
}

fn xtext(plain: &str) -> String {
    Xtext::encode(plain.as_bytes()).as_str().to_owned()
}

/// The recipients of the command line, and with `-t` of the header; each once.
fn recipients(options: &Options, message: &Prepared, domain: &str) -> Result<Vec<String>, Failed> {
    let named = options.read_recipients.then_some(&message.named);
    let mut recipients: Vec<String> = Vec::new();
    for address in options.recipients.iter().chain(named.into_iter().flatten()) {
        let address = checked(bare(address), domain)?;
        if !recipients.contains(&address) {
            recipients.push(address);
        }
    }
    if recipients.is_empty() {
        return Err(Failed::new(
            exit::USAGE,
            "the header names nobody to send to",
        ));
    }
    Ok(recipients)
}

fn sender(options: &Options, user: &Person, domain: &str) -> Result<String, Failed> {
    match options.sender.as_deref() {
        Some("") => Ok(String::new()),
        Some(address) => checked(address, domain),
        None => checked(&user.login, domain),
    }
}

/// Appends the domain to an address without a domain.
fn complete(address: &str, domain: &str) -> String {
    // An `@` may stand in a quoted local part.
    let behind_quote = address.rfind('"').map_or(0, |end| end + 1);
    if address[behind_quote..].contains('@') {
        address.to_owned()
    } else {
        format!("{address}@{domain}")
    }
}

/// A complete address in its canonical form.
fn checked(address: &str, domain: &str) -> Result<String, Failed> {
    let whole = complete(address, domain);
    match AddrSpec::parse(&whole) {
        Ok(parsed) => Ok(parsed.as_str().to_owned()),
        Err(error) => Err(Failed::new(exit::DATA, format!("{address:?}: {error}"))),
    }
}

/// The calling user.
struct Person {
    login: String,
    full_name: String,
}

impl Person {
    fn current() -> Result<Self, Failed> {
        let user = User::from_uid(getuid());
        let user = user.map_err(|error| Failed::new(exit::OS, format!("who calls? {error}")))?;
        let Some(user) = user else {
            // Containers run programs under user ids without a name.
            return Ok(Self {
                login: format!("uid{}", getuid()),
                full_name: String::new(),
            });
        };
        let gecos = user.gecos.to_string_lossy();
        let name = gecos.split(',').next().unwrap_or_default();
        Ok(Self {
            // The meaning that the field's inventors gave to `&`.
            full_name: name.replace('&', &capitalised(&user.name)),
            login: user.name,
        })
    }
}

fn capitalised(name: &str) -> String {
    let mut characters = name.chars();
    let first = characters.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(characters).collect()
}

/// The settings, if the user may read a settings file.
fn settings(options: &Options) -> Result<Option<std::sync::Arc<Settings>>, Failed> {
    let named = options.config.clone().or_else(|| {
        let path = std::env::var_os("VERE_CONFIG").filter(|path| !path.is_empty());
        path.map(PathBuf::from)
    });
    let is_named = named.is_some();
    let path = named.unwrap_or_else(|| DEFAULT_CONFIG.into());
    match std::fs::File::open(&path) {
        Err(error) if !is_named && error.kind() != ErrorKind::Other => Ok(None),
        _ => config::read(&path)
            .map(Some)
            .map_err(|error| Failed::new(exit::CONFIG, error.to_string())),
    }
}

fn connect(options: &Options) -> Result<UnixStream, Failed> {
    let socket = match settings(options)? {
        None => DEFAULT_SOCKET.into(),
        Some(settings) => match &settings.sendmail {
            Some(sendmail) => sendmail.socket.clone(),
            None => {
                let text = "the settings have no [sendmail], so no mail is taken from this machine";
                return Err(Failed::new(exit::CONFIG, text));
            }
        },
    };
    let began = Instant::now();
    loop {
        match UnixStream::connect(&socket) {
            Ok(stream) => {
                let patience = Some(ANSWER_PATIENCE);
                let set = stream.set_read_timeout(patience);
                set.and_then(|()| stream.set_write_timeout(patience))
                    .map_err(|error| Failed::new(exit::OS, error.to_string()))?;
                return Ok(stream);
            }
            Err(error) if began.elapsed() >= START_PATIENCE => {
                let text = format!(
                    "the mail system does not run (nobody listens on {}: {error}); nothing was sent",
                    socket.display()
                );
                return Err(Failed::new(exit::TEMPORARY, text));
            }
            Err(_) => std::thread::sleep(START_PAUSE),
        }
    }
}

/// Octets of standard input to the gateway, and its octets to standard output, until either ends.
fn bridge(options: &Options) -> Result<(), Failed> {
    let failed = |error: io::Error| Failed::new(exit::IO, error.to_string());
    let mut from = connect(options)?;
    // The client decides how long it thinks.
    from.set_read_timeout(None).map_err(failed)?;
    let mut to = from.try_clone().map_err(failed)?;
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin(), &mut to);
        // What is on the way back still comes.
        let _ = to.shutdown(std::net::Shutdown::Write);
    });
    let mut out = io::stdout();
    let mut buffer = [0; 16 * 1024];
    loop {
        match from.read(&mut buffer).map_err(failed)? {
            0 => return Ok(()),
            octets => {
                out.write_all(&buffer[..octets]).map_err(failed)?;
                out.flush().map_err(failed)?;
            }
        }
    }
}

fn verify(options: &Options) -> Result<(), Failed> {
    let mut result = Ok(());
    for address in &options.recipients {
        let mut dialogue = Dialogue::begin(connect(options)?, options.verbose)?;
        let domain = dialogue.domain().to_owned();
        let recipients = [checked(bare(address), &domain)?];
        let answer = dialogue.envelope(&Submission {
            sender: "",
            recipients: &recipients,
            notify: None,
            ret: None,
            envid: None,
            eight_bit: false,
        });
        let line = match answer {
            Ok(()) => format!("{} ... deliverable", recipients[0]),
            Err(refused) => {
                let line = format!("{address} ... not deliverable: {refused}");
                result = Err(Failed {
                    text: format!("{address} is not deliverable"),
                    ..Failed::from(refused)
                });
                line
            }
        };
        writeln!(io::stdout(), "{line}")
            .map_err(|error| Failed::new(exit::IO, error.to_string()))?;
    }
    result
}

fn list_queue(options: &Options) -> Result<(), Failed> {
    let settings = settings(options)?.ok_or_else(|| {
        let text = format!("cannot read {DEFAULT_CONFIG}: only those who may can list the queue");
        Failed::new(exit::CONFIG, text)
    })?;
    let text = mailq::list(&settings)
        .map_err(|error| Failed::new(exit::UNAVAILABLE, error.to_string()))?;
    io::stdout()
        .write_all(text.as_bytes())
        .map_err(|error| Failed::new(exit::IO, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn the_name_of_the_program_chooses_what_it_is() {
        let name = |line: &str| called(&words(line)).map(|(name, words)| (name, words.len()));
        assert_eq!(
            name("/usr/sbin/sendmail -t -i"),
            Some(("sendmail".to_owned(), 2))
        );
        assert_eq!(name("mailq"), Some(("mailq".to_owned(), 0)));
        assert_eq!(name("newaliases -v"), Some(("newaliases".to_owned(), 1)));
        assert_eq!(name("vere sendmail -- a"), Some(("sendmail".to_owned(), 2)));
        assert_eq!(name("vere serve"), None);
        assert_eq!(name("vere"), None);
    }

    #[test]
    fn recipients_are_completed_and_counted_once() {
        let options = Options {
            read_recipients: true,
            recipients: vec!["root".to_owned(), "<a@B.example>".to_owned()],
            ..Options::default()
        };
        let message = Prepared {
            named: vec!["a@b.example".to_owned(), "c@d.example".to_owned()],
            ..Prepared::default()
        };
        let found = recipients(&options, &message, "h.example").expect("addresses");
        assert_eq!(found, ["root@h.example", "a@b.example", "c@d.example"]);
        let broken = Options {
            recipients: vec!["a b@c d".to_owned()],
            ..Options::default()
        };
        let failed = recipients(&broken, &Prepared::default(), "h").expect_err("no address");
        assert_eq!(failed.code, exit::DATA);
    }

    #[test]
    fn a_domain_is_added_where_there_is_none() {
        assert_eq!(complete("root", "h.example"), "root@h.example");
        assert_eq!(complete("a@b", "h.example"), "a@b");
        assert_eq!(complete("\"a@b\"", "h.example"), "\"a@b\"@h.example");
    }

    #[test]
    fn the_full_name_may_stand_for_the_login() {
        assert_eq!(capitalised("eric"), "Eric");
        assert_eq!(capitalised(""), "");
    }
}
