//! Interpersonal messages as text.

use std::fmt;

use super::body::BodyPart;
use super::heading::{Heading, IpmIdentifier, OrDescriptor, RecipientSpecifier};
use super::message::{InformationObject, Ipm};
use super::notification::{Ipn, IpnOutcome};
use crate::lines::Lines;

/// Depth of printed forwarded messages.
const DEPTH_MAX: usize = 8;

impl fmt::Display for InformationObject {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Lines::new(out);
        match self {
            Self::Ipm(ipm) => show_ipm(&mut lines, ipm, 0),
            Self::Ipn(ipn) => show_ipn(&mut lines, ipn),
        }
    }
}

impl fmt::Display for IpmIdentifier {
    /// Writes the identifier, then the user if there is one.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.user_relative_identifier.fmt(out)?;
        match &self.user {
            Some(user) => write!(out, "*{user}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for OrDescriptor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.free_form_name, &self.formal_name) {
            (Some(name), Some(address)) => write!(out, "{name} <{address}>"),
            (Some(name), None) => name.fmt(out),
            (None, Some(address)) => address.fmt(out),
            (None, None) => Ok(()),
        }?;
        match &self.telephone_number {
            Some(number) => write!(out, " ({number})"),
            None => Ok(()),
        }
    }
}

fn show_ipm(lines: &mut Lines<'_, '_>, ipm: &Ipm, depth: usize) -> fmt::Result {
    show_heading(lines, &ipm.heading)?;
    for part in &ipm.body {
        lines.line(
            "body part",
            format_args!("{}, {} octets", part.kind(), part.octets()),
        )?;
        lines.below(|lines| show_part(lines, part, depth))?;
    }
    Ok(())
}

fn show_part(lines: &mut Lines<'_, '_>, part: &BodyPart, depth: usize) -> fmt::Result {
    if let Some(text) = part.to_text() {
        return lines.text(&text);
    }
    if depth >= DEPTH_MAX {
        return Ok(());
    }
    match part.forwarded() {
        Ok(Some(ipm)) => show_ipm(lines, &ipm, depth.saturating_add(1)),
        Ok(None) => Ok(()),
        Err(error) => lines.line("not readable", error),
    }
}

fn show_heading(lines: &mut Lines<'_, '_>, heading: &Heading) -> fmt::Result {
    lines.line("this-IPM", &heading.this_ipm)?;
    lines.optional("originator", heading.originator.as_ref())?;
    heading
        .authorizing_users
        .iter()
        .flatten()
        .try_for_each(|user| lines.line("authorizing-user", user))?;
    show_recipients(lines, "primary-recipient", &heading.primary_recipients)?;
    show_recipients(lines, "copy-recipient", &heading.copy_recipients)?;
    show_recipients(
        lines,
        "blind-copy-recipient",
        heading.blind_copy_recipients.as_deref().unwrap_or_default(),
    )?;
    lines.optional("replied-to-IPM", heading.replied_to_ipm.as_ref())?;
    heading
        .obsoleted_ipms
        .iter()
        .try_for_each(|ipm| lines.line("obsoleted-IPM", ipm))?;
    heading
        .related_ipms
        .iter()
        .try_for_each(|ipm| lines.line("related-IPM", ipm))?;
    lines.optional(
        "subject",
        heading.subject.as_ref().map(|subject| &subject.0),
    )?;
    lines.optional("expiry-time", heading.expiry_time)?;
    lines.optional("reply-time", heading.reply_time)?;
    heading
        .reply_recipients
        .iter()
        .flatten()
        .try_for_each(|user| lines.line("reply-recipient", user))?;
    lines.optional("importance", heading.importance)?;
    lines.optional("sensitivity", heading.sensitivity)?;
    lines.optional(
        "auto-forwarded",
        Some("yes").filter(|_| heading.auto_forwarded),
    )?;
    heading
        .extensions
        .iter()
        .try_for_each(|extension| lines.line("extension", &extension.kind))
}

fn show_recipients(
    lines: &mut Lines<'_, '_>,
    name: &str,
    recipients: &[RecipientSpecifier],
) -> fmt::Result {
    recipients.iter().try_for_each(|recipient| {
        lines.line(name, &recipient.recipient)?;
        lines.below(|lines| {
            let requests =
                Some(recipient.notification_requests).filter(|requests| !requests.is_empty());
            lines.optional("notification-requests", requests)?;
            lines.optional(
                "reply-requested",
                Some("yes").filter(|_| recipient.reply_requested),
            )
        })
    })
}

fn show_ipn(lines: &mut Lines<'_, '_>, ipn: &Ipn) -> fmt::Result {
    lines.line("subject-ipm", &ipn.subject_ipm)?;
    lines.optional("ipn-originator", ipn.ipn_originator.as_ref())?;
    lines.optional(
        "ipm-intended-recipient",
        ipn.ipm_intended_recipient.as_ref(),
    )?;
    lines.optional("conversion-eits", ipn.conversion_eits.as_ref())?;
    match &ipn.outcome {
        IpnOutcome::Receipt(fields) => {
            lines.line("receipt-time", fields.receipt_time)?;
            lines.line("acknowledgment-mode", fields.acknowledgment_mode)?;
            lines.optional("suppl-receipt-info", fields.suppl_receipt_info.as_ref())
        }
        IpnOutcome::NonReceipt(fields) => {
            lines.line("non-receipt-reason", fields.non_receipt_reason)?;
            lines.optional("discard-reason", fields.discard_reason)?;
            lines.optional("auto-forward-comment", fields.auto_forward_comment.as_ref())?;
            match fields.returned() {
                Ok(Some(ipm)) => {
                    lines.heading("returned-ipm:")?;
                    lines.below(|lines| show_ipm(lines, &ipm, 1))
                }
                Ok(None) => Ok(()),
                Err(error) => lines.line("returned-ipm", format_args!("({error})")),
            }
        }
        IpnOutcome::Other(extensions) => extensions
            .iter()
            .try_for_each(|extension| lines.line("notification", &extension.kind)),
    }
}
