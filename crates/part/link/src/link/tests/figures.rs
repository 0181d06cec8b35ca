//! What an operator sees of the link.

use super::*;

/// A node that the group does not need may renew its certificate, and nobody would see it.
#[test]
fn a_certificate_of_a_node_that_left_is_not_shown() {
    let node = RunningNode::start(Durability::Memory, config());
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let unused = nobody.local_addr().unwrap();
    drop(nobody);
    let register = TestRegister::new();
    local(async {
        let mut options = options_for(&[node.address, unused], &register);
        options.replicas = 1;
        let link = connect(options).await;
        let end = vere_units::Timestamp::from_millis(2_000_000);
        for node in 0..2 {
            let of = Link { node, address: 0 };
            link.shared.note_certificate(of, end);
        }
        assert_eq!(link.node_certificate_ends(), [("a".to_owned(), end)]);
    });
}
