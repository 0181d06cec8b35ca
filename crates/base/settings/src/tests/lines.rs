//! On which lines mistakes are said to be.

use super::*;

#[test]
fn a_section_that_stands_twice_is_named_once() {
    let found = errors("[smtp]\nlisten = []\n[imap]\n[smtp]\n");
    let said: Vec<_> = found.iter().map(|(line, ..)| *line).collect();
    assert_eq!(said, [6], "{found:?}");
    assert!(found[0].2.contains("duplicate key: smtp"), "{found:?}");
}

#[test]
fn keys_behind_a_torn_header_are_not_taken_for_others() {
    let found = errors("usr = \"x\"\n[smtp\nlisten = [\"127.0.0.1:25\"]\n");
    let said: Vec<_> = found.iter().map(|(line, key, _)| (*line, &**key)).collect();
    assert_eq!(said, [(3, "usr"), (4, "")], "{found:?}");
    let text = "version = 1\n[smtp\nlisten = []\nhostname = \"a.b\"\n";
    let errors = Settings::parse(text, "f.toml").expect_err("torn");
    assert_eq!(errors.errors().len(), 1, "{errors}");
}

#[test]
fn keys_are_found_by_their_lines() {
    let text = "version = 1\nhostname = \"a.b\"\n\n[smtp]\nlisten = []\n\
                [[route]]\ndomain = \"*\"\nnext_hop = \"c.d\"\n";
    let lines = KeyLines::of(text);
    assert_eq!(lines.at("hostname"), Some(2));
    assert_eq!(lines.at("smtp.listen"), Some(5));
    assert_eq!(lines.at("route[1].next_hop"), Some(8));
    assert_eq!(lines.at("route[1].username"), Some(6));
    assert_eq!(lines.at("spool.node[7].name"), None);
    // Defaults stand on no line, or behind the header of their section.
    assert_eq!(lines.at("data"), None);
    assert_eq!(lines.at("imap.listen"), None);
    assert_eq!(KeyLines::of("version = ").at("version"), None);
}
