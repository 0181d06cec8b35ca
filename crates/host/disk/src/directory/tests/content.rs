//! What every store answers, whatever it is made of.

use super::*;

#[test]
fn domains_come_and_go() {
    with_each(|store| {
        assert_eq!(store.domain(&domain("a.test")), Ok(None));
        store.apply(&add_domain("b.test")).unwrap();
        store.apply(&add_domain("A.test")).unwrap();
        let twice = store.apply(&add_domain("a.TEST"));
        assert_eq!(twice, Err(ChangeError::DomainExists(domain("a.test"))));
        let target = Some("x@far.test".to_owned());
        store
            .apply(&Change::SetCatchAll(domain("a.test"), target.clone()))
            .unwrap();
        let found = Domain {
            name: domain("a.test"),
            catch_all: target,
        };
        assert_eq!(store.domain(&domain("a.test")), Ok(Some(found.clone())));
        let other = Domain {
            name: domain("b.test"),
            catch_all: None,
        };
        assert_eq!(store.domains(), Ok(vec![found, other]));
        store
            .apply(&Change::SetCatchAll(domain("a.test"), None))
            .unwrap();
        assert_eq!(
            store.domain(&domain("a.test")).unwrap().unwrap().catch_all,
            None
        );
        store
            .apply(&Change::RemoveDomain(domain("a.test")))
            .unwrap();
        assert_eq!(store.domain(&domain("a.test")), Ok(None));
        let unknown = Err(ChangeError::NoSuchDomain(domain("a.test")));
        assert_eq!(
            store.apply(&Change::RemoveDomain(domain("a.test"))),
            unknown
        );
        assert_eq!(
            store.apply(&Change::SetCatchAll(domain("a.test"), None)),
            unknown
        );
        assert_eq!(store.apply(&add_account("x@a.test")), unknown);
        assert_eq!(store.apply(&set_alias("x@a.test", &["x@b.test"])), unknown);
    });
}

#[test]
fn accounts_keep_their_credentials() {
    with_each(|store| {
        store.apply(&add_domain("a.test")).unwrap();
        let alice = Account {
            name: name("alice@a.test"),
            credentials: Some(credentials("1")),
        };
        store.apply(&Change::AddAccount(alice.clone())).unwrap();
        store.apply(&add_account("bob@a.test")).unwrap();
        assert_eq!(store.account(&alice.name), Ok(Some(alice.clone())));
        let twice = store.apply(&add_account("Alice@a.test"));
        assert_eq!(twice, Err(ChangeError::AccountExists(alice.name.clone())));
        assert_eq!(
            store.account(&alice.name),
            Ok(Some(alice.clone())),
            "nothing was changed"
        );

        let set = |who: &AccountName, what| store.apply(&Change::SetCredentials(who.clone(), what));
        set(&alice.name, Some(credentials("2"))).unwrap();
        let found = store.account(&alice.name).unwrap().unwrap();
        assert_eq!(found.credentials, Some(credentials("2")));
        set(&alice.name, None).unwrap();
        assert_eq!(
            store.account(&alice.name).unwrap().unwrap().credentials,
            None
        );
        let nobody = name("nobody@a.test");
        assert_eq!(
            set(&nobody, None),
            Err(ChangeError::NoSuchAccount(nobody.clone()))
        );

        let in_use = Err(ChangeError::DomainInUse(domain("a.test"), 2, 0));
        assert_eq!(store.apply(&Change::RemoveDomain(domain("a.test"))), in_use);
        store
            .apply(&Change::RemoveAccount(alice.name.clone()))
            .unwrap();
        assert_eq!(store.account(&alice.name), Ok(None));
        let gone = Err(ChangeError::NoSuchAccount(alice.name.clone()));
        assert_eq!(
            store.apply(&Change::RemoveAccount(alice.name.clone())),
            gone
        );
        assert_eq!(store.count(&domain("a.test")), Ok((1, 0)));
    });
}

#[test]
fn aliases_keep_the_order_of_their_targets() {
    with_each(|store| {
        store.apply(&add_domain("a.test")).unwrap();
        let all = name("all@a.test");
        store
            .apply(&set_alias(
                "all@a.test",
                &["z@a.test", "a@far.test", "m@a.test"],
            ))
            .unwrap();
        let targets = |store: &dyn DirectoryStore| store.alias(&all).unwrap().unwrap().targets;
        assert_eq!(targets(store), ["z@a.test", "a@far.test", "m@a.test"]);
        store
            .apply(&set_alias("ALL@a.test", &["\"odd 'name'; --\"@far.test"]))
            .unwrap();
        assert_eq!(targets(store), ["\"odd 'name'; --\"@far.test"]);
        assert_eq!(store.count(&domain("a.test")), Ok((0, 1)));
        assert_eq!(store.aliases(&ALL).unwrap().len(), 1);
        for wrong in [&[][..], &["none"], &["@a.test"], &["a@"], &["a\n@b.test"]] {
            assert!(
                store.apply(&set_alias("all@a.test", wrong)).is_err(),
                "{wrong:?}"
            );
        }
        let many: Vec<String> = (0..1_001).map(|n| format!("x{n}@a.test")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let refused = store.apply(&set_alias("all@a.test", &many));
        assert_eq!(refused, Err(ChangeError::TargetCount(1_001)));
        store.apply(&set_alias("all@a.test", &many[1..])).unwrap();
        assert_eq!(targets(store), many[1..]);
        store.apply(&Change::RemoveAlias(all.clone())).unwrap();
        assert_eq!(store.alias(&all), Ok(None));
        let gone = Err(ChangeError::NoSuchAlias(all.clone()));
        assert_eq!(store.apply(&Change::RemoveAlias(all.clone())), gone);
        // No target of the old one comes back with a new one.
        store
            .apply(&set_alias("all@a.test", &["x@a.test"]))
            .unwrap();
        assert_eq!(targets(store), ["x@a.test"]);
    });
}

#[test]
fn listings_come_in_pages() {
    with_each(|store| {
        for text in ["a.test", "b.test"] {
            store.apply(&add_domain(text)).unwrap();
        }
        for text in [
            "c@a.test",
            "a@b.test",
            "b@a.test",
            "a@a.test",
            "\u{e9}@a.test",
            "a.a@a.test",
        ] {
            store.apply(&add_account(text)).unwrap();
        }
        let sorted = [
            "a.a@a.test",
            "a@a.test",
            "a@b.test",
            "b@a.test",
            "c@a.test",
            "\u{e9}@a.test",
        ];
        assert_eq!(accounts(store, &ALL), sorted);
        let of_a = Page {
            domain: Some(domain("a.test")),
            after: Some(name("a@a.test")),
            limit: 2,
        };
        assert_eq!(accounts(store, &of_a), ["b@a.test", "c@a.test"]);
        let rest = Page {
            after: Some(name("c@a.test")),
            ..of_a.clone()
        };
        assert_eq!(accounts(store, &rest), ["\u{e9}@a.test"]);
        assert!(accounts(store, &Page { limit: 0, ..ALL }).is_empty());
        let nowhere = Page {
            domain: Some(domain("c.test")),
            ..ALL
        };
        assert!(accounts(store, &nowhere).is_empty());

        for text in ["y@a.test", "x@a.test", "x@b.test"] {
            store
                .apply(&set_alias(text, &["a@a.test", "b@a.test"]))
                .unwrap();
        }
        let page = Page {
            domain: Some(domain("a.test")),
            after: Some(name("x@a.test")),
            limit: 5,
        };
        let found = store.aliases(&page).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].name.clone(), found[0].targets.len()),
            (name("y@a.test"), 2)
        );
    });
}

#[test]
fn content_is_there_after_opening_again() {
    let folder = TempDir::new().unwrap();
    for place in places(&folder) {
        assert!(
            matches!(open(&place), Err(StoreError::System(..))),
            "open makes nothing"
        );
        let store = create(&place).unwrap();
        store.apply(&add_domain("b\u{fc}cher.test")).unwrap();
        let account = Account {
            name: name("j\u{f6}rg@b\u{fc}cher.test"),
            credentials: Some(credentials("1")),
        };
        store.apply(&Change::AddAccount(account.clone())).unwrap();
        store
            .apply(&set_alias("postmaster@b\u{fc}cher.test", &["x@far.test"]))
            .unwrap();
        drop(store);
        for store in [open(&place).unwrap(), create(&place).unwrap()] {
            assert_eq!(store.accounts(&ALL), Ok(vec![account.clone()]));
            assert_eq!(store.domains().unwrap().len(), 1);
            assert_eq!(store.aliases(&ALL).unwrap().len(), 1);
        }
    }
}

#[test]
fn changes_of_one_are_seen_by_the_other_at_once() {
    let folder = TempDir::new().unwrap();
    for place in places(&folder) {
        let (one, other) = (create(&place).unwrap(), create(&place).unwrap());
        one.apply(&add_domain("a.test")).unwrap();
        for n in 0..50 {
            let (from, to) = if n % 2 == 0 {
                (&one, &other)
            } else {
                (&other, &one)
            };
            let who = format!("u{n}@a.test");
            from.apply(&add_account(&who)).unwrap();
            assert!(to.account(&name(&who)).unwrap().is_some(), "{place:?} {n}");
        }
    }
}

/// Who keeps what was looked up hears of every change, and looks again for nothing else.
#[test]
fn each_change_is_another_revision() {
    with_each(|store| {
        let mut before = store.revision().unwrap();
        for change in [add_domain("a.test"), add_account("ann@a.test")] {
            assert_eq!(store.revision().unwrap(), before);
            store.apply(&change).unwrap();
            let after = store.revision().unwrap();
            assert_ne!(after, before);
            assert!(store.account(&name("ann@a.test")).is_ok());
            before = after;
        }
        assert!(store.apply(&add_domain("a.test")).is_err());
        assert_eq!(store.revision().unwrap(), before);
    });
}

#[test]
fn a_change_by_another_is_another_revision() {
    let folder = TempDir::new().unwrap();
    for place in places(&folder) {
        let (store, other) = (create(&place).unwrap(), create(&place).unwrap());
        let mut before = store.revision().unwrap();
        for change in [add_domain("a.test"), add_account("ann@a.test")] {
            assert_eq!(store.revision().unwrap(), before);
            other.apply(&change).unwrap();
            let after = store.revision().unwrap();
            assert_ne!(after, before, "{place:?}");
            before = after;
        }
    }
}

#[test]
fn a_copy_of_a_database_is_of_one_moment_and_no_part_of_it() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("directory.db");
    let store = SqliteStore::create(&path).unwrap();
    store.apply(&add_domain("example.org")).unwrap();
    store.apply(&add_account("ann@example.org")).unwrap();
    let copy = folder.path().join("copy.db");
    std::fs::write(&copy, "").unwrap();
    copy_database(&path, &copy).unwrap();
    store.apply(&add_account("bob@example.org")).unwrap();
    let copied = SqliteStore::open(&copy).unwrap();
    assert_eq!(accounts(&copied, &ALL), ["ann@example.org"]);
    assert_eq!(accounts(&store, &ALL).len(), 2);
    // A file with content is not overwritten.
    assert!(copy_database(&path, &copy).is_err());
}
