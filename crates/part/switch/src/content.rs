//! Content types and domains as texts of the settings.

use vere_x400::{Attribute, Attributes, ContentType, GlobalDomainIdentifier};

use crate::error::Fault;

/// The content types of a list; `None` for an empty list, which permits every type.
pub(crate) fn types(texts: &[String]) -> Result<Option<Vec<ContentType>>, Fault> {
    let types: Vec<_> = texts
        .iter()
        .map(|text| content_type(text))
        .collect::<Result<_, _>>()?;
    Ok(Some(types).filter(|types| !types.is_empty()))
}

fn content_type(text: &str) -> Result<ContentType, Fault> {
    match text.to_ascii_lowercase().as_str() {
        "2" | "p2" => Ok(ContentType::P2),
        "22" | "p22" => Ok(ContentType::P22),
        other => {
            let identifier = other.parse().map(ContentType::Extended);
            identifier.map_err(|_| Fault::ContentType(text.to_owned()))
        }
    }
}

/// A global domain identifier.
pub(crate) fn domain(text: &str) -> Result<GlobalDomainIdentifier, Fault> {
    let wrong = || Fault::Domain(text.to_owned());
    let attributes: Attributes = text.parse()?;
    let known = [
        Attribute::Country,
        Attribute::Administration,
        Attribute::Private,
    ];
    let mut domain = Attributes::default();
    for attribute in known {
        if let Some(value) = attributes.get(attribute) {
            domain.set(attribute, value.to_owned());
        }
    }
    let country = domain.get(Attribute::Country).ok_or_else(wrong)?;
    let administration = domain.get(Attribute::Administration).ok_or_else(wrong)?;
    if domain != attributes {
        return Err(wrong());
    }
    let private = domain.get(Attribute::Private);
    Ok(GlobalDomainIdentifier::new(
        country,
        administration,
        private,
    )?)
}
