use std::collections::BTreeSet;

use super::*;

fn settings(rest: &str) -> Settings {
    let text = format!("version = 1\nhostname = \"mx.example.org\"\n{rest}");
    Settings::parse(&text, "/etc/vere/vere.toml").unwrap()
}

/// Settings in which every role listens.
const WHOLE: &str = "[dkim]\n[sendmail]\n[imap]\nlisten = [\"127.0.0.1:143\"]\n\
    [imaps]\nlisten = [\"127.0.0.1:993\"]\n[tls]\ncertificate = \"c\"\nkey = \"k\"\n\
    [delivery]\ncourier_processes = 2\n[metrics]\nlisten = \"127.0.0.1:9100\"\nstore = \"127.0.0.1:9101\"\n[web]\n";

#[test]
fn every_name_stands_once() {
    let names: BTreeSet<&str> = ROLES.iter().map(|spec| spec.name).collect();
    assert_eq!(names.len(), ROLES.len());
}

#[test]
fn roles_that_are_waited_for_exist_and_form_no_circle() {
    for spec in ROLES {
        for name in spec.after {
            assert!(named(name).is_some(), "{} waits for {name}", spec.name);
        }
    }
    let order: Vec<&str> = in_start_order().iter().map(|spec| spec.name).collect();
    let missing = ROLES.iter().map(|spec| spec.name);
    let missing: Vec<&str> = missing.filter(|name| !order.contains(name)).collect();
    assert!(missing.is_empty(), "in a circle of `after`: {missing:?}");
    assert_eq!(
        order,
        [
            "otlp", "spool", "signer", "store", "parser", "broker", "courier", "gateway",
            "workers", "worker", "front", "dnsbl", "web", "x400"
        ]
    );
}

/// Port 25 is opened once: for the front where there is one.
#[test]
fn the_front_has_port_25_in_place_of_the_gateway() {
    let with_smtp = |rest: &str| {
        let settings = settings(rest);
        let instances = instances(&settings);
        let has = instances.filter(|(_, instance)| {
            let mut sockets = instance.sockets.iter();
            sockets.any(|socket| socket.name == "smtp")
        });
        has.map(|(spec, _)| spec.name).collect::<Vec<_>>()
    };
    assert_eq!(with_smtp(""), ["gateway"]);
    assert_eq!(with_smtp("[front]\n"), ["front"]);
}

#[test]
fn the_front_has_the_sockets_of_its_own_metrics() {
    let settings = settings("[front]\n[metrics]\nfront = \"127.0.0.1:9102\"\n");
    let front = instances(&settings).find(|(spec, _)| spec.name == "front");
    let sockets = front.unwrap().1.sockets;
    let names: Vec<_> = sockets.iter().map(|socket| socket.name).collect();
    assert_eq!(names, ["smtp", "metrics-front"]);
}

#[test]
fn the_reference_of_the_settings_has_the_section_of_each_role() {
    let reference = vere_settings::reference(vere_settings::File::System);
    for section in ROLES.iter().filter_map(|spec| spec.section) {
        assert!(reference.contains(&format!("[{section}]")), "[{section}]");
    }
}

#[test]
fn an_instance_has_a_name_exactly_where_an_option_takes_it() {
    for (spec, instance) in instances(&settings(WHOLE)) {
        assert_eq!(spec.option.is_some(), instance.name.is_some(), "{spec:?}");
        let process = spec.process(instance.name.as_deref());
        assert!(!(spec.memory)(&settings(WHOLE)).is_empty(), "{process}");
    }
}

#[test]
fn descriptors_keep_their_names_and_their_order() {
    let settings = settings(WHOLE);
    let rows: Vec<String> = instances(&settings)
        .map(|(spec, instance)| {
            let names: Vec<String> = instance
                .sockets
                .iter()
                .map(|socket| format!("{}={}", socket.section, socket.name))
                .collect();
            format!(
                "{} {}",
                spec.process(instance.name.as_deref()),
                names.join(" ")
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            "spool-a spool-a=spool",
            "spool-b spool-b=spool",
            "signer web-signer=web-signer",
            "store imap=imap imaps=imaps lmtp=lmtp metrics-store=metrics-store",
            "courier-1 ",
            "courier-2 ",
            "gateway sendmail=sendmail smtp=smtp submission=submission submissions=submissions acme=acme \
             acme-tls=acme-tls metrics=metrics",
            "web https=https http=http metrics-web=metrics-web web-signer=web-signer",
        ]
    );
}

#[test]
fn a_store_that_only_its_metrics_reach_is_not_configured() {
    let text = "[delivery]\nlocal = \"maildir\"\n[lmtp]\nlisten = []\n\
                [metrics]\nstore = \"127.0.0.1:9101\"\n";
    let of_store = |(spec, instance): (&RoleSpec, Instance)| {
        (spec.name == "store").then(|| instance.is_configured())
    };
    assert_eq!(instances(&settings(text)).find_map(of_store), Some(false));
    assert_eq!(instances(&settings("")).find_map(of_store), Some(true));
}

/// A unit whose name no role knows would pass a socket that nobody takes.
#[test]
fn socket_units_of_systemd_name_sockets_of_the_table() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../packaging/systemd");
    let settings = settings(WHOLE);
    let sections: BTreeSet<String> = instances(&settings)
        .flat_map(|(_, instance)| instance.sockets)
        .map(|socket| socket.section)
        .collect();
    let units = std::fs::read_dir(folder).unwrap();
    let texts = units.map(|unit| std::fs::read_to_string(unit.unwrap().path()).unwrap());
    let mut count = 0;
    for text in texts {
        let mut lines = text.lines();
        if let Some(name) = lines.find_map(|line| line.strip_prefix("FileDescriptorName=")) {
            assert!(sections.contains(name), "{name}");
            count += 1;
        }
    }
    assert_eq!(count, 8);
}
