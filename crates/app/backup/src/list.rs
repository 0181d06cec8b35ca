//! `vere backup list`

use serde_json::{Value, json};
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_process::wording::size;
use vere_units::Timestamp;

use crate::args::PlaceArgs;
use crate::manifest::Manifest;
use crate::place::Use;
use crate::repository::Repository;

/// Lists the backups of a place, the oldest first.
///
/// # Errors
/// When the place cannot be read.
pub(crate) fn run(place: &PlaceArgs, json: bool) -> Result<Outcome, Failure> {
    let ask = || place.secret.get();
    let repository = Repository::open(&place.place, Use::Reading, &ask)?;
    let (mut rows, mut text) = (Vec::new(), String::new());
    for number in repository.numbers()? {
        match repository.manifest(number) {
            Ok(manifest) => {
                text += &line(&manifest);
                rows.push(row(&manifest));
            }
            Err(error) => {
                text += &format!("{number:>6}  {error}\n");
                rows.push(json!({ "number": number, "error": error.to_string() }));
            }
        }
    }
    let is_damaged = rows.iter().any(|row| row.get("error").is_some());
    let said = match json {
        true => format!("{:#}\n", Value::from(rows)),
        false if text.is_empty() => "no backups\n".to_owned(),
        false => format!(
            "number  made                      {:>10}  host\n{text}",
            "size"
        ),
    };
    Ok(Outcome::of_findings(said, is_damaged))
}

fn line(manifest: &Manifest) -> String {
    format!(
        "{:>6}  {}  {:>10}  {}\n",
        manifest.number,
        Timestamp::from_millis(manifest.made),
        size(manifest.octets()),
        manifest.host,
    )
}

fn row(manifest: &Manifest) -> Value {
    json!({
        "number": manifest.number,
        "made": Timestamp::from_millis(manifest.made).to_string(),
        "host": manifest.host,
        "octets": manifest.octets(),
        "files": manifest.files.len(),
        "log_files": manifest.log.as_ref().map_or(0, |log| log.files.len()),
    })
}
