//! The presentation (X.226): normal mode with several contexts, and X.410-1984 mode.
//!
//! The presentation protocol data units (PPDUs) are user data of the session: [`Connect`] (CP) of CONNECT, [`Accept`] (CPA) of
//! ACCEPT, [`Reject`] (CPR) of REFUSE, [`Abort`] (ARU and ARP) of ABORT. Everything else is [`UserData`] in normal mode, and the
//! user's octets as they are in X.410 mode.
//!
//! ```text
//! CP   SET { [0] IMPLICIT SET { [0] IMPLICIT INTEGER mode },
//!            [1] IMPLICIT SET { components of RTORQ },                      -- X.410-1984 mode
//!            [2] IMPLICIT SEQUENCE { [0] version, [1] calling selector, [2] called selector, [4] contexts,
//!                                    [6] default context, [8] requirements, [9] session requirements, user data } }
//! CPA  SET { [0] mode, [1] components of RTOAC, [2] IMPLICIT SEQUENCE { [0] version, [3] responding selector,
//!            [5] results, [8] requirements, [9] session requirements, user data } }
//! CPR  SET { components of RTORJ } or SEQUENCE { [0] version, [3] responding selector, [5] results, [7] default result,
//!            [10] provider reason, user data }
//! ARU  SET { components of RTAB } or [0] IMPLICIT SEQUENCE { [0] contexts, user data }
//! ARP  SEQUENCE { [0] provider reason, [1] event }
//! user data  [APPLICATION 0] IMPLICIT OCTET STRING or [APPLICATION 1] IMPLICIT SEQUENCE OF PDV-list
//! PDV-list   SEQUENCE { OBJECT IDENTIFIER OPTIONAL, INTEGER context, [0] one value, [1] octets or [2] bits }
//! ```

mod connect;
mod contexts;
mod data;
mod end;
mod user_data;

pub use connect::{Accept, Connect, NormalAccept, NormalConnect};
pub use contexts::{
    CONTEXTS_MAX, ContextDefinition, ContextResult, Contexts, Negotiation, ProviderRejection,
};
pub use data::{DataReader, data_header};
pub use end::{Abort, NormalReject, Reject, RejectReason};
pub use user_data::{Pdv, UserData};

#[cfg(test)]
mod tests;
