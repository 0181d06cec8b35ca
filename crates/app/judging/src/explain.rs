//! `vere explain`: the reasons of a verdict, and the verdict by the settings of now.

mod args;
mod asked;
mod file;
mod known;
mod past;
mod show;

use vere_judge::Judge;
use vere_process::failure::Failure;
use vere_settings::Settings;
use vere_units::TraceId;

pub use args::ExplainArgs;

/// Judges the message by the settings of now, and returns the text to print.
///
/// # Errors
/// When the message or the facts are missing, or the settings have no judgement.
pub fn run(args: &ExplainArgs, settings: &Settings) -> Result<String, Failure> {
    let terms = settings.judging.clone().ok_or_else(|| {
        Failure::new(
            "expected a section [judging] in the settings; found none: no message is judged",
        )
    });
    let (mut known, terms) = match args.message.parse::<TraceId>() {
        // Filters have decided about a submitted message, with or without the section.
        Ok(id) => (past::look(id, settings)?, terms?),
        Err(_) => {
            let terms = terms?;
            (file::read(args, settings)?, terms)
        }
    };
    if !args.to.is_empty() {
        known.recipients.clone_from(&args.to);
    }
    let recipients: Vec<_> = known.recipients.iter().map(String::as_str).collect();
    let judgement = Judge::new(terms).judge(&known.facts, &recipients);
    match args.json {
        true => show::json(&known, &judgement),
        false => Ok(show::text(&known, &judgement)),
    }
}
