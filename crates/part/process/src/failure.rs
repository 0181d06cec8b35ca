//! Why a command or a role ended, in the words that a person reads.

use std::fmt;

/// Why a command did not do what was asked, for the person who typed it.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    /// A failure with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let said = cause.to_string();
            // Some errors say their cause themselves.
            if !text.ends_with(&said) {
                text = format!("{text}: {said}");
            }
            source = cause.source();
        }
        Self(text)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_cause_is_said_once() {
        let source = io::Error::from(io::ErrorKind::PermissionDenied);
        let error = vere_telemetry::trace::FindError {
            path: "/x".into(),
            source,
        };
        let text = Failure::from(error).to_string();
        assert_eq!(text.matches("ermission denied").count(), 1, "{text}");
    }
}
