//! Writing the text forms of O/R addresses.

use vere_ber::{PrintableString, TeletexString};

use std::fmt::{self, Write as _};

use super::attribute::Attribute;
use super::attributes::Attributes;
use super::model::{OrAddress, OrName};

impl fmt::Display for OrAddress {
    /// Writes the form of RFC 1685, or what is wrong with an extension attribute.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.attributes() {
            Ok(attributes) => attributes.fmt(out),
            Err(error) => write!(out, "({error})"),
        }
    }
}

impl fmt::Display for OrName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(out)
    }
}

impl fmt::Display for Attributes {
    /// Writes the form of RFC 1685, without an ADMD of one space. RFC 1685 has no text for a domain-defined attribute
    /// with an equals sign at the beginning of the value; the form of RFC 2156 serves for such an address.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self
            .domain_defined
            .iter()
            .any(|(_, value)| value.starts_with('='))
        {
            return out.write_str(&self.to_mixer_text());
        }
        let country = self.get(Attribute::Country).is_some();
        let mut separator = "";
        for attribute in Attribute::all() {
            let Some(text) = self.get(attribute) else {
                continue;
            };
            if attribute == Attribute::Administration && country && text == " " {
                continue;
            }
            write!(
                out,
                "{separator}{}={}",
                attribute.keyword(),
                text.replace(';', ";;")
            )?;
            separator = ";";
        }
        for (kind, value) in &self.domain_defined {
            let kind = kind.replace('=', "==").replace(';', ";;");
            write!(out, "{separator}DDA:{kind}={}", value.replace(';', ";;"))?;
            separator = ";";
        }
        Ok(())
    }
}

impl Attributes {
    /// Writes the form of RFC 2156.
    #[must_use]
    pub fn to_mixer_text(&self) -> String {
        let mut out = String::new();
        for attribute in Attribute::all().filter(|attribute| !Attribute::UNITS.contains(attribute))
        {
            if attribute == Attribute::Organization {
                for unit in Attribute::UNITS
                    .into_iter()
                    .rev()
                    .filter_map(|unit| self.get(unit))
                {
                    push_mixer(&mut out, "OU", unit);
                }
            }
            if let Some(text) = self.get(attribute) {
                push_mixer(&mut out, attribute.mixer_keyword(), text);
            }
        }
        for (kind, value) in self.domain_defined.iter().rev() {
            push_mixer(&mut out, &format!("DD.{}", escaped(kind)), value);
        }
        out.push('/');
        out
    }
}

fn push_mixer(out: &mut String, keyword: &str, text: &str) {
    out.push('/');
    out.push_str(keyword);
    out.push('=');
    if PrintableString::new(text).is_ok() {
        out.push_str(&escaped(text));
        return;
    }
    // Characters outside PrintableString are written in T.61, characters outside T.61 in Unicode.
    let Ok(teletex) = TeletexString::new(text) else {
        return out.push_str(&escaped(text));
    };
    out.push('*');
    for octet in teletex.octets() {
        if octet.is_ascii_alphanumeric() || *octet == b' ' {
            out.push(char::from(*octet));
        } else {
            // Writing to a String does not fail.
            let _ = write!(out, "{{{octet:03}}}");
        }
    }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '$' | '/' | '=' | ';' | '*') {
            escaped.push('$');
        }
        escaped.push(character);
    }
    escaped
}
