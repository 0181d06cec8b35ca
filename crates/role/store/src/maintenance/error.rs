//! Why a command on the mail store does not do as asked.

use std::error::Error;
use std::fmt;
use std::io;

use vere_control::AskError;
use vere_login::directory::DirectoryError;
use vere_ports::directory::NameError;
use vere_process::confirm::ConfirmError;
use vere_store::StoreError;

use crate::accounts::AccountsError;
use crate::files::FilesError;
use crate::search::ExplainError;

/// Why a command on the mail store does not do as asked.
#[derive(Debug)]
pub enum MaintenanceError {
    /// The files of the store are missing, in use or damaged.
    Files(FilesError),
    /// The opened store cannot be read or written.
    Store(StoreError),
    /// The search index cannot be opened.
    Index(io::Error),
    /// The search cannot be explained.
    Explain(ExplainError),
    /// The accounts cannot be listed, or mail must stay.
    Accounts(AccountsError),
    /// The store reports an account with an invalid name.
    Name(NameError),
    /// The directory of accounts cannot be read.
    Directory(DirectoryError),
    /// The running store refuses, or does not answer.
    Ask(AskError),
    /// The running store's answer has another form, such as that of another version.
    Answer(serde_json::Error),
    /// The operator did not confirm: nothing was done.
    Confirm(ConfirmError),
    /// Mailboxes cannot be shown, or messages not be brought back.
    Mailbox(MailboxTrouble),
}

/// Why a command on mailboxes does not do as asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MailboxTrouble {
    /// No store runs.
    Stopped,
    /// The account has no such mailbox, and keeps none.
    Absent {
        /// The name.
        mailbox: String,
    },
    /// The quota leaves no space for the messages; the text says how much.
    Quota(String),
}

impl fmt::Display for MailboxTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str(
                "the mail store does not run; `vere mailbox` works on the running system: start it with `vere serve`",
            ),
            Self::Absent { mailbox } => write!(f, "there is no mailbox {mailbox:?}"),
            Self::Quota(text) => f.write_str(text),
        }
    }
}

impl Error for MailboxTrouble {}

impl MaintenanceError {
    /// The error of another part; each variant has one.
    fn passed_on(&self) -> &(dyn Error + 'static) {
        match self {
            Self::Files(error) => error,
            Self::Store(error) => error,
            Self::Index(error) => error,
            Self::Explain(error) => error,
            Self::Accounts(error) => error,
            Self::Name(error) => error,
            Self::Directory(error) => error,
            Self::Ask(error) => error,
            Self::Answer(error) => error,
            Self::Confirm(error) => error,
            Self::Mailbox(error) => error,
        }
    }
}

impl fmt::Display for MaintenanceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.passed_on(), f)
    }
}

impl Error for MaintenanceError {
    /// The display is that of the direct cause; deeper causes follow here.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.passed_on().source()
    }
}

macro_rules! passes_on {
    ($($variant:ident($error:ty)),* $(,)?) => {$(
        impl From<$error> for MaintenanceError {
            fn from(error: $error) -> Self {
                Self::$variant(error)
            }
        }
    )*};
}

passes_on! {
    Files(FilesError),
    Store(StoreError),
    Explain(ExplainError),
    Accounts(AccountsError),
    Name(NameError),
    Directory(DirectoryError),
    Ask(AskError),
    Answer(serde_json::Error),
    Confirm(ConfirmError),
    Mailbox(MailboxTrouble),
}

#[cfg(test)]
mod tests {
    use vere_process::failure::Failure;

    use super::*;

    /// The command prints the text to the operator: an error reads as it did where it came from, causes included.
    #[test]
    fn an_error_passed_on_keeps_its_text() {
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        let text = Failure::from(MaintenanceError::Index(denied())).to_string();
        assert_eq!(text, Failure::from(denied()).to_string());
        let refused = || AskError::Refused("no such mailbox".to_owned());
        let text = Failure::from(MaintenanceError::from(refused())).to_string();
        assert_eq!(text, "no such mailbox");
        let what = "1 message would be removed".to_owned();
        let error = MaintenanceError::from(ConfirmError::NoTerminal { what });
        assert_eq!(
            error.to_string(),
            "1 message would be removed; nothing was done: add --yes"
        );
    }
}
