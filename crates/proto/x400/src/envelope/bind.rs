//! The introduction of two MTAs (X.411 clause 12.1.1).
//!
//! The values are user data of RT-OPEN. In normal mode the tags of X.880 for binds surround the values: `[16]`
//! for the argument, `[17]` for the result, `[18]` for the error. In X.410 mode the values have no further tag
//! (X.419 clause 13.2.1.1.2). Both forms are read in both modes.

use bytes::Bytes;
use vere_ber::{
    BerError, Element, Ia5String, Kept, Null, Tag, Value, Writer, choice, codes, normalise, record,
};
use vere_units::{Secret, constant_time_eq};

use crate::extension::SecurityLabel;

/// The tags around the values of a bind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BindForm {
    /// Under `[16]`, `[17]` and `[18]`: normal mode.
    Tagged,
    /// Without further tags: X.410 mode.
    Plain,
}

choice! {
    /// `Password`
    pub enum Password {
        /// `ia5-string`
        Ia5: Secret<Ia5String>,
        /// `octet-string`
        Octets: Secret<Bytes>,
    }
}

impl Password {
    /// The password of these octets, sent as IA5String.
    #[must_use]
    pub fn ia5(octets: &[u8]) -> Self {
        Self::Ia5(Secret::new(Ia5String::from_octets(Bytes::copy_from_slice(
            octets,
        ))))
    }

    /// Whether the password has these octets, in a time independent of the first difference.
    #[must_use]
    pub fn is(&self, octets: &[u8]) -> bool {
        match self {
            Self::Ia5(password) => constant_time_eq(password.expose().octets(), octets),
            Self::Octets(password) => constant_time_eq(password.expose(), octets),
        }
    }
}

/// `Credentials`
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Credentials {
    /// `simple`
    Simple(Password),
    /// `strong`, as received.
    Strong(Kept),
    /// `protected`, as received.
    Protected(Kept),
}

impl Default for Credentials {
    fn default() -> Self {
        Self::Simple(Password::default())
    }
}

impl Value for Credentials {
    const NAME: &'static str = "Credentials";

    fn accepts(tag: Tag) -> bool {
        Password::accepts(tag) || tag == Tag::context(0) || tag == Tag::context(1)
    }

    fn read(element: &Element<'_>) -> Result<Self, BerError> {
        match element.tag {
            tag if tag == Tag::context(0) => Kept::read(element).map(Self::Strong),
            tag if tag == Tag::context(1) => Kept::read(element).map(Self::Protected),
            _ => Password::read(element).map(Self::Simple),
        }
    }

    fn write(&self, out: &mut Writer) {
        match self {
            Self::Simple(password) => password.write(out),
            Self::Strong(kept) | Self::Protected(kept) => kept.write(out),
        }
    }

    /// A password directly under the tag of the field is read too: systems of 1984 send it so.
    fn read_tagged(element: &Element<'_>) -> Result<Self, BerError> {
        if element.constructed {
            Self::read(&element.inner()?)
        } else {
            let password = Ia5String::read(element)?;
            Ok(Self::Simple(Password::Ia5(Secret::new(password))))
        }
    }

    fn write_tagged(&self, tag: Tag, out: &mut Writer) {
        out.constructed(tag, |out| self.write(out));
    }
}

record! {
    /// `authenticated` of `MTABindArgument`
    pub struct MtaInitiator [Tag::SET] {
        /// `initiator-name`
        initiator_name: required @0 Ia5String,
        /// `initiator-credentials`
        initiator_credentials: required @1 Credentials,
        /// `security-context`
        security_context: optional @2 Vec<SecurityLabel>,
    }
}

record! {
    /// `authenticated` of `MTABindResult`
    pub struct MtaResponder [Tag::SET] {
        /// `responder-name`
        responder_name: required @0 Ia5String,
        /// `responder-credentials`
        responder_credentials: required @1 Credentials,
    }
}

choice! {
    /// `MTABindArgument`
    pub enum MtaBindArgument {
        /// `unauthenticated`
        Unauthenticated: Null,
        /// `authenticated`
        Authenticated: @1 MtaInitiator,
    }
}

choice! {
    /// `MTABindResult`
    pub enum MtaBindResult {
        /// `unauthenticated`
        Unauthenticated: Null,
        /// `authenticated`
        Authenticated: @1 MtaResponder,
    }
}

codes! {
    /// `MTABindError`
    pub enum MtaBindError [Tag::INTEGER] {
        Busy = 0, "busy";
        AuthenticationError = 2, "authentication-error";
        UnacceptableDialogueMode = 3, "unacceptable-dialogue-mode";
        UnacceptableSecurityContext = 4, "unacceptable-security-context";
        InadequateAssociationConfidentiality = 5, "inadequate-association-confidentiality";
    }
}

macro_rules! bind {
    ($name:ident, $number:literal) => {
        impl $name {
            /// Reads the value, and how it was tagged.
            ///
            /// # Errors
            /// [`BerError`] if the octets are not this value.
            pub fn decode(octets: &Bytes) -> Result<(Self, BindForm), BerError> {
                let octets = normalise(octets)?;
                let element = Element::only(&octets)?;
                if element.tag == Tag::context($number) {
                    let inner = element.inner()?;
                    return Ok((inner.value()?, BindForm::Tagged));
                }
                Ok((element.value()?, BindForm::Plain))
            }

            /// Writes the value.
            #[must_use]
            pub fn encode(&self, form: BindForm) -> Bytes {
                let mut out = Writer::default();
                match form {
                    BindForm::Tagged => {
                        out.constructed(Tag::context($number), |out| self.write(out));
                    }
                    BindForm::Plain => self.write(&mut out),
                }
                out.finish()
            }
        }
    };
}

bind!(MtaBindArgument, 16);
bind!(MtaBindResult, 17);
bind!(MtaBindError, 18);
