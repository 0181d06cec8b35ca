//! The nodes of the spool, and who reads its queues.

use super::*;

#[test]
fn a_queue_has_readers_of_its_own() {
    let queue = "[[spool.queue]]\nname = \"@finished\"\nreaders = [\"billing\"]\n";
    let read = parse(queue).unwrap();
    let wanted = SpoolQueue {
        name: "@finished".to_owned(),
        readers: vec!["billing".to_owned()],
    };
    assert_eq!(read.spool.queues, [wanted]);
}

#[test]
fn at_a_standby_address_only_its_own_node_answers() {
    let node = |name: &str, listen: u16, standby: u16| {
        format!(
            "[[spool.node]]\nname = \"{name}\"\nlisten = \"127.0.0.1:{listen}\"\n\
             standby = \"127.0.0.1:{standby}\"\n"
        )
    };
    for (nodes, line, key, words) in [
        ([(1, 4), (2, 5)], 0, "", ""),
        ([(1, 2), (2, 5)], 6, "spool.node[1].standby", "node \"b\""),
        ([(1, 4), (2, 1)], 10, "spool.node[2].standby", "node \"a\""),
        ([(1, 1), (2, 5)], 6, "spool.node[1].standby", "listen"),
    ] {
        let [a, b] = nodes;
        let file = node("a", a.0, a.1) + &node("b", b.0, b.1);
        if key.is_empty() {
            assert!(parse(&file).is_ok(), "{:?}", parse(&file));
        } else {
            one_error(&file, line, key, words);
        }
    }
}

#[test]
fn nodes_share_a_log_where_they_are_known_to_share_a_machine() {
    let node = |name: &str, address: &str, runs: &str| {
        format!("[[spool.node]]\nname = \"{name}\"\nlisten = \"{address}\"\nruns = \"{runs}\"\n")
    };
    let places = |file: &str| parse(file).unwrap().spool.log_places();
    assert_eq!(places(""), [0, 0]);
    assert_eq!(places("[spool]\nlog = \"node\"\n"), [0, 1]);
    let nodes = [
        node("a", "127.0.0.1:1", "here"),
        node("b", "192.0.2.1:1", "elsewhere"),
        node("c", "192.0.2.2:1", "elsewhere"),
        node("d", "192.0.2.9:1", "here"),
        node("e", "[::ffff:192.0.2.1]:2", "elsewhere"),
        // Tunnels to wherever.
        node("f", "127.0.0.1:2", "elsewhere"),
        node("g", "127.0.0.1:3", "elsewhere"),
    ];
    assert_eq!(places(&nodes.concat()), [0, 1, 2, 0, 1, 5, 6]);
}

#[test]
fn nodes_in_clear_text_on_a_network_are_known() {
    let node = |rest: &str| format!("[[spool.node]]\nname = \"a\"\n{rest}\n");
    let tls = "[spool.tls]\ncertificate = \"c\"\nkey = \"k\"\nca = \"r\"\n";
    for (file, exposed) in [
        (node("listen = \"192.0.2.1:2600\""), true),
        (node("listen = \"[::]:2600\""), true),
        (
            node("listen = \"127.0.0.1:2600\"\nstandby = \"192.0.2.1:2600\""),
            true,
        ),
        (node("listen = \"127.0.0.1:2600\""), false),
        (node("listen = \"192.0.2.1:2600\"\ntls = \"off\""), false),
        (tls.to_owned() + &node("listen = \"192.0.2.1:2600\""), false),
    ] {
        let settings = parse(&file).unwrap();
        assert_eq!(
            settings.spool.exposed().count(),
            usize::from(exposed),
            "{file}"
        );
    }
}

#[test]
fn node_names_ports_and_folders_differ() {
    let node = "[[spool.node]]\nname = \"a\"\nlisten = \"127.0.0.1:2600\"\n";
    let found = errors(&format!("{node}{node}"));
    let keys: Vec<&str> = found.iter().map(|(_, key, _)| key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "spool.node[2].data",
            "spool.node[2].name",
            "spool.node[2].listen"
        ]
    );
}
