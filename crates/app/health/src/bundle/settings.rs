//! The settings of the file, and the settings in force, without secrets.

use vere_settings::redacted;

use super::parts::Made;
use super::scrub::Scrubber;
use crate::doctor::Config;

/// Settings in force, below the data directory.
const ACCEPTED: &str = "accepted.toml";

/// Both texts. The scrubber gets the secrets, and removes them from all other parts.
pub(super) fn parts(config: &Config, scrubber: &mut Scrubber) -> Vec<Made> {
    let mut parts = vec![part(
        "settings.toml",
        "the settings, without secrets and comments",
        config
            .text
            .clone()
            .ok_or_else(|| "the file cannot be read".to_owned()),
        scrubber,
    )];
    if let Some(settings) = &config.settings {
        let path = settings.data.join(ACCEPTED);
        let text = std::fs::read_to_string(&path);
        parts.push(part(
            "settings-in-force.toml",
            "the settings that the running system has accepted",
            text.map_err(|error| error.to_string()),
            scrubber,
        ));
    }
    parts
}

fn part(
    name: &'static str,
    about: &'static str,
    text: Result<String, String>,
    scrubber: &mut Scrubber,
) -> Made {
    let text = text.and_then(|text| {
        let redaction = redacted(&text).ok_or_else(|| {
            "the file is no TOML, so that secrets cannot be told from other values".to_owned()
        })?;
        scrubber.add(redaction.secrets);
        Ok(redaction.text)
    });
    Made { name, about, text }
}
