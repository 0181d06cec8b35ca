//! Commands without arguments, commands whose arguments are ignored, and unknown commands.

use super::{Command, CommandError};

/// Parses a verb in upper case with its argument.
pub(super) fn parse(verb: &[u8], argument: &str) -> Result<Command, CommandError> {
    let bare = |command, usage| {
        if argument.is_empty() {
            Ok(command)
        } else {
            Err(CommandError::Usage(usage))
        }
    };
    let with_string = |command, usage| {
        if argument.is_empty() {
            Err(CommandError::Usage(usage))
        } else {
            Ok(command)
        }
    };
    match verb {
        b"DATA" => bare(Command::Data, "DATA"),
        b"RSET" => bare(Command::Rset, "RSET"),
        b"QUIT" => bare(Command::Quit, "QUIT"),
        b"STARTTLS" => bare(Command::StartTls, "STARTTLS"),
        b"NOOP" => Ok(Command::Noop),
        b"HELP" => Ok(Command::Help),
        b"VRFY" => with_string(Command::Vrfy, "VRFY string"),
        b"EXPN" => with_string(Command::Expn, "EXPN string"),
        b"SEND" | b"SOML" | b"SAML" | b"TURN" | b"ETRN" | b"ATRN" => {
            Err(CommandError::NotImplemented)
        }
        // A browser or proxy misused to talk to the server: an attacker chose the following lines,
        // which must not run as commands.
        b"GET" | b"POST" | b"PUT" | b"HEAD" | b"CONNECT" | b"OPTIONS" => {
            Err(CommandError::OtherProtocol)
        }
        _ => Err(CommandError::Unrecognized),
    }
}
