//! Budgets of accounts in the state of a mount.

use serde_json::{Value, json};
use vere_accounts::{BudgetState, States};
use vere_ports::mail_accounts::AccountId;

use crate::figures::{octets, time};

/// Adds the budgets to the accounts of a state.
pub(crate) fn add(status: &mut Value, states: &States) {
    let accounts = status.get_mut("accounts").and_then(Value::as_array_mut);
    for account in accounts.into_iter().flatten() {
        let number = account.get("account").and_then(Value::as_u64);
        let state = number
            .and_then(|number| u16::try_from(number).ok())
            .and_then(|number| states.of(AccountId(number)));
        let (up, down) = state.map_or((None, None), |state| (state.upload, state.download));
        if let Some(fields) = account.as_object_mut() {
            fields.insert("upload".to_owned(), of(up));
            fields.insert("download".to_owned(), of(down));
        }
    }
}

fn of(budget: Option<BudgetState>) -> Value {
    budget.map_or(Value::Null, |budget| {
        json!({
            "used_octets": budget.used,
            "limit_octets": budget.limit,
            "room_in_s": budget.room_in.as_secs(),
        })
    })
}

/// The budgets of an account for people.
pub(crate) fn shown(account: &Value) -> Vec<String> {
    let mut parts = Vec::new();
    for (key, way) in [("upload", "up"), ("download", "down")] {
        let number = |field: &str| account[key][field].as_u64();
        if let (Some(used), Some(limit)) = (number("used_octets"), number("limit_octets")) {
            parts.push(format!(
                "{} of {} {way} in 24 h",
                octets(used),
                octets(limit)
            ));
        }
    }
    parts
}

/// The data that wait for a budget, and the time until room, for people.
pub(crate) fn waiting(status: &Value) -> Option<String> {
    let accounts = status["accounts"].as_array().into_iter().flatten();
    let mut scarce = accounts.filter(|account| account["scarce"].is_string());
    let first = scarce.next()?;
    let left = first["scarce_for_s"].as_u64().unwrap_or(0);
    let mut text = format!(
        "account {} has space in {}: {}",
        first["account"],
        time(left.max(1)),
        first["scarce"].as_str().unwrap_or_default()
    );
    let waiting = status["octets_waiting"].as_u64().unwrap_or(0);
    if waiting > 0 {
        text = format!("{} wait; {text}", octets(waiting));
    }
    let others = scarce.count();
    if others > 0 {
        text.push_str(&format!("; {others} more accounts have none either"));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::{shown, waiting};
    use serde_json::json;

    #[test]
    fn budgets_for_people() {
        let account = json!({
            "account": 1,
            "upload": { "used_octets": 300 << 20, "limit_octets": 400 << 20, "room_in_s": 0 },
            "download": null,
        });
        assert_eq!(shown(&account), ["300 MiB of 400 MiB up in 24 h"]);
        let mut status = json!({ "accounts": [account], "octets_waiting": 5 << 20 });
        assert_eq!(waiting(&status), None);
        status["accounts"][0]["scarce"] = json!("used up");
        status["accounts"][0]["scarce_for_s"] = json!(3 * 3_600);
        assert_eq!(
            waiting(&status).unwrap(),
            "5.0 MiB wait; account 1 has space in 3 h: used up"
        );
    }
}
