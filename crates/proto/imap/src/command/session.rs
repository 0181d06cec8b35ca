//! Commands about the session itself.

use vere_units::Secret;

use crate::limits::ID_PAIRS_MAX;

use super::Command;
use super::cursor::{Cursor, Result, expected};

/// `id_params_list = "(" *(string SP nstring) ")" / nil` (RFC 2971 section 4).
pub(super) fn id(cursor: &mut Cursor<'_>) -> Result<Command> {
    if cursor.eat_word("NIL") {
        return Ok(Command::Id(Vec::new()));
    }
    let lossy = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    let pairs = cursor.list(true, |cursor| {
        let name = lossy(&cursor.string()?);
        cursor.space()?;
        Ok((name, cursor.nstring()?.map(|value| lossy(&value))))
    })?;
    if pairs.len() > ID_PAIRS_MAX {
        return expected("at most 30 fields");
    }
    Ok(Command::Id(pairs))
}

/// `authenticate = "AUTHENTICATE" SP auth-type [SP initial-resp]` (RFC 4959 section 6).
pub(super) fn authenticate(cursor: &mut Cursor<'_>) -> Result<Command> {
    let mechanism = cursor.atom("a mechanism")?.to_owned();
    let initial = if cursor.eat(b' ') {
        let text =
            cursor.take_while(|octet| octet.is_ascii_alphanumeric() || b"+/=".contains(&octet));
        let text = String::from_utf8_lossy(text).into_owned();
        if text.is_empty() {
            return expected("an initial response");
        }
        Some(Secret::new(text))
    } else {
        None
    };
    Ok(Command::Authenticate { mechanism, initial })
}

/// `login = "LOGIN" SP userid SP password`.
pub(super) fn login(cursor: &mut Cursor<'_>) -> Result<Command> {
    let user = cursor.text()?;
    cursor.space()?;
    Ok(Command::Login {
        user,
        password: Secret::new(cursor.text()?),
    })
}

/// `enable = "ENABLE" 1*(SP capability)`.
pub(super) fn enable(cursor: &mut Cursor<'_>) -> Result<Command> {
    let mut names = Vec::new();
    loop {
        names.push(cursor.atom("a capability")?.to_ascii_uppercase());
        if !cursor.eat(b' ') {
            return Ok(Command::Enable(names));
        }
    }
}
