//! AARQ and AARE.

use bytes::Bytes;
use vere_ber::{
    BitString, Element, External, Fault, ObjectIdentifier, Pieces, Tag, Value, Writer, write,
};

use super::information::{read_information, write_information};

/// The title of an application entity; AP titles and AE qualifiers are kept as they were sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EntityTitle {
    /// The AP title: one BER value.
    pub ap_title: Option<Bytes>,
    /// The AE qualifier: one BER value.
    pub ae_qualifier: Option<Bytes>,
    /// The invocation of the application process.
    pub ap_invocation: Option<i64>,
    /// The invocation of the application entity.
    pub ae_invocation: Option<i64>,
}

/// The value that proves the identity of a side.
#[derive(Clone, PartialEq, Eq)]
pub enum AuthenticationValue {
    /// Characters, such as a password.
    Characters(Bytes),
    /// Bits.
    Bits(BitString),
    /// A value of another abstract syntax.
    External(External),
    /// A value of the mechanism: one BER value.
    Other(Bytes),
}

impl std::fmt::Debug for AuthenticationValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AuthenticationValue(redacted)")
    }
}

/// The parameters of the authentication functional unit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Authentication {
    /// The mechanism.
    pub mechanism: Option<ObjectIdentifier>,
    /// The value.
    pub value: Option<AuthenticationValue>,
}

impl Authentication {
    const fn is_used(&self) -> bool {
        self.mechanism.is_some() || self.value.is_some()
    }
}

/// A-ASSOCIATE request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aarq {
    /// The application context.
    pub application_context: ObjectIdentifier,
    /// The called entity.
    pub called: EntityTitle,
    /// The calling entity.
    pub calling: EntityTitle,
    /// The credentials of the caller.
    pub authentication: Authentication,
    /// The user information.
    pub user_information: Vec<External>,
}

/// The result of an A-ASSOCIATE request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssociateResult {
    /// Accepted.
    Accepted,
    /// Rejected for good.
    RejectedPermanent,
    /// Rejected for now.
    RejectedTransient,
}

macro_rules! diagnostics {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $code:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$vdoc])* $variant,)*
            /// A code without a name.
            Other(i64),
        }

        impl $name {
            /// The code on the wire.
            #[must_use]
            pub const fn code(self) -> i64 {
                match self {
                    $(Self::$variant => $code,)*
                    Self::Other(code) => code,
                }
            }

            /// The meaning of a code.
            #[must_use]
            pub const fn from_code(code: i64) -> Self {
                match code {
                    $($code => Self::$variant,)*
                    other => Self::Other(other),
                }
            }
        }
    };
}

diagnostics! {
    /// A diagnostic of the ACSE service user.
    UserDiagnostic {
        /// Nothing.
        Null = 0,
        /// No reason is given.
        NoReason = 1,
        /// The application context is not supported.
        ApplicationContextNotSupported = 2,
        /// The calling AP title is not recognized.
        CallingApTitle = 3,
        /// The calling AP invocation is not recognized.
        CallingApInvocation = 4,
        /// The calling AE qualifier is not recognized.
        CallingAeQualifier = 5,
        /// The calling AE invocation is not recognized.
        CallingAeInvocation = 6,
        /// The called AP title is not recognized.
        CalledApTitle = 7,
        /// The called AP invocation is not recognized.
        CalledApInvocation = 8,
        /// The called AE qualifier is not recognized.
        CalledAeQualifier = 9,
        /// The called AE invocation is not recognized.
        CalledAeInvocation = 10,
        /// The mechanism is not recognized.
        MechanismNotRecognized = 11,
        /// A mechanism is required.
        MechanismRequired = 12,
        /// The authentication failed.
        AuthenticationFailure = 13,
        /// Authentication is required.
        AuthenticationRequired = 14,
    }
}

diagnostics! {
    /// A diagnostic of the ACSE service provider.
    ProviderDiagnostic {
        /// Nothing.
        Null = 0,
        /// No reason is given.
        NoReason = 1,
        /// There is no common version of ACSE.
        NoCommonVersion = 2,
    }
}

/// The diagnostic of a result, with its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Diagnostic {
    /// The ACSE service user.
    User(UserDiagnostic),
    /// The ACSE service provider.
    Provider(ProviderDiagnostic),
}

/// A-ASSOCIATE response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aare {
    /// The application context.
    pub application_context: ObjectIdentifier,
    /// The result.
    pub result: AssociateResult,
    /// The diagnostic.
    pub diagnostic: Diagnostic,
    /// The responding entity.
    pub responding: EntityTitle,
    /// The credentials of the responder.
    pub authentication: Authentication,
    /// The user information.
    pub user_information: Vec<External>,
}

impl Aarq {
    pub(super) fn write(&self) -> Pieces {
        let mut fields = vec![context_name(&self.application_context)];
        write_title(&mut fields, 2, &self.called);
        write_title(&mut fields, 6, &self.calling);
        write_authentication(&mut fields, 10, &self.authentication);
        fields.extend(write_information(&self.user_information));
        write::constructed(Tag::application(0), fields)
    }

    pub(super) fn read(element: &Element<'_>) -> Result<Self, Fault> {
        let fields = Fields::read(element)?;
        Ok(Self {
            application_context: fields.context_name()?,
            called: fields.title(2)?,
            calling: fields.title(6)?,
            authentication: fields.authentication(10)?,
            user_information: read_information(fields.get(30))?,
        })
    }
}

impl Aare {
    pub(super) fn write(&self) -> Pieces {
        let result = match self.result {
            AssociateResult::Accepted => 0,
            AssociateResult::RejectedPermanent => 1,
            AssociateResult::RejectedTransient => 2,
        };
        let (source, code) = match self.diagnostic {
            Diagnostic::User(diagnostic) => (1, diagnostic.code()),
            Diagnostic::Provider(diagnostic) => (2, diagnostic.code()),
        };
        let code = write::integer(Tag::INTEGER, code);
        let diagnostic = write::constructed(Tag::context(source), [code]);
        let result = write::integer(Tag::INTEGER, result);
        let mut fields = vec![
            context_name(&self.application_context),
            write::constructed(Tag::context(2), [result]),
            write::constructed(Tag::context(3), [diagnostic]),
        ];
        write_title(&mut fields, 4, &self.responding);
        write_authentication(&mut fields, 8, &self.authentication);
        fields.extend(write_information(&self.user_information));
        write::constructed(Tag::application(1), fields)
    }

    pub(super) fn read(element: &Element<'_>) -> Result<Self, Fault> {
        let fields = Fields::read(element)?;
        let missing = |number| Fault::Absent(Tag::context(number));
        let result = fields.get(2).ok_or(missing(2))?.inner()?;
        let diagnostic = fields.get(3).ok_or(missing(3))?.inner()?;
        let code = diagnostic.inner()?.integer()?;
        Ok(Self {
            application_context: fields.context_name()?,
            result: match result.number(2)? {
                0 => AssociateResult::Accepted,
                1 => AssociateResult::RejectedPermanent,
                _ => AssociateResult::RejectedTransient,
            },
            diagnostic: match diagnostic.tag == Tag::context(2) {
                true => Diagnostic::Provider(ProviderDiagnostic::from_code(code)),
                false => Diagnostic::User(UserDiagnostic::from_code(code)),
            },
            responding: fields.title(4)?,
            authentication: fields.authentication(8)?,
            user_information: read_information(fields.get(30))?,
        })
    }
}

/// The fields of an APDU by their context tags. Unknown ones are left out, as the rules of extensibility have it.
struct Fields<'a>(Vec<(u32, Element<'a>)>);

impl<'a> Fields<'a> {
    fn read(element: &Element<'a>) -> Result<Self, Fault> {
        let mut all = Vec::new();
        let mut fields = element.reader()?;
        while let Some(field) = fields.read()? {
            let number = field.tag.number;
            let known = field.tag == Tag::context(number) && number <= 30;
            let new = all.iter().all(|(known, _)| *known != number);
            if known && new {
                all.push((number, field));
            }
        }
        Ok(Self(all))
    }

    fn get(&self, number: u32) -> Option<&Element<'a>> {
        let mut all = self.0.iter();
        all.find(|(found, _)| *found == number)
            .map(|(_, field)| field)
    }

    fn context_name(&self) -> Result<ObjectIdentifier, Fault> {
        let field = self.get(1).ok_or(Fault::Absent(Tag::context(1)))?;
        field.inner()?.oid()
    }

    fn value(&self, number: u32) -> Result<Option<Bytes>, Fault> {
        let inner = self.get(number).map(Element::inner).transpose()?;
        Ok(inner.map(|inner| inner.to_bytes()))
    }

    fn invocation(&self, number: u32) -> Result<Option<i64>, Fault> {
        let field = self.get(number);
        field.map(|field| field.inner()?.integer()).transpose()
    }

    fn title(&self, first: u32) -> Result<EntityTitle, Fault> {
        Ok(EntityTitle {
            ap_title: self.value(first)?,
            ae_qualifier: self.value(first.saturating_add(1))?,
            ap_invocation: self.invocation(first.saturating_add(2))?,
            ae_invocation: self.invocation(first.saturating_add(3))?,
        })
    }

    /// The requirements, of which bit 0 is authentication, come first; the two others count by themselves.
    fn authentication(&self, first: u32) -> Result<Authentication, Fault> {
        let mechanism = self.get(first.saturating_add(1));
        let value = self.get(first.saturating_add(2));
        Ok(Authentication {
            mechanism: mechanism.map(Element::oid).transpose()?,
            value: value.map(|value| read_value(&value.inner()?)).transpose()?,
        })
    }
}

fn context_name(name: &ObjectIdentifier) -> Pieces {
    let name = write::oid(Tag::OBJECT_IDENTIFIER, name);
    write::constructed(Tag::context(1), [name])
}

fn write_title(to: &mut Vec<Pieces>, first: u32, title: &EntityTitle) {
    let number = |number| write::integer(Tag::INTEGER, number);
    let fields = [
        title.ap_title.as_ref().map(write::encoded),
        title.ae_qualifier.as_ref().map(write::encoded),
        title.ap_invocation.map(number),
        title.ae_invocation.map(number),
    ];
    for (tag, field) in (first..).zip(fields) {
        to.extend(field.map(|field| write::constructed(Tag::context(tag), [field])));
    }
}

fn write_authentication(to: &mut Vec<Pieces>, first: u32, authentication: &Authentication) {
    if !authentication.is_used() {
        return;
    }
    let requirements = BitString {
        unused: 7,
        octets: Bytes::from_static(&[0x80]),
    };
    to.push(write::bit_string(Tag::context(first), &requirements));
    let mechanism = authentication.mechanism.as_ref();
    let tag = Tag::context(first.saturating_add(1));
    to.extend(mechanism.map(|mechanism| write::oid(tag, mechanism)));
    let value = authentication.value.as_ref().map(write_value);
    let tag = Tag::context(first.saturating_add(2));
    to.extend(value.map(|value| write::constructed(tag, [value])));
}

fn write_value(value: &AuthenticationValue) -> Pieces {
    match value {
        AuthenticationValue::Characters(text) => write::primitive(Tag::context(0), text),
        AuthenticationValue::Bits(bits) => write::bit_string(Tag::context(1), bits),
        AuthenticationValue::External(external) => {
            // [2] IMPLICIT EXTERNAL: the fields of EXTERNAL under another tag.
            let mut out = Writer::default();
            external.write_tagged(Tag::context(2), &mut out);
            Pieces::from(out.finish())
        }
        AuthenticationValue::Other(other) => {
            write::constructed(Tag::context(3), [write::encoded(other)])
        }
    }
}

fn read_value(element: &Element<'_>) -> Result<AuthenticationValue, Fault> {
    match element.tag {
        tag if tag == Tag::context(0) => Ok(AuthenticationValue::Characters(element.bytes()?)),
        tag if tag == Tag::context(1) => Ok(AuthenticationValue::Bits(element.bit_string()?)),
        tag if tag == Tag::context(2) => {
            Ok(AuthenticationValue::External(Value::read_tagged(element)?))
        }
        tag if tag == Tag::context(3) => {
            Ok(AuthenticationValue::Other(element.contents_to_bytes()))
        }
        other => Err(Fault::Misplaced(other)),
    }
}
