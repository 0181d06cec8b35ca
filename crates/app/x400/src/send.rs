//! `vere x400 send`

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use bytes::Bytes;
use serde_json::json;
use vere_attach::{ClientEvent, Message, Submitted};
use vere_process::failure::Failure;
use vere_settings::X400;

use crate::args::SendArgs;
use crate::talk::Talk;
use crate::when::now;

/// The tag of the only submission.
const TAG: &str = "1";

/// Submits a message and returns the text to print.
///
/// # Errors
/// When text or content cannot be read, or the MTA refuses the message.
pub(crate) fn run(args: &SendArgs, settings: &X400) -> Result<String, Failure> {
    let octets = match &args.content {
        Some(file) => read(Some(file), settings.size_max.as_u64())?,
        None => text(args.file.as_deref(), settings.size_max.as_u64())?,
    };
    let mut talk = Talk::open(&settings.socket)?;
    let (found, most) = (
        u64::try_from(octets.len()).unwrap_or(u64::MAX),
        talk.octets_max,
    );
    if found > most {
        let text =
            format!("expected at most {most} bytes, as the running MTA takes; found {found}");
        return Err(Failure::new(text));
    }
    talk.client.submit(TAG, Some(message(args)), octets)?;
    submitted(&mut talk, args.json)
}

/// Waits until the submission is safe, and gives the text to print.
pub(crate) fn submitted(talk: &mut Talk, json: bool) -> Result<String, Failure> {
    match talk.next()? {
        ClientEvent::Submitted(Submitted { identifier, id, .. }) if json => Ok(format!(
            "{:#}\n",
            json!({ "identifier": identifier, "id": id })
        )),
        ClientEvent::Submitted(Submitted { identifier, id, .. }) => {
            Ok(format!("identifier {identifier}\nqueue id   {id}\n"))
        }
        other => Err(talk.unexpected(&other)),
    }
}

fn message(args: &SendArgs) -> Message {
    let now = now();
    Message {
        originator: args.from.to_string(),
        recipients: args.to.iter().map(ToString::to_string).collect(),
        subject: args.subject.clone(),
        content_type: args.content_type.as_ref().map(|kind| kind.short()),
        priority: args.priority.into(),
        deferred_until: args.deferred_until.map(|when| when.text(now)),
        latest_delivery: args.latest.map(|when| when.text(now)),
        reports: args.report.into(),
        return_content: args.return_content,
        conversion_prohibited: args.terms.no_conversion,
        alternate_recipient_allowed: args.terms.allow_alternate,
        alternate_recipient: args.alternate.as_ref().map(ToString::to_string),
        content_identifier: args.terms.content_identifier.clone(),
    }
}

/// The text of a file or of standard input.
fn text(file: Option<&Path>, most: u64) -> Result<Bytes, Failure> {
    let octets = read(file, most)?;
    match std::str::from_utf8(&octets) {
        Ok(_) => Ok(octets),
        Err(error) => Err(Failure::new(format!(
            "{}: expected a text in UTF-8; found another octet at {}; --content sends octets",
            name(file),
            error.valid_up_to()
        ))),
    }
}

/// The octets of a file or of standard input.
///
/// # Errors
/// When the file cannot be read, or has more octets than the MTA takes.
pub(crate) fn read(file: Option<&Path>, most: u64) -> Result<Bytes, Failure> {
    let mut octets = Vec::new();
    let limit = most.saturating_add(1);
    let done = match file.filter(|file| *file != Path::new("-")) {
        Some(file) => File::open(file).and_then(|file| file.take(limit).read_to_end(&mut octets)),
        None => io::stdin().lock().take(limit).read_to_end(&mut octets),
    };
    done.map_err(|error| Failure::new(format!("cannot read {}: {error}", name(file))))?;
    if u64::try_from(octets.len()).unwrap_or(u64::MAX) > most {
        let name = name(file);
        return Err(Failure::new(format!(
            "{name}: expected at most {most} octets; found more"
        )));
    }
    Ok(octets.into())
}

fn name(file: Option<&Path>) -> String {
    match file.filter(|file| *file != Path::new("-")) {
        Some(file) => file.display().to_string(),
        None => "standard input".to_owned(),
    }
}
