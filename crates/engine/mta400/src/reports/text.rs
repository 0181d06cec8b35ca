//! Texts within the bounds of X.411.

use vere_ber::Ia5String;
use vere_x400::MtsIdentifier;

use crate::site::{LOCAL_IDENTIFIER_MAX, Site};

/// The identifier with a local part. Characters outside IA5String become question marks.
pub(crate) fn identifier(site: &Site, id: &str) -> MtsIdentifier {
    let id: String = id
        .chars()
        .take(LOCAL_IDENTIFIER_MAX)
        .map(|character| if character.is_ascii() { character } else { '?' })
        .collect();
    MtsIdentifier::new(site.domain.clone(), Ia5String::from_octets(id.into()))
}

/// Text with question marks for characters outside PrintableString.
pub(crate) fn printable(text: &str, most: usize) -> String {
    let allowed =
        |character: char| character.is_ascii_alphanumeric() || " '()+,-./:=?".contains(character);
    text.chars()
        .take(most)
        .map(|character| if allowed(character) { character } else { '?' })
        .collect()
}
