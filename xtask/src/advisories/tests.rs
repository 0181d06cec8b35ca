use super::*;
use crate::workspace::tests::made_of;

const TAKEN: &str =
    "taken 2026-08-21\nRUSTSEC-2026-0001 pool: >=1.2.0\nRUSTSEC-2023-0071 rsa: none\n";

fn lock(pool: &str) -> String {
    let package = |name: &str, version: &str| {
        format!(
            "[[package]]\nname = \"{name}\"\nversion = \"{version}\"\nsource = \"registry\"\n\n"
        )
    };
    package("pool", pool) + &package("rsa", "0.9.10")
}

fn checked(pool: &str, rules: &str) -> Result<(), Vec<String>> {
    let (_folder, workspace) = made_of(&[
        (SNAPSHOT, TAKEN),
        ("Cargo.lock", &lock(pool)),
        (RULES, rules),
    ]);
    match check(&workspace) {
        Outcome::Failed(findings) => Err(findings.iter().map(ToString::to_string).collect()),
        _ => Ok(()),
    }
}

const EXCEPTED: &str =
    "[advisories]\nignore = [{ id = \"RUSTSEC-2023-0071\", reason = \"makes keys alone\" }]\n";

#[test]
fn an_affected_version_is_found_unless_excepted_with_a_reason() {
    assert_eq!(checked("1.2.0", EXCEPTED), Ok(()));
    let found = checked("1.1.9", EXCEPTED).unwrap_err();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("Cargo.lock: pool 1.1.9: RUSTSEC-2026-0001"),
        "{found:?}"
    );
    assert_eq!(checked("1.2.0", "").unwrap_err().len(), 1);
    let silent = EXCEPTED.replace("makes keys alone", "");
    assert!(checked("1.2.0", &silent).unwrap_err()[0].starts_with("deny.toml"));
}

#[test]
fn an_exception_that_nothing_needs_is_found() {
    let more = EXCEPTED.replace("[{", "[{ id = \"RUSTSEC-2026-0001\", reason = \"x\" }, {");
    let found = checked("1.2.0", &more).unwrap_err();
    assert_eq!(
        found,
        ["deny.toml: no locked package needs the exception from RUSTSEC-2026-0001: remove it"]
    );
}
