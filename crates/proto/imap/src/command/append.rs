//! APPEND (RFC 9051 section 6.3.12).

use crate::date::{self, DateTime};
use crate::flags::Flag;

use super::cursor::{Cursor, Result, expected};
use super::{Command, flag};

/// APPEND.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendCommand {
    /// Where to.
    pub mailbox: String,
    /// With which flags.
    pub flags: Vec<Flag>,
    /// Time of receipt; the present time if absent.
    pub date: Option<DateTime>,
    /// Whether the message came as `literal8` (RFC 3516) and may hold NUL.
    pub binary: bool,
    /// Octets of the message: it ends where the command does, but for a `)`.
    pub octets: usize,
    /// Octets of the command behind the message.
    pub behind: usize,
}

/// `append = "APPEND" SP mailbox [SP flag-list] [SP date-time] SP (literal / literal8 / append-ext)`.
pub(super) fn append(cursor: &mut Cursor<'_>) -> Result<Command> {
    let mailbox = cursor.mailbox()?;
    cursor.space()?;
    let flags = if cursor.peek() == Some(b'(') {
        let flags = cursor.list(true, flag)?;
        cursor.space()?;
        flags
    } else {
        Vec::new()
    };
    let date = if cursor.peek() == Some(b'"') {
        let text = cursor.string()?;
        cursor.space()?;
        match date::parse_date_time(&text) {
            Some(date) => Some(date),
            None => return expected("a date and time"),
        }
    } else {
        None
    };
    // `UTF8 (~{...}` is how a message with UTF-8 in its header comes (RFC 6855 section 4).
    let wrapped = cursor.eat_word("UTF8 (");
    let binary = cursor.eat(b'~');
    let octets = cursor.literal()?.len();
    let behind = cursor.rest().len();
    if wrapped {
        cursor.expect(b')', "the end of the message")?;
    }
    Ok(Command::Append(AppendCommand {
        mailbox,
        flags,
        date,
        binary,
        octets,
        behind,
    }))
}
