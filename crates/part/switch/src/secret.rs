//! Passwords of the settings.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use vere_settings::X400Password;
use vere_units::Secret;

use crate::error::Fault;

/// Octets read of a file with a password.
const FILE_MAX: u64 = 4_096;

/// The password, if there is one.
pub(crate) fn password(setting: &X400Password) -> Result<Option<Secret<Vec<u8>>>, Fault> {
    match setting {
        X400Password::None => Ok(None),
        X400Password::Text(text) => Ok(Some(Secret::new(text.expose().clone().into_bytes()))),
        X400Password::File(path) => first_line(path).map(Some),
    }
}

fn first_line(path: &Path) -> Result<Secret<Vec<u8>>, Fault> {
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(FILE_MAX).read_to_string(&mut text))
        .map_err(|source| Fault::File {
            path: path.to_owned(),
            source,
        })?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(Secret::new(line.as_bytes().to_vec())),
        _ => Err(Fault::NoPassword(path.to_owned())),
    }
}
