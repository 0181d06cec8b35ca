//! The sections of the X.400 MTA.

use super::parse;
use crate::{X400Password, X400Peer};

const WHOLE: &str = r#"
[x400]
listen = ["127.0.0.1:2102"]
domain = "C=GB; A=Carrier; P=Acme"
expire_urgent = "2h"

[[x400.peer]]
name = "Atlas"
domain = "C=FR; A=Atlas"
password = "to us"
own_password_file = "atlas.password"
addresses = ["mta.example.net", "192.0.2.1:2102", "[2001:db8::1]"]
from = ["192.0.2.1"]
profile = "1984"
accept_recipients = ["P=Acme; A=Carrier; C=GB"]
send_content_types = ["2", "22"]

[[x400.peer]]
name = "open"
domain = "C=DE; A=Dbp"
nameless = "yes"

[[x400.route]]
address = "A=Atlas; C=FR"
to = "peer:Atlas"

[[x400.user]]
name = "smith"
size_max = "1 MiB"

[[x400.gateway]]
name = "AFTN"
"#;

#[test]
fn every_section_has_its_place() {
    let parsed = parse(WHOLE).unwrap();
    let x400 = parsed.x400.as_ref().expect("the section");
    assert_eq!(
        (x400.mta_name.as_str(), x400.group().as_str()),
        ("mx", "x400.mx")
    );
    assert_eq!(x400.expire.urgent.to_string(), "2h");
    assert_eq!(x400.expire.normal.to_string(), "1d");
    assert!(x400.archive && x400.audit);
    assert!(x400.socket.ends_with("x400/attach.sock"));
    let [atlas, open] = x400.peers.as_slice() else {
        panic!("two peers");
    };
    check_atlas(atlas);
    assert_eq!((open.mta_name.as_ref(), open.is_1984), (None, false));
    assert_eq!(x400.routes[0].to, "peer:atlas");
    assert_eq!(
        x400.users[0].size_max.map(|size| size.as_u64()),
        Some(1 << 20)
    );
    assert_eq!(
        (x400.gateways[0].name.as_str(), x400.gateways[0].keep_max),
        ("aftn", 10)
    );
}

fn check_atlas(atlas: &X400Peer) {
    let hosts: Vec<_> = atlas
        .addresses
        .iter()
        .map(|(host, port)| (host.as_str(), *port))
        .collect();
    assert_eq!(
        hosts,
        [
            ("mta.example.net", 102),
            ("192.0.2.1", 2102),
            ("2001:db8::1", 102)
        ]
    );
    // Queues have names in lower case; the name in a bind has cases.
    assert_eq!(
        (atlas.name.as_str(), atlas.mta_name.as_deref()),
        ("atlas", Some("Atlas"))
    );
    assert_eq!(atlas.own_name, "mx");
    assert!(matches!(&atlas.password, X400Password::Text(text) if text.expose() == "to us"));
    assert!(
        matches!(&atlas.own_password, X400Password::File(path) if path.ends_with("atlas.password"))
    );
    assert!(atlas.is_1984);
    assert_eq!(atlas.accepts.recipients, ["P=Acme; A=Carrier; C=GB"]);
    assert_eq!(atlas.sends.content_types, ["2", "22"]);
}
