//! Why a request is not understood. The fault is the client's.

/// Why the body of a request is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The body is longer than the bound.
    #[error("expected at most {0} octets; the body is longer")]
    Long(usize),
    /// The body is not XML.
    #[error("expected XML; found {0}")]
    Xml(String),
    /// The body has a document type, which could define entities.
    #[error("expected XML without a document type")]
    DocumentType,
    /// Elements are nested too deeply.
    #[error("expected at most {0} levels of elements")]
    Deep(usize),
    /// The request has no address of a user.
    #[error("expected an EMailAddress")]
    NoAddress,
    /// The client wants an answer in a schema that this system does not write.
    #[error("expected the schema of Outlook; found another")]
    Schema,
}
