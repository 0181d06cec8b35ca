//! The traces of messages, probes and reports.

use vere_ber::BerError;

use super::message::MessageTransferEnvelope;
use super::probe::ProbeTransferEnvelope;
use super::report::ReportTransferEnvelope;
use crate::extension::{ExtensionValue, Extensions, StandardExtension};
use crate::trace::{
    InternalTraceInformation, InternalTraceInformationElement, TraceInformationElement,
};

macro_rules! traced {
    ($name:ident) => {
        impl $name {
            /// Adds an element for the local domain.
            pub fn push_trace(&mut self, element: TraceInformationElement) {
                self.trace_information.0.push(element);
            }

            /// The internal trace; empty if there is none.
            ///
            /// # Errors
            /// [`BerError`] if the extension is not an internal trace.
            pub fn internal_trace(&self) -> Result<InternalTraceInformation, BerError> {
                internal_trace(&self.extensions)
            }

            /// Adds an element for the local MTA to the internal trace.
            ///
            /// # Errors
            /// [`BerError`] if the extension is not an internal trace.
            pub fn push_internal_trace(
                &mut self,
                element: InternalTraceInformationElement,
            ) -> Result<(), BerError> {
                let mut trace = internal_trace(&self.extensions)?;
                trace.0.push(element);
                self.extensions
                    .set(&ExtensionValue::InternalTraceInformation(trace));
                Ok(())
            }
        }
    };
}

traced!(MessageTransferEnvelope);
traced!(ProbeTransferEnvelope);
traced!(ReportTransferEnvelope);

fn internal_trace(extensions: &Extensions) -> Result<InternalTraceInformation, BerError> {
    match extensions.value(StandardExtension::InternalTraceInformation)? {
        Some(ExtensionValue::InternalTraceInformation(trace)) => Ok(trace),
        _ => Ok(InternalTraceInformation::default()),
    }
}
