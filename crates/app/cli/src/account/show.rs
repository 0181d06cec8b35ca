//! `vere account show`: one account.

use std::fmt::Write as _;

use serde_json::{Value, json};
use vere_login::directory::open;
use vere_ports::directory::AccountName;
use vere_process::failure::Failure;
use vere_role_store::maintenance::accounts;
use vere_settings::{AccountQuota, AccountSending, LocalDelivery, Settings};

use super::records::{existing, leading, maildir};
use super::state;
use vere_process::json::printed;
use vere_process::wording::messages;

/// Prints an account.
///
/// # Errors
/// When the account is unknown, or the directory cannot be read.
pub(super) fn run(address: &str, json: bool, settings: &Settings) -> Result<String, Failure> {
    let name = AccountName::parse(address)?;
    let directory = open(settings)?;
    let account = existing(&directory, &name)?;
    let login = match (&account.credentials, state::is_disabled(&account)) {
        (None, _) => "no password",
        (Some(_), true) => "disabled",
        (Some(_), false) => "yes",
    };
    let aliases = leading(&directory, &name)?;
    let (mail, mail_text) = mail(&name, settings);
    let quota = quota(&name, settings);
    let sending = settings.sending.of(&name.to_string());
    let value = json!({
        "account": name.to_string(),
        "login": login,
        "aliases": aliases,
        "mail": mail,
        "quota": { "bytes": quota.size.map(|size| size.as_u64()), "messages": quota.messages },
        "sending": {
            "messages_per_hour": sending.messages_per_hour,
            "recipients_per_hour": sending.recipients_per_hour,
        },
    });
    let mut text = format!("{name}\n");
    let listed = match aliases.is_empty() {
        true => "none".to_owned(),
        false => aliases.join(", "),
    };
    for (key, value) in [
        ("login", login.to_owned()),
        ("aliases", listed),
        ("mail", mail_text),
        ("quota", quota_text(&quota)),
        ("sending", sending_text(&sending)),
    ] {
        let _ = writeln!(text, "  {key:<8} {value}");
    }
    Ok(printed(json, value, text))
}

/// The account's mail in the mail store.
fn mail(name: &AccountName, settings: &Settings) -> (Value, String) {
    if settings.delivery.local == LocalDelivery::Maildir {
        let path = maildir(name, settings).display().to_string();
        return (json!({ "maildir": path }), path);
    }
    match accounts::mail_of(settings, name) {
        Some(row) => {
            let text = accounts::amount(&row);
            let value = json!({ "mailboxes": row.mailboxes, "messages": row.messages, "bytes": row.octets });
            (value, text)
        }
        None => (
            Value::Null,
            "none yet, or the mail store does not run".to_owned(),
        ),
    }
}

/// The quota of the account: by the last section of the name, or the default.
pub(super) fn quota(name: &AccountName, settings: &Settings) -> AccountQuota {
    let name = name.to_string();
    let mut own = settings.quota.accounts.iter().rev();
    let own = own.find(|(account, _)| account.eq_ignore_ascii_case(&name));
    own.map_or(settings.quota.default, |(_, quota)| *quota)
}

pub(super) fn quota_text(quota: &AccountQuota) -> String {
    let size = quota.size.map(|size| size.to_string());
    let messages = quota.messages.map(messages);
    let bounds: Vec<String> = size.into_iter().chain(messages).collect();
    match bounds.is_empty() {
        true => "none".to_owned(),
        false => bounds.join(", "),
    }
}

fn sending_text(sending: &AccountSending) -> String {
    let bound = |count: Option<u32>, what: &str| match count {
        None => format!("{what} without limit"),
        Some(count) => format!("{count} {what}"),
    };
    format!(
        "{} and {} an hour",
        bound(sending.messages_per_hour, "messages"),
        bound(sending.recipients_per_hour, "recipients")
    )
}
