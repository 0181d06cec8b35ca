//! Histories in an envelope: redirections of a recipient, expansions of lists.

use vere_x400::{DlExpansion, ExtensionValue, Extensions, Redirection, StandardExtension, Time};

use crate::cause::Cause;

/// The redirections of a recipient, oldest first.
///
/// # Errors
/// [`Cause::ProtocolViolation`] for a history of another type.
pub(crate) fn redirections(extensions: &Extensions) -> Result<Vec<Redirection>, Cause> {
    match extensions.value(StandardExtension::RedirectionHistory) {
        Ok(Some(ExtensionValue::RedirectionHistory(history))) => Ok(history),
        Ok(_) => Ok(Vec::new()),
        Err(_) => Err(Cause::ProtocolViolation),
    }
}

/// The time of the last redirection of a recipient.
pub(crate) fn last_redirection(extensions: &Extensions) -> Option<Time> {
    let history = redirections(extensions).ok()?;
    let last = history.last()?;
    Some(last.intended_recipient_name.redirection_time)
}

/// The expansions of lists, oldest first. An unreadable history counts as empty.
pub(crate) fn expansions(extensions: &Extensions) -> Vec<DlExpansion> {
    match extensions.value(StandardExtension::DlExpansionHistory) {
        Ok(Some(ExtensionValue::DlExpansionHistory(history))) => history,
        _ => Vec::new(),
    }
}
