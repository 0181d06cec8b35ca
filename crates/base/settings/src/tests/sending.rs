//! What accounts send.

use super::parse;
use crate::{AccountSending, OverSending, Senders};

#[test]
fn accounts_have_the_bounds_of_all_but_for_keys_of_their_own() {
    let settings = parse("").unwrap().sending;
    let default = AccountSending {
        senders: Senders::Own,
        messages_per_hour: Some(1_000),
        recipients_per_hour: Some(5_000),
    };
    assert_eq!(settings.of("ann@example.org"), default);
    assert_eq!(settings.over, OverSending::Defer);
    let settings = parse(
        "[sending]\nmessages_per_hour = 7\nrecipients_per_hour = 0\nover = \"hold\"\n\
         [[sending.account]]\nname = \"news\"\nrecipients_per_hour = 9\nsenders = \"foreign\"\n\
         [[sending.account]]\nname = \"free\"\nmessages_per_hour = 0\n",
    );
    let settings = settings.unwrap().sending;
    let bounds = |name| {
        let own = settings.of(name);
        (own.senders, own.messages_per_hour, own.recipients_per_hour)
    };
    assert_eq!(settings.over, OverSending::Hold);
    assert_eq!(bounds("NEWS"), bounds("news"));
    assert_eq!(bounds("ann"), (Senders::Own, Some(7), None));
    assert_eq!(bounds("news"), (Senders::Foreign, Some(7), Some(9)));
    assert_eq!(bounds("free"), (Senders::Own, None, None));
}
