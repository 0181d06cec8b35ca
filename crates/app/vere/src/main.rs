//! `vere`: a whole mail system. The program links every process, the supervisor, its roles and the commands; the
//! table in [`roles`] has their functions.
//!
//! Reading order: `vere-cli` (the command line), then the crates of the processes: `vere-supervisor` (starts the roles),
//! `vere-role-gateway` (the path of a message), `vere-role-store` (the mailboxes), `vere-role-node` (the spool) and
//! `vere-role-signer` (the private keys). `vere-sendmail` takes mail from local programs, `vere-transfer` imports and
//! exports mail; the commands reach a running gateway through `vere-control`.

mod colour;
mod roles;

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use vere_process::outcome::Outcome;

use roles::ROLES;

/// Beside thousands of connections the C library's took up to a sixth of a gateway's time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    // Before the usual parser, which does not know the classic command line.
    if let Some((name, words)) = vere_sendmail::called(&arguments) {
        return vere_sendmail::run(&name, &words);
    }
    // mount(8) calls its helpers by name.
    if let Some(words) = vere_mount::fstab::called(&arguments) {
        return vere_mount::fstab::run(&words);
    }
    match vere_cli::run(vere_cli::parse(config_behind(arguments)), &ROLES) {
        Ok(Outcome::Print(text)) => print(&text, ExitCode::SUCCESS),
        Ok(Outcome::Report(text, code)) => print(&text, code),
        Ok(Outcome::Exit(code)) => code,
        Err(failure) => failed(&failure.to_string()),
    }
}

fn failed(text: &str) -> ExitCode {
    // A failure to write the error text cannot be reported anywhere.
    let _ = writeln!(io::stderr(), "vere: {}", harmless(text));
    ExitCode::FAILURE
}

/// Moves `-c FILE` from before the command to behind the command, where each command with the option looks for the
/// option.
fn config_behind(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let words = match arguments.get(1).and_then(|word| word.to_str()) {
        Some("-c" | "--config") => 2,
        Some(word) if word.starts_with("-c") || word.starts_with("--config=") => 1,
        _ => return arguments,
    };
    // To sendmail `-c` is something else.
    if arguments
        .get(1 + words)
        .is_some_and(|command| command != "sendmail")
    {
        arguments[1..=1 + words].rotate_right(1);
    }
    arguments
}

/// Prints a command's result and returns the code of the command, or of a failure to print.
fn print(text: &str, code: ExitCode) -> ExitCode {
    let text = harmless(text);
    let text = match colour::is_wanted() {
        true => Cow::Owned(colour::painted(&text)),
        false => text,
    };
    match write(&text, &mut io::stdout()) {
        Ok(()) => code,
        Err(error) => failed(&format!("standard output: {error}")),
    }
}

/// Writes a text whole; a closed reader (`| head`) is no failure.
fn write(text: &str, out: &mut impl io::Write) -> io::Result<()> {
    // The text behind the last line break stays in a buffer, and errors at the exit go unseen.
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// The text without control characters of a terminal: much of the text comes from messages and other hosts.
fn harmless(text: &str) -> Cow<'_, str> {
    let steers = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    if text.contains(steers) {
        return Cow::Owned(text.replace(steers, "?"));
    }
    Cow::Borrowed(text)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{ErrorKind, LineWriter};

    use super::{OsString, config_behind, harmless, io, write};

    #[test]
    fn a_full_disk_is_a_failure_and_a_closed_reader_is_none() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        // As standard output does, the writer keeps what is behind the last line break.
        let mut full = LineWriter::new(full);
        for text in ["a line\n", "no line break"] {
            let kind = write(text, &mut full).map_err(|error| error.kind());
            assert_eq!(kind, Err(ErrorKind::StorageFull), "{text}");
        }
        let (reader, mut writer) = io::pipe().unwrap();
        drop(reader);
        assert!(write("a line\n", &mut writer).is_ok());
    }

    #[test]
    fn what_other_hosts_say_does_not_steer_the_terminal() {
        assert_eq!(
            harmless("451 \u{1b}[2Jlater\u{9b}x\r\n"),
            "451 ?[2Jlater?x?\n"
        );
        let plain = "a\tb\nüñ\n";
        assert!(matches!(harmless(plain), std::borrow::Cow::Borrowed(text) if text == plain));
    }

    #[test]
    fn the_configuration_may_stand_before_the_command() {
        let moved = |line: &str| {
            let words = config_behind(line.split(' ').map(OsString::from).collect());
            let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
            words.join(" ")
        };
        assert_eq!(moved("vere -c F account list"), "vere account -c F list");
        assert_eq!(moved("vere --config F serve"), "vere serve --config F");
        assert_eq!(moved("vere --config=F serve x"), "vere serve --config=F x");
        assert_eq!(moved("vere -cF serve"), "vere serve -cF");
        assert_eq!(moved("vere -c F sendmail"), "vere -c F sendmail");
        for same in [
            "vere",
            "vere -c",
            "vere -c F",
            "vere -cF",
            "vere serve -c F",
        ] {
            assert_eq!(moved(same), same);
        }
    }
}
