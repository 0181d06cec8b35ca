//! What accounts may send.

/// The bounds of all accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sending {
    /// The bounds of accounts without a section.
    pub default: AccountSending,
    /// Single accounts, in the order of the file; the last one of a name holds.
    pub accounts: Vec<(String, AccountSending)>,
    /// The treatment of mail over a bound.
    pub over: OverSending,
}

/// The bounds of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountSending {
    /// The addresses of senders and authors.
    pub senders: Senders,
    /// Messages in an hour; `None` for no bound.
    pub messages_per_hour: Option<u32>,
    /// Recipients in an hour; `None` for no bound.
    pub recipients_per_hour: Option<u32>,
}

/// The addresses that an account may send from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Senders {
    /// The account's own addresses.
    Own,
    /// The account's own addresses, and all addresses of domains that are not local.
    Foreign,
}

/// The treatment of mail over a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverSending {
    /// The client gets 450 and tries again.
    Defer,
    /// The mail is taken and held until an operator releases it.
    Hold,
}

impl Sending {
    /// The bounds of an account, in whatever case its name is written.
    #[must_use]
    pub fn of(&self, account: &str) -> AccountSending {
        let is_meant = |(name, _): &&(String, _)| name.eq_ignore_ascii_case(account);
        let own = self.accounts.iter().rev().find(is_meant);
        own.map_or(self.default, |(_, own)| *own)
    }
}
