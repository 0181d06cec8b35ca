//! Extensions as fields of envelopes.

use vere_ber::{
    Any, BerError, Element, Null, ObjectIdentifier, Tag, Value, Writer, choice, encode, record,
};

use super::kind::{Criticality, StandardExtension};
use super::value::ExtensionValue;

choice! {
    /// `ExtensionType`
    pub enum ExtensionType {
        /// `standard-extension`
        Standard: @0 StandardExtension,
        /// `private-extension`
        Private: @3 ObjectIdentifier,
    }
}

record! {
    /// `ExtensionField`
    pub struct ExtensionField [Tag::SEQUENCE] {
        /// `type`
        kind: required ExtensionType,
        /// `criticality`
        criticality: default @1 Criticality,
        /// `value`; absent for NULL.
        value: optional @2 Any,
    }
}

impl ExtensionField {
    /// The standard extension with this value and the criticality recommended in X.411.
    #[must_use]
    pub fn standard(value: &ExtensionValue) -> Self {
        let kind = value.kind();
        Self {
            kind: ExtensionType::Standard(kind),
            criticality: kind.recommended_criticality(),
            value: Some(Any(value.encode())),
            ..Self::default()
        }
    }

    /// The kind of a standard extension.
    #[must_use]
    pub const fn standard_kind(&self) -> Option<StandardExtension> {
        match self.kind {
            ExtensionType::Standard(kind) => Some(kind),
            ExtensionType::Private(_) => None,
        }
    }

    /// The value of a standard extension; values of X.509 are octets.
    ///
    /// # Errors
    /// [`BerError`] if the value is not of the type of the extension.
    pub fn decode(&self) -> Result<Option<ExtensionValue>, BerError> {
        let value = || self.value.clone().unwrap_or_else(|| Any(encode(&Null)));
        let decode = |kind| ExtensionValue::decode(kind, value());
        self.standard_kind().map(decode).transpose()
    }
}

/// The extensions of an envelope, of a recipient or of a report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Extensions(pub Vec<ExtensionField>);

impl Extensions {
    /// The extension of this kind.
    #[must_use]
    pub fn find(&self, kind: StandardExtension) -> Option<&ExtensionField> {
        self.0
            .iter()
            .find(|field| field.standard_kind() == Some(kind))
    }

    /// The value of the extension of this kind.
    ///
    /// # Errors
    /// [`BerError`] if the value is not of the type of the extension.
    pub fn value(&self, kind: StandardExtension) -> Result<Option<ExtensionValue>, BerError> {
        self.find(kind).map_or(Ok(None), ExtensionField::decode)
    }

    /// Adds an extension; if the kind is present, only the value changes, not criticality or place.
    pub fn set(&mut self, value: &ExtensionValue) {
        let field = ExtensionField::standard(value);
        match self.0.iter_mut().find(|known| known.kind == field.kind) {
            Some(known) => known.value = field.value,
            None => self.0.push(field),
        }
    }

    /// Removes the extension of this kind.
    pub fn remove(&mut self, kind: StandardExtension) {
        self.0.retain(|field| field.standard_kind() != Some(kind));
    }

    /// The first extension with this criticality and without a definition in X.411 (1999).
    #[must_use]
    pub fn unknown_critical(&self, criticality: Criticality) -> Option<&ExtensionField> {
        self.0.iter().find(|field| {
            let unknown = field
                .standard_kind()
                .is_none_or(|kind| kind.name().is_none());
            unknown && field.criticality.contains(criticality)
        })
    }
}

impl Value for Extensions {
    const NAME: &'static str = "extensions";

    fn accepts(tag: Tag) -> bool {
        tag == Tag::SET
    }

    fn read(element: &Element<'_>) -> Result<Self, BerError> {
        Value::read(element).map(Self)
    }

    fn write(&self, out: &mut Writer) {
        self.write_tagged(Tag::SET, out);
    }

    fn write_tagged(&self, tag: Tag, out: &mut Writer) {
        self.0.write_tagged(tag, out);
    }
}
