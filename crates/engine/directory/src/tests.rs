use std::time::{Duration, Instant};

use vere_ports::directory::{Change, ChangeError, Credentials, MemoryStore};
use vere_sasl::ScramKeys;
use vere_smtp::address::AddrSpec;
use vere_units::Secret;

use super::*;
use crate::password::{PasswordError, SCRAM_ITERATIONS, Salts, credentials};
use vere_ports::directory::Lookup;

fn account(text: &str) -> AccountName {
    AccountName::parse(text).unwrap()
}

fn secret(text: &str) -> Secret<String> {
    Secret::new(text.to_owned())
}

const SALTS: Salts = Salts {
    argon2: [7; 16],
    scram: [9; 16],
};

/// Domains `a.test` and `b.test`, accounts of `a.test` for the names given.
fn directory(accounts: &[&str]) -> Directory {
    let directory = Directory::new(Arc::new(MemoryStore::default()), Some('+'));
    for domain in ["a.test", "b.test"] {
        directory
            .add_domain(DomainName::parse(domain).unwrap(), None)
            .unwrap();
    }
    for name in accounts {
        directory
            .add_account(account(&format!("{name}@a.test")), None)
            .unwrap();
    }
    directory
}

fn alias(directory: &Directory, name: &str, targets: &[&str]) {
    directory
        .set_alias(account(name), targets.iter().copied())
        .unwrap();
}

/// Resolves to a short text: destinations separated by spaces, remote ones in angle brackets.
fn resolve(directory: &Directory, address: &str) -> String {
    let show = |account: &AccountName, tag: &Option<String>| match tag {
        Some(tag) => format!("{account}({tag})"),
        None => account.to_string(),
    };
    match directory
        .resolve(&AddrSpec::parse(address).unwrap())
        .unwrap()
    {
        Resolution::Local { account, tag } => show(&account, &tag),
        Resolution::Forward(destinations) => {
            let one = |destination: &Target| match destination {
                Target::Local { account, tag } => show(account, tag),
                Target::Remote(address) => format!("<{address}>"),
            };
            destinations.iter().map(one).collect::<Vec<_>>().join(" ")
        }
        Resolution::NotLocal => "not local".to_owned(),
        Resolution::NoSuchUser => "no such user".to_owned(),
        Resolution::Loop => "loop".to_owned(),
    }
}

#[test]
fn an_account_is_found_beside_an_alias_of_its_name() {
    let directory = directory(&["alice", "bob", "bob+x"]);
    alias(&directory, "bob@a.test", &["bob@a.test", "alice@a.test"]);
    alias(&directory, "team@a.test", &["alice@a.test"]);
    let at = |address: &str| {
        let found = directory.account_at(&AddrSpec::parse(address).unwrap());
        found
            .unwrap()
            .map(|(account, tag)| (account.to_string(), tag))
    };
    let of = |name: &str, tag: Option<&str>| Some((name.to_owned(), tag.map(str::to_owned)));
    assert_eq!(at("BOB@a.test"), of("bob@a.test", None));
    assert_eq!(at("bob+news@a.test"), of("bob@a.test", Some("news")));
    assert_eq!(at("bob+x@a.test"), of("bob+x@a.test", None));
    for nobody in ["team@a.test", "eve@a.test", "bob@b.test", "bob@else.test"] {
        assert_eq!(at(nobody), None, "{nobody}");
    }
}

#[test]
fn accounts_in_any_spelling() {
    let directory = directory(&["alice", "j\u{f6}rg", "o'neill"]);
    assert_eq!(resolve(&directory, "alice@a.test"), "alice@a.test");
    assert_eq!(resolve(&directory, "ALICE@A.Test"), "alice@a.test");
    assert_eq!(resolve(&directory, "\"alice\"@a.test"), "alice@a.test");
    assert_eq!(
        resolve(&directory, "jo\u{308}rg@a.test"),
        "j\u{f6}rg@a.test"
    );
    assert_eq!(resolve(&directory, "o'neill@a.test"), "o'neill@a.test");
    assert_eq!(resolve(&directory, "alice@b.test"), "no such user");
    assert_eq!(resolve(&directory, "bob@a.test"), "no such user");
    assert_eq!(resolve(&directory, "alice@c.test"), "not local");
    assert_eq!(resolve(&directory, "alice@sub.a.test"), "not local");
    assert_eq!(resolve(&directory, "alice@[192.0.2.1]"), "not local");
}

#[test]
fn international_domains_are_one_name_in_both_forms() {
    let directory = directory(&[]);
    directory
        .add_domain(DomainName::parse("b\u{fc}cher.test").unwrap(), None)
        .unwrap();
    directory
        .add_account(account("a@xn--bcher-kva.test"), None)
        .unwrap();
    assert_eq!(
        resolve(&directory, "a@B\u{fc}cher.test"),
        "a@xn--bcher-kva.test"
    );
    assert!(directory.is_local_domain("B\u{fc}cher.TEST.").unwrap());
    assert!(!directory.is_local_domain("..").unwrap());
}

#[test]
fn tags_are_cut_off_only_where_no_exact_name_is() {
    let found = directory(&["alice", "alice+old"]);
    alias(&found, "list@a.test", &["alice@a.test"]);
    assert_eq!(
        resolve(&found, "alice+News.2@a.test"),
        "alice@a.test(News.2)"
    );
    assert_eq!(resolve(&found, "alice+old@a.test"), "alice+old@a.test");
    assert_eq!(resolve(&found, "alice+a+b@a.test"), "alice@a.test(a+b)");
    assert_eq!(resolve(&found, "alice+@a.test"), "alice@a.test()");
    assert_eq!(
        resolve(&found, "\"alice+../../x\"@a.test"),
        "alice@a.test(../../x)"
    );
    assert_eq!(resolve(&found, "list+x@a.test"), "alice@a.test");
    assert_eq!(resolve(&found, "+x@a.test"), "no such user");
    let without = Directory::new(Arc::clone(&found.store), None);
    assert_eq!(resolve(&without, "alice+x@a.test"), "no such user");
}

#[test]
fn aliases_fan_out_each_destination_once() {
    let directory = directory(&["alice", "bob"]);
    alias(
        &directory,
        "all@a.test",
        &["alice@a.test", "team@b.test", "x@far.test"],
    );
    alias(
        &directory,
        "team@b.test",
        &[
            "bob+team@a.test",
            "alice@a.test",
            "X@far.test",
            "x@far.test",
        ],
    );
    let all = "alice@a.test <x@far.test> bob@a.test(team) <X@far.test>";
    assert_eq!(resolve(&directory, "all@a.test"), all);
    alias(&directory, "one@a.test", &["bob@a.test"]);
    assert_eq!(resolve(&directory, "one@a.test"), "bob@a.test");
    alias(&directory, "away@a.test", &["x@far.test"]);
    assert_eq!(resolve(&directory, "away@a.test"), "<x@far.test>");
}

#[test]
fn alias_of_an_account_may_keep_a_copy() {
    let directory = directory(&["alice", "bob"]);
    alias(&directory, "alice@a.test", &["Alice@a.test", "x@far.test"]);
    assert_eq!(
        resolve(&directory, "alice@a.test"),
        "alice@a.test <x@far.test>"
    );
    // By a detour as well.
    alias(&directory, "bob@a.test", &["two@a.test"]);
    alias(&directory, "two@a.test", &["bob@a.test", "y@far.test"]);
    assert_eq!(resolve(&directory, "bob@a.test"), "bob@a.test <y@far.test>");
}

#[test]
fn two_ways_to_one_alias_are_no_loop() {
    let directory = directory(&["d"]);
    alias(&directory, "a@a.test", &["b@a.test", "c@a.test"]);
    alias(&directory, "b@a.test", &["d@a.test"]);
    alias(&directory, "c@a.test", &["d@a.test"]);
    alias(&directory, "d@a.test", &["x@far.test"]);
    assert_eq!(resolve(&directory, "a@a.test"), "<x@far.test>");
}

#[test]
fn loops_end() {
    let directory = directory(&["alice"]);
    alias(&directory, "self@a.test", &["self@a.test"]);
    alias(&directory, "p@a.test", &["q@a.test"]);
    alias(&directory, "q@a.test", &["r@b.test"]);
    alias(&directory, "r@b.test", &["p@a.test"]);
    alias(&directory, "s@a.test", &["p@a.test", "alice@a.test"]);
    assert_eq!(resolve(&directory, "self@a.test"), "loop");
    assert_eq!(resolve(&directory, "p@a.test"), "loop");
    assert_eq!(resolve(&directory, "s@a.test"), "alice@a.test");
    let resolution = directory
        .resolve(&AddrSpec::parse("p@a.test").unwrap())
        .unwrap();
    assert_eq!(
        resolution.refusal(),
        Some(vere_smtp::refusal::Refusal::RoutingLoop)
    );
}

#[test]
fn aliases_that_multiply_are_bounded() {
    let directory = directory(&[]);
    let names = |level: usize| (0..1_000).map(move |n| format!("x{level}-{n}@a.test"));
    for level in 0..6 {
        let below: Vec<String> = names(level + 1).collect();
        for name in names(level).take(20) {
            directory
                .set_alias(account(&name), below.iter().map(String::as_str))
                .unwrap();
        }
    }
    let started = Instant::now();
    assert_eq!(resolve(&directory, "x0-0@a.test"), "loop");
    // Followed in turn the ways through are more than could ever be counted.
    assert!(started.elapsed() < Duration::from_secs(120));
}

#[test]
fn long_chain_of_aliases_is_followed() {
    let directory = directory(&["end"]);
    for n in 0..2_000 {
        alias(
            &directory,
            &format!("c{n}@a.test"),
            &[&format!("c{}@a.test", n + 1)],
        );
    }
    alias(&directory, "c2000@a.test", &["end@a.test"]);
    assert_eq!(resolve(&directory, "c0@a.test"), "end@a.test");
}

#[test]
fn targets_that_went_away_are_left_out() {
    let directory = directory(&["alice"]);
    alias(&directory, "both@a.test", &["alice@a.test", "gone@a.test"]);
    alias(&directory, "none@a.test", &["gone@a.test"]);
    assert_eq!(resolve(&directory, "both@a.test"), "alice@a.test");
    assert_eq!(resolve(&directory, "none@a.test"), "no such user");
}

#[test]
fn catch_all_gets_what_nobody_has() {
    let directory = directory(&["alice", "rest"]);
    let domain = |name: &str| DomainName::parse(name).unwrap();
    directory
        .set_catch_all(domain("a.test"), Some("rest@a.test"))
        .unwrap();
    directory
        .set_catch_all(domain("b.test"), Some("x@far.test"))
        .unwrap();
    assert_eq!(resolve(&directory, "alice@a.test"), "alice@a.test");
    assert_eq!(resolve(&directory, "whoever@a.test"), "rest@a.test");
    assert_eq!(
        resolve(&directory, "\"../../etc/passwd\"@a.test"),
        "rest@a.test"
    );
    assert_eq!(resolve(&directory, "whoever@b.test"), "<x@far.test>");
    // One catch-all that leads to another's domain does not go round.
    directory
        .set_catch_all(domain("a.test"), Some("nobody@b.test"))
        .unwrap();
    directory
        .set_catch_all(domain("b.test"), Some("nobody@a.test"))
        .unwrap();
    assert_eq!(resolve(&directory, "whoever@a.test"), "no such user");
    directory.set_catch_all(domain("a.test"), None).unwrap();
    assert_eq!(resolve(&directory, "whoever@a.test"), "no such user");
}

#[test]
fn postmaster_without_domain_is_found() {
    let directory = directory(&["alice"]);
    let found = |directory: &Directory| directory.resolve_postmaster("mx.a.test").unwrap();
    assert_eq!(found(&directory), Resolution::NoSuchUser);
    alias(&directory, "postmaster@b.test", &["alice@a.test"]);
    let alice = Resolution::Local {
        account: account("alice@a.test"),
        tag: None,
    };
    assert_eq!(found(&directory), alice);
}

#[test]
fn accounts_own_what_reaches_them() {
    let directory = directory(&["alice", "bob"]);
    alias(&directory, "sales@a.test", &["alice@a.test", "x@far.test"]);
    let owns = |name: &str, address: &str| {
        let address = AddrSpec::parse(address).unwrap();
        directory.is_address_of(&account(name), &address).unwrap()
    };
    assert!(owns("alice@a.test", "Alice+tag@a.test"));
    assert!(owns("alice@a.test", "sales@a.test"));
    assert!(!owns("bob@a.test", "sales@a.test"));
    assert!(!owns("bob@a.test", "alice@a.test"));
    assert!(!owns("alice@a.test", "x@far.test"));
    assert!(!owns("alice@a.test", "nobody@a.test"));
}

#[test]
fn changes_are_checked() {
    let directory = directory(&["alice"]);
    let alice = account("alice@a.test");
    let elsewhere = account("alice@c.test");
    let domain = DomainName::parse("a.test").unwrap();
    let exists = ChangeError::AccountExists(alice.clone());
    assert_eq!(directory.add_account(alice.clone(), None), Err(exists));
    let unknown = ChangeError::NoSuchDomain(elsewhere.domain().clone());
    assert_eq!(
        directory.add_account(elsewhere.clone(), None),
        Err(unknown.clone())
    );
    assert_eq!(
        directory.set_alias(elsewhere, ["alice@a.test"]),
        Err(unknown)
    );
    assert_eq!(
        directory.set_alias(alice.clone(), []),
        Err(ChangeError::TargetCount(0))
    );
    for wrong in [
        "",
        "alice",
        "a b@c.test",
        "a@b@c",
        "a@c..d",
        "|/bin/sh",
        "a@c\r\nRCPT TO:<b@c>",
    ] {
        let result = directory.set_alias(alice.clone(), [wrong]);
        assert!(matches!(result, Err(ChangeError::Target(_))), "{wrong:?}");
        let result = directory.set_catch_all(domain.clone(), Some(wrong));
        assert!(matches!(result, Err(ChangeError::Target(_))), "{wrong:?}");
    }
    let in_use = ChangeError::DomainInUse(domain.clone(), 1, 0);
    assert_eq!(directory.remove_domain(domain.clone()), Err(in_use));
    directory.remove_account(alice.clone()).unwrap();
    assert_eq!(
        directory.remove_account(alice.clone()),
        Err(ChangeError::NoSuchAccount(alice))
    );
    directory.remove_domain(domain).unwrap();
}

fn with_passwords() -> Directory {
    let directory = directory(&["without"]);
    let made = credentials(&secret("correct horse"), &SALTS).unwrap();
    directory
        .add_account(account("alice@a.test"), Some(made))
        .unwrap();
    directory
}

#[test]
fn passwords_fit_or_not() {
    let directory = with_passwords();
    let login = |user: &str, text: &str| directory.verify_password(user, &secret(text)).unwrap();
    let alice = Login::Accepted(account("alice@a.test"));
    assert_eq!(login("alice@a.test", "correct horse"), alice);
    assert_eq!(login("ALICE@A.TEST", "correct horse"), alice);
    for (user, text) in [
        ("alice@a.test", "correct horsf"),
        ("alice@a.test", ""),
        ("alice@a.test", "correct horse\0"),
        ("alice@a.test", &"x".repeat(5_000)),
        ("alice", "correct horse"),
        ("bob@a.test", "correct horse"),
        ("without@a.test", "correct horse"),
        ("without@a.test", ""),
        ("", "correct horse"),
        ("../../x@a.test", "correct horse"),
    ] {
        assert_eq!(login(user, text), Login::Rejected, "{user:?}");
    }
}

#[test]
fn passwords_are_prepared_alike_when_set_and_checked() {
    let directory = directory(&[]);
    // U+00C5 typed as one character, then as A and a ring; U+00A0 counts as a space.
    let made = credentials(&secret("\u{c5}ngstr\u{f6}m\u{a0}1"), &SALTS).unwrap();
    directory
        .add_account(account("a@a.test"), Some(made))
        .unwrap();
    let other = secret("A\u{30a}ngstro\u{308}m 1");
    let login = directory.verify_password("a@a.test", &other).unwrap();
    assert_eq!(login, Login::Accepted(account("a@a.test")));
}

#[test]
fn scram_keys_fit_the_same_password() {
    let directory = with_passwords();
    let (name, keys) = directory.scram_keys("Alice@a.test").unwrap().unwrap();
    assert_eq!(name, account("alice@a.test"));
    let wanted = ScramKeys::derive("correct horse", &SALTS.scram, SCRAM_ITERATIONS).unwrap();
    assert!(keys == wanted);
    assert!(directory.scram_keys("bob@a.test").unwrap().is_none());
    assert!(directory.scram_keys("without@a.test").unwrap().is_none());
    assert!(directory.scram_keys("no address").unwrap().is_none());
}

#[test]
fn texts_that_are_no_passwords() {
    let made = |text: &str| credentials(&secret(text), &SALTS).map(drop);
    assert_eq!(made(""), Err(PasswordError::Empty));
    assert_eq!(
        made("\u{ad}"),
        Err(PasswordError::Empty),
        "a soft hyphen is nothing"
    );
    assert_eq!(made(&"x".repeat(1_025)), Err(PasswordError::TooLong(1_025)));
    assert_eq!(made("a\u{7}b"), Err(PasswordError::Characters));
    assert_eq!(made(&"x".repeat(1_024)), Ok(()));
}

#[test]
fn stored_credentials_hold_salted_hashes_and_print_nothing() {
    let made = credentials(&secret("correct horse"), &SALTS).unwrap();
    let hash = made.password_hash.expose();
    assert!(
        hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
        "{hash}"
    );
    assert!(
        made.scram_sha_256
            .expose()
            .starts_with("SCRAM-SHA-256$60000:")
    );
    let text = format!("{made:?}");
    assert!(
        !text.contains("argon2") && !text.contains("SCRAM-SHA-256$"),
        "{text}"
    );
    let other = Salts {
        argon2: [8; 16],
        scram: [8; 16],
    };
    assert_ne!(made, credentials(&secret("correct horse"), &other).unwrap());
}

#[test]
fn damaged_credentials_are_a_local_fault() {
    let directory = directory(&[]);
    let wrong = [
        "",
        "{PLAIN}secret",
        "$argon2id$v=19$m=19456,t=2,p=1$",
        "$argon2id$v=19$m=4294967295,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$JD9qiIWjCNMTGYouA3BzRKQJOCIpnzHQCC76mOxObIk",
        "$argon2i$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$JD9qiIWjCNMTGYouA3BzRKQJOCIpnzHQCC76mOxObIk",
        "$scrypt$ln=16,r=8,p=1$aM15713r3Xsvxbi31lqr1Q$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E",
    ];
    for (n, hash) in wrong.into_iter().enumerate() {
        let name = account(&format!("u{n}@a.test"));
        let made = Credentials {
            password_hash: secret(hash),
            scram_sha_256: secret("x"),
        };
        directory.add_account(name.clone(), Some(made)).unwrap();
        let error = Err(DirectoryError::Credentials(name.clone()));
        assert_eq!(
            directory.verify_password(&name.to_string(), &secret("secret")),
            error,
            "{hash}"
        );
        assert!(directory.scram_keys(&name.to_string()).is_err());
    }
}

#[test]
fn unknown_users_cost_as_much_as_known_ones() {
    let directory = with_passwords();
    let cost = |user: &str| {
        let one = |_| {
            let started = Instant::now();
            let login = directory.verify_password(user, &secret("wrong")).unwrap();
            assert_eq!(login, Login::Rejected);
            started.elapsed()
        };
        (0..5).map(one).min().unwrap()
    };
    let known = cost("alice@a.test");
    for user in [
        "bob@a.test",
        "without@a.test",
        "bob@nowhere.test",
        "not an address",
    ] {
        // Without the work it would be a thousandth; the machine may be busy with other things.
        let unknown = cost(user);
        assert!(unknown * 4 > known, "{user}: {unknown:?}, known {known:?}");
    }
}

/// A store whose disk is gone.
#[derive(Debug)]
struct Broken;

fn broken<T>() -> Result<T, StoreError> {
    Err(StoreError::Busy("directory.toml".into()))
}

impl Lookup for Broken {
    fn domain(&self, _: &DomainName) -> Result<Option<vere_ports::directory::Domain>, StoreError> {
        broken()
    }
    fn account(
        &self,
        _: &AccountName,
    ) -> Result<Option<vere_ports::directory::Account>, StoreError> {
        broken()
    }
    fn alias(&self, _: &AccountName) -> Result<Option<vere_ports::directory::Alias>, StoreError> {
        broken()
    }
    fn count(&self, _: &DomainName) -> Result<(usize, usize), StoreError> {
        broken()
    }
}

impl DirectoryStore for Broken {
    fn apply(&self, _: &Change) -> Result<(), ChangeError> {
        Ok(broken()?)
    }
    fn revision(&self) -> Result<u64, StoreError> {
        broken()
    }
    fn domains(&self) -> Result<Vec<vere_ports::directory::Domain>, StoreError> {
        broken()
    }
    fn accounts(
        &self,
        _: &vere_ports::directory::Page,
    ) -> Result<Vec<vere_ports::directory::Account>, StoreError> {
        broken()
    }
    fn aliases(
        &self,
        _: &vere_ports::directory::Page,
    ) -> Result<Vec<vere_ports::directory::Alias>, StoreError> {
        broken()
    }
}

#[test]
fn broken_store_is_never_a_no() {
    let directory = Directory::new(Arc::new(Broken), Some('+'));
    assert!(
        directory
            .resolve(&AddrSpec::parse("alice@a.test").unwrap())
            .is_err()
    );
    assert!(directory.is_local_domain("a.test").is_err());
    assert!(
        directory
            .verify_password("alice@a.test", &secret("x"))
            .is_err()
    );
    assert!(directory.scram_keys("alice@a.test").is_err());
    assert!(
        directory
            .add_domain(DomainName::parse("a.test").unwrap(), None)
            .is_err()
    );
}
