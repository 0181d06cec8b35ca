//! `vere x400 probe`

use vere_attach::Probe;
use vere_process::failure::Failure;
use vere_settings::X400;

use crate::args::ProbeArgs;
use crate::send::submitted;
use crate::talk::Talk;

/// Submits a probe and returns the text to print.
///
/// # Errors
/// When the MTA refuses the probe.
pub(crate) fn run(args: &ProbeArgs, settings: &X400) -> Result<String, Failure> {
    let mut talk = Talk::open(&settings.socket)?;
    talk.client.probe(Probe {
        tag: "1".to_owned(),
        originator: args.from.to_string(),
        recipients: args.to.iter().map(ToString::to_string).collect(),
        content_octets: args.size,
        conversion_prohibited: args.terms.no_conversion,
        alternate_recipient_allowed: args.terms.allow_alternate,
        content_identifier: args.terms.content_identifier.clone(),
    })?;
    submitted(&mut talk, args.json)
}
