//! The capabilities offered in each state (RFC 9051 section 7.2.2).

use vere_sasl::Mechanism;

use super::{Server, Session};

/// Offered always.
pub const ALWAYS: &[&str] = &[
    "IMAP4rev1",
    "IMAP4rev2",
    "SASL-IR",
    "ID",
    "ENABLE",
    "LITERAL+",
];

/// Offered once the client has logged in.
pub const LOGGED_IN: &[&str] = &[
    "NAMESPACE",
    "UNSELECT",
    "IDLE",
    "UIDPLUS",
    "MOVE",
    "CHILDREN",
    "LIST-EXTENDED",
    "LIST-STATUS",
    "SPECIAL-USE",
    "CREATE-SPECIAL-USE",
    "STATUS=SIZE",
    "ESEARCH",
    "SEARCHRES",
    "WITHIN",
    "BINARY",
    "CONDSTORE",
    "QRESYNC",
    "QUOTA",
    "QUOTA=RES-STORAGE",
    "QUOTA=RES-MESSAGE",
];

impl Server {
    /// The capabilities of now, separated by spaces.
    pub(super) fn capabilities(&self) -> String {
        let mut list = ALWAYS.join(" ");
        if !matches!(self.session, Session::NotAuthenticated) {
            let size = self.config.limits.message_size_max.as_u64();
            return format!("{list} {} APPENDLIMIT={size}", LOGGED_IN.join(" "));
        }
        if !self.peer.tls && self.peer.tls_available {
            list.push_str(" STARTTLS");
        }
        if !self.may_auth_in_clear() {
            list.push_str(" LOGINDISABLED");
        }
        for mechanism in &self.config.mechanisms {
            if self.may_auth_by(*mechanism) {
                list.push_str(" AUTH=");
                list.push_str(mechanism.name());
            }
        }
        list
    }

    /// Whether passwords are allowed over this connection.
    pub(super) fn may_auth_in_clear(&self) -> bool {
        self.peer.tls || self.peer.may_auth_in_clear
    }

    /// Mechanisms that do not reveal the password log in as safely as TLS, but the rest of the
    /// session is not protected: such mechanisms too need TLS or the permission for cleartext.
    pub(super) fn may_auth_by(&self, mechanism: Mechanism) -> bool {
        self.config.mechanisms.contains(&mechanism) && self.may_auth_in_clear()
    }
}
