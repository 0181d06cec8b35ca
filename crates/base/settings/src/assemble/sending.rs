//! Sections about what accounts send.

use super::Assembly;
use crate::sending::{AccountSending, OverSending, Senders, Sending};

impl Assembly {
    pub(super) fn sending(&self) -> Sending {
        let bound = |key: &str| Some(self.need(key)).filter(|bound| *bound > 0);
        let default = AccountSending {
            senders: self.choice("sending.senders", senders),
            messages_per_hour: bound("sending.messages_per_hour"),
            recipients_per_hour: bound("sending.recipients_per_hour"),
        };
        Sending {
            default,
            accounts: self.each("sending.account", |at| {
                let own = self.account_sending(at, default);
                (self.need(&format!("{at}.name")), own)
            }),
            over: self.choice("sending.over", |text| {
                Some(match text {
                    "defer" => OverSending::Defer,
                    "hold" => OverSending::Hold,
                    _ => return None,
                })
            }),
        }
    }

    fn account_sending(&self, at: &str, default: AccountSending) -> AccountSending {
        let own_senders: Option<&'static str> = self.maybe(&format!("{at}.senders"));
        let bound = |key: &str, default: Option<u32>| match self.maybe(&format!("{at}.{key}")) {
            Some(own) => Some(own).filter(|bound| *bound > 0),
            None => default,
        };
        AccountSending {
            senders: own_senders.and_then(senders).unwrap_or(default.senders),
            messages_per_hour: bound("messages_per_hour", default.messages_per_hour),
            recipients_per_hour: bound("recipients_per_hour", default.recipients_per_hour),
        }
    }
}

fn senders(text: &str) -> Option<Senders> {
    Some(match text {
        "own" => Senders::Own,
        "foreign" => Senders::Foreign,
        _ => return None,
    })
}
