//! Content filters.

use super::parse;
use crate::{FilterAddress, FilterKind, FilteredMail};

const THREE: &str = r#"[[filter]]
name = "rspamd"
kind = "rspamd"
address = "localhost:11333"
learn_address = "127.0.0.1:11334"
password_file = "rspamd.password"
when_unavailable = "accept"
[[filter]]
name = "clamav"
kind = "clamd"
address = "unix:/run/clamav/clamd.ctl"
size_max = "50 MiB"
mail = "all"
[[filter]]
name = "dkim"
kind = "milter"
address = "unix:/run/opendkim/opendkim.sock"
timeout = "5s"
connections_max = 4
mail = "submitted"
"#;

#[test]
fn filters_have_their_order_terms_and_defaults() {
    assert!(parse("").unwrap().filters.is_empty());
    let filters = parse(THREE).unwrap().filters;
    let [rspamd, clamav, dkim] = &filters[..] else {
        panic!("{filters:?}");
    };
    let names: Vec<_> = filters
        .iter()
        .map(|filter| (filter.name.as_str(), filter.kind))
        .collect();
    let expected = [
        ("rspamd", FilterKind::Rspamd),
        ("clamav", FilterKind::Clamd),
        ("dkim", FilterKind::Milter),
    ];
    assert_eq!(names, expected);
    assert_eq!(
        rspamd.address,
        FilterAddress::Host("localhost".to_owned(), 11_333)
    );
    let learn = rspamd.learn_address.as_ref().expect("an address");
    assert_eq!(learn.to_string(), "127.0.0.1:11334");
    let password = rspamd.password_file.as_ref().expect("a file");
    assert_eq!(password.to_str(), Some("/etc/vere/rspamd.password"));
    let timeouts: Vec<_> = filters
        .iter()
        .map(|filter| filter.timeout.to_string())
        .collect();
    assert_eq!(timeouts, ["10s", "30s", "5s"]);
    assert_eq!(
        (rspamd.size_max.to_string(), clamav.size_max.to_string()),
        ("20 MiB".to_owned(), "50 MiB".to_owned())
    );
    let mail: Vec<_> = filters.iter().map(|filter| filter.mail).collect();
    let expected = [
        FilteredMail::Received,
        FilteredMail::All,
        FilteredMail::Submitted,
    ];
    assert_eq!(mail, expected);
    assert_eq!((rspamd.connections_max, dkim.connections_max), (16, 4));
    assert!(!rspamd.defers_unavailable && clamav.defers_unavailable);
}

#[test]
fn everything_is_applied_at_reload() {
    let (old, new) = (
        parse(THREE).unwrap(),
        parse(&THREE.replace("5s", "6s")).unwrap(),
    );
    let changes = old.changes(&new);
    assert_eq!(changes.live, ["filter[3].timeout"]);
    assert!(changes.restart.is_empty());
    let added = parse("").unwrap().changes(&old);
    assert!(
        added.restart.is_empty() && !added.live.is_empty(),
        "{added:?}"
    );
}
