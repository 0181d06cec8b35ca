//! LIST (RFC 9051 section 6.3.9, RFC 5258, RFC 5819, RFC 6154) and LSUB.

use crate::limits::{LIST_PATTERNS_MAX, LIST_PATTERNS_OCTETS_MAX};

use super::cursor::{Cursor, Result, expected, is_atom_char};
use super::mailbox::{StatusItem, status_items};
use super::{Command, CommandError};

/// The selection options of LIST.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListSelection {
    /// Selects subscribed mailboxes, including names without a mailbox.
    pub subscribed: bool,
    /// Selects remote mailboxes too; this server has no remote mailboxes.
    pub remote: bool,
    /// Selects parents of subscribed mailboxes too.
    pub recursive_match: bool,
    /// Selects mailboxes with a special use.
    pub special_use: bool,
}

/// The return options of LIST.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListReturn {
    /// Returns the subscription.
    pub subscribed: bool,
    /// Returns whether the mailbox has children.
    pub children: bool,
    /// Its special use.
    pub special_use: bool,
    /// These numbers.
    pub status: Vec<StatusItem>,
}

/// LIST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListCommand {
    /// The options in front, where there are any.
    pub selection: Option<ListSelection>,
    /// The reference name before the patterns.
    pub reference: String,
    /// The patterns.
    pub patterns: Vec<String>,
    /// The options behind, where there are any.
    pub returns: Option<ListReturn>,
}

/// `list = "LIST" [SP list-select-opts] SP mailbox SP mbox-or-pat [SP list-return-opts]`.
pub(super) fn list(cursor: &mut Cursor<'_>) -> Result<Command> {
    let selection = if cursor.peek() == Some(b'(') {
        let selection = selection(cursor)?;
        cursor.space()?;
        Some(selection)
    } else {
        None
    };
    let reference = cursor.mailbox()?;
    cursor.space()?;
    let patterns = if cursor.peek() == Some(b'(') {
        patterns(cursor, &reference)?
    } else {
        vec![pattern(cursor)?]
    };
    let returns = if cursor.eat(b' ') {
        if !cursor.eat_word("RETURN ") {
            return expected("RETURN");
        }
        Some(returns(cursor)?)
    } else {
        None
    };
    Ok(Command::List(ListCommand {
        selection,
        reference,
        patterns,
        returns,
    }))
}

/// `lsub = "LSUB" SP mailbox SP list-mailbox`.
pub(super) fn lsub(cursor: &mut Cursor<'_>) -> Result<Command> {
    let reference = cursor.mailbox()?;
    cursor.space()?;
    Ok(Command::Lsub {
        reference,
        pattern: pattern(cursor)?,
    })
}

/// A pattern without matches: no mailbox name has control characters.
const NOTHING: &str = "\0";

/// `list-mailbox = 1*(ATOM-CHAR / list-wildcards / resp-specials) / string`.
fn pattern(cursor: &mut Cursor<'_>) -> Result<String> {
    match written_pattern(cursor) {
        // A pattern that cannot be decoded matches no mailbox name.
        Err(CommandError::NameEncoding) => Ok(NOTHING.to_owned()),
        pattern => pattern,
    }
}

fn written_pattern(cursor: &mut Cursor<'_>) -> Result<String> {
    if matches!(cursor.peek(), Some(b'"' | b'{')) {
        return cursor.mailbox();
    }
    let text = cursor.take_while(|octet| is_atom_char(octet) || b"%*]".contains(&octet));
    if text.is_empty() {
        return expected("a pattern of mailbox names");
    }
    cursor.mailbox_name(text)
}

/// Reads several patterns, up to the limits of their number and total length.
fn patterns(cursor: &mut Cursor<'_>, reference: &str) -> Result<Vec<String>> {
    let mut patterns = Vec::new();
    let mut octets: usize = 0;
    cursor.list(false, |cursor| {
        let pattern = pattern(cursor)?;
        octets = octets
            .saturating_add(reference.len())
            .saturating_add(pattern.len());
        if patterns.len() >= LIST_PATTERNS_MAX {
            return Err(CommandError::TooMany("more than 16 patterns"));
        }
        if octets > LIST_PATTERNS_OCTETS_MAX {
            return Err(CommandError::TooMany(
                "more than 2500 octets of patterns, counting the reference before each pattern",
            ));
        }
        patterns.push(pattern);
        Ok(())
    })?;
    Ok(patterns)
}

fn selection(cursor: &mut Cursor<'_>) -> Result<ListSelection> {
    let mut options = ListSelection::default();
    cursor.list(true, |cursor| {
        match cursor
            .atom("a selection option")?
            .to_ascii_uppercase()
            .as_str()
        {
            "SUBSCRIBED" => options.subscribed = true,
            "REMOTE" => options.remote = true,
            "RECURSIVEMATCH" => options.recursive_match = true,
            "SPECIAL-USE" => options.special_use = true,
            _ => return expected("a selection option"),
        }
        Ok(())
    })?;
    // RECURSIVEMATCH only widens another option (RFC 5258 section 3).
    if options.recursive_match && !options.subscribed && !options.special_use {
        return expected("an option beside RECURSIVEMATCH");
    }
    Ok(options)
}

fn returns(cursor: &mut Cursor<'_>) -> Result<ListReturn> {
    let mut options = ListReturn::default();
    cursor.list(true, |cursor| {
        match cursor
            .atom("a return option")?
            .to_ascii_uppercase()
            .as_str()
        {
            "SUBSCRIBED" => options.subscribed = true,
            "CHILDREN" => options.children = true,
            "SPECIAL-USE" => options.special_use = true,
            "STATUS" => {
                cursor.space()?;
                options.status = status_items(cursor)?;
            }
            _ => return expected("a return option"),
        }
        Ok(())
    })?;
    Ok(options)
}
