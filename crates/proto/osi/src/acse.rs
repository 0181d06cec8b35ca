//! Association control (X.227): AARQ, AARE, RLRQ, RLRE and ABRT, with the authentication functional unit.
//!
//! ```text
//! AARQ [APPLICATION 0] SEQUENCE { [0] version, [1] context name, [2]..[5] called AP title, AE qualifier, AP and AE invocation,
//!      [6]..[9] the same of the caller, [10] requirements, [11] mechanism, [12] authentication value, [29] implementation,
//!      [30] user information }
//! AARE [APPLICATION 1] SEQUENCE { [0] version, [1] context name, [2] result, [3] diagnostic, [4]..[7] responding AP title, AE
//!      qualifier, AP and AE invocation, [8] requirements, [9] mechanism, [10] authentication value, [29] implementation, [30] user
//!      information }
//! RLRQ [APPLICATION 2], RLRE [APPLICATION 3] SEQUENCE { [0] reason, [30] user information }
//! ABRT [APPLICATION 4] SEQUENCE { [0] source, [1] diagnostic, [30] user information }
//! ```

mod apdu;
mod associate;
mod information;

pub use apdu::{Apdu, Source};
pub use associate::{
    Aare, Aarq, AssociateResult, Authentication, AuthenticationValue, Diagnostic, EntityTitle,
    ProviderDiagnostic, UserDiagnostic,
};

#[cfg(test)]
mod tests;
