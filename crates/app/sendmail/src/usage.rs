//! The classic command line in words: for `--help` and the manual page. `docs/sendmail.md` tells more.

use std::fmt::Write as _;

/// The ways to call it.
pub const SYNOPSIS: [&str; 4] = [
    "vere sendmail [OPTION...] [RECIPIENT...]",
    "sendmail [OPTION...] [RECIPIENT...]",
    "mailq",
    "newaliases",
];

/// Options with their meaning.
pub const OPTIONS: [(&str, &str); 16] = [
    (
        "-bm",
        "send the message on standard input (without another -b)",
    ),
    ("-bs", "speak SMTP on standard input and output"),
    ("-bp, mailq", "list the messages that wait"),
    (
        "-bv",
        "say whether mail for the recipients would be taken; send nothing",
    ),
    (
        "-bi, -I, newaliases",
        "nothing: aliases are in force at once",
    ),
    ("-t", "take recipients from To, Cc and Bcc too"),
    ("-i, -oi", "a line with one dot does not end the message"),
    ("-f, -r ADDRESS", "the reverse-path; <> for none"),
    ("-F NAME", "the full name in a From that is added"),
    (
        "-N WHAT",
        "reports wanted: never, or some of success,failure,delay",
    ),
    ("-R full|hdrs", "how much of the message a report returns"),
    ("-V TEXT", "the envelope id that reports come with"),
    ("-B 8BITMIME|7BIT", "what the body is; found out without it"),
    (
        "-C FILE",
        "the settings; else $VERE_CONFIG, /etc/vere/vere.toml",
    ),
    ("-v", "show the dialogue"),
    ("--", "what follows are recipients"),
];

/// Exit codes (sysexits.h).
pub const EXIT_CODES: [(&str, &str); 9] = [
    ("0", "the message is safe"),
    ("64", "the command line is wrong, or names nobody"),
    (
        "65",
        "an address is none, or the message is too large to be read",
    ),
    ("67", "a recipient does not exist or is refused"),
    ("69", "the message is refused; the queue cannot be listed"),
    ("71, 74", "the machine's own trouble: users, input, output"),
    ("75", "not now: try again later"),
    ("76", "what answers at the socket is no mail system"),
    ("78", "the settings are wrong, or have no section for this"),
];

/// The text of `--help`.
pub(super) fn usage() -> String {
    let mut text = String::from("Sends the message on standard input.\n\n");
    for line in SYNOPSIS {
        let _ = writeln!(text, "    {line}");
    }
    text.push('\n');
    for (option, meaning) in OPTIONS {
        let _ = writeln!(text, "  {option:<21}{meaning}");
    }
    text.push_str("\nIt exits 0 when the message is safe, 75 to be tried again later, else as sysexits.h says.\n");
    text
}
