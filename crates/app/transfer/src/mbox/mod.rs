//! mbox: messages one after the other, each behind a line that begins with `From ` (RFC 4155).
//!
//! The variants differ in how a line of the message itself that begins so is told apart: *mboxo* puts `>`
//! before it, *mboxrd* before `>From ` as well, so that it can be taken away again, *mboxcl* says the
//! length in `Content-Length` too, *mboxcl2* only there. Flags stand in `Status`, `X-Status` and
//! `X-Keywords`, which are the file's fields and not the message's: they are left out when it is read.

mod arrival;
mod from_line;
mod header;
mod scan;
mod source;
mod target;

pub(super) use source::Source;
pub(super) use target::Target;

/// How lines that begin with `From ` are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Variant {
    /// By what is found: `Content-Length` where it is right, and there no quoting; else as mboxrd.
    #[default]
    Auto,
    /// `>From ` stands for `From `; `>>From ` for itself.
    Mboxo,
    /// One `>` goes before `From `, `>From ` and so on.
    Mboxrd,
    /// Quoted as in mboxrd, and the length is in `Content-Length`.
    Mboxcl,
    /// The length is in `Content-Length`, nothing is quoted.
    Mboxcl2,
}

impl Variant {
    const fn uses_length(self) -> bool {
        matches!(self, Self::Auto | Self::Mboxcl | Self::Mboxcl2)
    }

    /// The line as it was before it was quoted; `by_length` tells how the message's end was found.
    fn unquoted(self, line: &[u8], by_length: bool) -> &[u8] {
        let rest = behind_marks(line);
        if !rest.starts_with(b"From ") || rest.len() == line.len() {
            return line;
        }
        let quoted_once = line.len() - rest.len() == 1;
        let is_quoted = match self {
            Self::Auto => !by_length,
            Self::Mboxo => quoted_once,
            Self::Mboxrd | Self::Mboxcl => true,
            Self::Mboxcl2 => false,
        };
        if is_quoted { &line[1..] } else { line }
    }
}

/// What stands behind the marks that a line begins with.
fn behind_marks(line: &[u8]) -> &[u8] {
    let begin = line.iter().position(|octet| *octet != b'>');
    &line[begin.unwrap_or(line.len())..]
}
