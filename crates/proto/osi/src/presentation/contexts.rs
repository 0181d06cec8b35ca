//! Presentation contexts: definitions, results, and the defined context set (DCS).

use vere_ber::{Element, Fault, ObjectIdentifier, Pieces, Tag, write};

use crate::names;

/// The most contexts of a connection.
pub const CONTEXTS_MAX: usize = 16;
/// The most transfer syntaxes of a context.
const SYNTAXES_MAX: usize = 8;

/// A context that the initiator offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextDefinition {
    /// The identifier: odd, of the initiator.
    pub identifier: i64,
    /// The abstract syntax of the values.
    pub abstract_syntax: ObjectIdentifier,
    /// The encodings that the initiator offers.
    pub transfer_syntaxes: Vec<ObjectIdentifier>,
}

impl ContextDefinition {
    /// A context in the basic encoding.
    #[must_use]
    pub fn basic(identifier: i64, abstract_syntax: ObjectIdentifier) -> Self {
        Self {
            identifier,
            abstract_syntax,
            transfer_syntaxes: vec![names::BASIC_ENCODING],
        }
    }
}

/// Why the provider rejects a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderRejection {
    /// No reason.
    NotSpecified,
    /// The abstract syntax is not supported.
    AbstractSyntax,
    /// None of the transfer syntaxes is supported.
    TransferSyntaxes,
    /// The local limit of contexts is reached.
    LocalLimit,
}

/// The result of one offered context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContextResult {
    /// Accepted, with this transfer syntax.
    Acceptance(ObjectIdentifier),
    /// Rejected by the user.
    UserRejection,
    /// Rejected by the provider.
    ProviderRejection(ProviderRejection),
}

/// The answer of a responder to the offered contexts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Negotiation {
    /// One result for each offered context, in the order of the offers.
    pub results: Vec<ContextResult>,
    /// The contexts that are defined.
    pub contexts: Contexts,
}

/// The defined context set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Contexts(Vec<(i64, ObjectIdentifier)>);

impl Contexts {
    /// Accepts the offered contexts whose abstract syntax is supported, in the basic encoding.
    #[must_use]
    pub fn negotiate(offered: &[ContextDefinition], supported: &[ObjectIdentifier]) -> Negotiation {
        let mut contexts = Self::default();
        let basic = names::BASIC_ENCODING;
        let decide = |definition: &ContextDefinition| {
            if !supported.contains(&definition.abstract_syntax) {
                let reason = ProviderRejection::AbstractSyntax;
                return ContextResult::ProviderRejection(reason);
            }
            if !definition.transfer_syntaxes.contains(&basic) {
                let reason = ProviderRejection::TransferSyntaxes;
                return ContextResult::ProviderRejection(reason);
            }
            contexts.define(definition);
            ContextResult::Acceptance(basic.clone())
        };
        let results = offered.iter().map(decide).collect();
        Negotiation { results, contexts }
    }

    /// The contexts that the responder has accepted, in the order of the offers.
    ///
    /// # Errors
    ///
    /// [`Fault::Invalid`] unless there is one result for each offered context, with an offered transfer syntax.
    pub fn confirmed(
        offered: &[ContextDefinition],
        results: &[ContextResult],
    ) -> Result<Self, Fault> {
        if offered.len() != results.len() {
            return Err(Fault::Invalid("one result for each offered context"));
        }
        let mut contexts = Self::default();
        for (definition, result) in offered.iter().zip(results) {
            match result {
                ContextResult::Acceptance(syntax)
                    if definition.transfer_syntaxes.contains(syntax) =>
                {
                    contexts.define(definition);
                }
                ContextResult::Acceptance(_) => {
                    return Err(Fault::Invalid("an offered transfer syntax"));
                }
                _ => {}
            }
        }
        Ok(contexts)
    }

    fn define(&mut self, definition: &ContextDefinition) {
        let syntax = definition.abstract_syntax.clone();
        self.0.push((definition.identifier, syntax));
    }

    /// The context of an abstract syntax.
    #[must_use]
    pub fn of(&self, abstract_syntax: &ObjectIdentifier) -> Option<i64> {
        let mut all = self.0.iter();
        all.find(|(_, syntax)| syntax == abstract_syntax)
            .map(|(identifier, _)| *identifier)
    }

    /// The abstract syntax of a context.
    #[must_use]
    pub fn abstract_syntax(&self, identifier: i64) -> Option<&ObjectIdentifier> {
        let mut all = self.0.iter();
        all.find(|(defined, _)| *defined == identifier)
            .map(|(_, syntax)| syntax)
    }

    /// The only context, which simply encoded user data are of.
    #[must_use]
    pub fn single(&self) -> Option<i64> {
        match self.0.as_slice() {
            [(identifier, _)] => Some(*identifier),
            _ => None,
        }
    }
}

/// Writes a context definition list, with the tag of its place.
pub(super) fn write_definitions(tag: Tag, contexts: &[ContextDefinition]) -> Pieces {
    let definition = |context: &ContextDefinition| {
        let syntaxes = context.transfer_syntaxes.iter();
        let syntaxes = syntaxes.map(|syntax| write::oid(Tag::OBJECT_IDENTIFIER, syntax));
        write::constructed(
            Tag::SEQUENCE,
            [
                write::integer(Tag::INTEGER, context.identifier),
                write::oid(Tag::OBJECT_IDENTIFIER, &context.abstract_syntax),
                write::constructed(Tag::SEQUENCE, syntaxes),
            ],
        )
    };
    write::constructed(tag, contexts.iter().map(definition))
}

pub(super) fn read_definitions(list: &Element<'_>) -> Result<Vec<ContextDefinition>, Fault> {
    let mut contexts: Vec<ContextDefinition> = Vec::new();
    let mut items = list.reader()?;
    while let Some(item) = items.read()? {
        let mut fields = item.reader()?;
        let identifier = fields.expect(Tag::INTEGER)?.integer()?;
        let abstract_syntax = fields.expect(Tag::OBJECT_IDENTIFIER)?.oid()?;
        let mut syntaxes = fields.expect(Tag::SEQUENCE)?.reader()?;
        let mut transfer_syntaxes = Vec::new();
        while let Some(syntax) = syntaxes.read()? {
            transfer_syntaxes.push(syntax.oid()?);
        }
        let known = contexts
            .iter()
            .any(|context| context.identifier == identifier);
        let many = contexts.len() >= CONTEXTS_MAX || transfer_syntaxes.len() > SYNTAXES_MAX;
        if known || many {
            return Err(Fault::Invalid("a bounded list of different contexts"));
        }
        contexts.push(ContextDefinition {
            identifier,
            abstract_syntax,
            transfer_syntaxes,
        });
    }
    Ok(contexts)
}

/// Writes a result list, with the tag of its place.
pub(super) fn write_results(tag: Tag, results: &[ContextResult]) -> Pieces {
    let result = |result: &ContextResult| {
        let (code, more) = match result {
            ContextResult::Acceptance(syntax) => (0, Some(write::oid(Tag::context(1), syntax))),
            ContextResult::UserRejection => (1, None),
            ContextResult::ProviderRejection(reason) => {
                let code = match reason {
                    ProviderRejection::NotSpecified => 0,
                    ProviderRejection::AbstractSyntax => 1,
                    ProviderRejection::TransferSyntaxes => 2,
                    ProviderRejection::LocalLimit => 3,
                };
                (2, Some(write::integer(Tag::context(2), code)))
            }
        };
        let code = Some(write::integer(Tag::context(0), code));
        write::constructed(Tag::SEQUENCE, [code, more].into_iter().flatten())
    };
    write::constructed(tag, results.iter().map(result))
}

pub(super) fn read_results(list: &Element<'_>) -> Result<Vec<ContextResult>, Fault> {
    let mut results = Vec::new();
    let mut items = list.reader()?;
    while let Some(item) = items.read()? {
        if results.len() >= CONTEXTS_MAX {
            return Err(Fault::Invalid("a bounded list of results"));
        }
        let mut fields = item.reader()?;
        let code = fields.expect(Tag::context(0))?.number(2)?;
        let syntax = fields.optional(Tag::context(1))?;
        let reason = fields.optional(Tag::context(2))?;
        results.push(match (code, syntax) {
            // The basic encoding is the only one that is offered.
            (0, None) => ContextResult::Acceptance(names::BASIC_ENCODING),
            (0, Some(syntax)) => ContextResult::Acceptance(syntax.oid()?),
            (1, _) => ContextResult::UserRejection,
            _ => ContextResult::ProviderRejection(match reason {
                None => ProviderRejection::NotSpecified,
                Some(reason) => match reason.integer()? {
                    1 => ProviderRejection::AbstractSyntax,
                    2 => ProviderRejection::TransferSyntaxes,
                    3 => ProviderRejection::LocalLimit,
                    _ => ProviderRejection::NotSpecified,
                },
            }),
        });
    }
    Ok(results)
}
