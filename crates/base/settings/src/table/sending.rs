//! Options for what accounts send.

use super::row::Fallback::{Is, Nothing, Required};
use crate::kind::Kind::{Choice, Integer, Name};

/// The addresses that an account may send from.
const SENDERS: &[&str] = &["own", "foreign"];

sections! {
    "sending" Always, "Mail that accounts submit with authentication: whose addresses, and how much. A stolen password sends within these bounds. Each gateway counts alone, and from zero after a restart." {
        live senders: Choice(SENDERS), Is("\"own\""),
            "Addresses that an account may send from (MAIL FROM), and name as author (From). `own`: addresses of the account alone. `foreign`: those, and all addresses of domains that are not local.";
        live messages_per_hour: Integer(0, 10_000_000), Is("1000"),
            "Messages of an account in an hour; 0 is no limit. An account that was idle may send all of them at once, and then one in each share of the hour.";
        live recipients_per_hour: Integer(0, 10_000_000), Is("5000"),
            "Recipients of an account's messages in an hour, each counted for each message; 0 is no limit.";
        live over: Choice(&["defer", "hold"]), Is("\"defer\""),
            "Mail over a limit: `defer` answers 450 4.7.1, and the client tries again later. `hold` takes the mail and holds it: `vere queue orders` lists it, `vere queue release --id ID` lets it go. As much again is held in an hour, and mail beyond gets 450. The log names the account in any case.";
    }

    "sending.account" Repeated, "Bounds of single accounts; omitted keys are those of `[sending]`." {
        live name: Name, Required("name = \"news@example.org\""),
            "The account.";
        live senders: Choice(SENDERS), Nothing("as `sending.senders`"),
            "Addresses that the account may send from.";
        live messages_per_hour: Integer(0, 10_000_000), Nothing("as `sending.messages_per_hour`"),
            "Messages in an hour; 0 is no limit.";
        live recipients_per_hour: Integer(0, 10_000_000), Nothing("as `sending.recipients_per_hour`"),
            "Recipients in an hour; 0 is no limit.";
    }
}
