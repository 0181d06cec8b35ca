//! mbox: messages in sequence, each behind a line that begins with `From ` (RFC 4155).
//!
//! The variants differ in the treatment of lines of the message itself that begin with `From `: *mboxo* puts `>`
//! before such lines, *mboxrd* before `>From ` as well, so that the mark can be removed again, *mboxcl* writes the
//! length in `Content-Length` too, *mboxcl2* only the length. Flags are in `Status`, `X-Status` and `X-Keywords`,
//! fields of the file and not of the message: reading removes these fields.

mod arrival;
mod from_line;
mod header;
mod scan;
mod source;
mod target;

pub(super) use source::Source;
pub(super) use target::Target;

/// Quoting of lines that begin with `From `.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Variant {
    /// Detect the variant: `Content-Length` where the length is right, without quoting; else mboxrd.
    #[default]
    Auto,
    /// `>From ` stands for `From `; `>>From ` for itself.
    Mboxo,
    /// A further `>` before `From `, `>From `, `>>From ` and all deeper quotes.
    Mboxrd,
    /// Quoted as in mboxrd, and the length is in `Content-Length`.
    Mboxcl,
    /// The length in `Content-Length`, without quoting.
    Mboxcl2,
}

impl Variant {
    const fn uses_length(self) -> bool {
        matches!(self, Self::Auto | Self::Mboxcl | Self::Mboxcl2)
    }

    /// The line before its quoting; `by_length` reports that `Content-Length` gave the message's end.
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

/// The rest of a line behind its quote marks.
fn behind_marks(line: &[u8]) -> &[u8] {
    let begin = line.iter().position(|octet| *octet != b'>');
    &line[begin.unwrap_or(line.len())..]
}
