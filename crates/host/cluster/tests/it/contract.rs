//! What holds for every register.

use vere_cluster::{NAME_MAX, Register, RegisterError, Swap, VALUE_MAX, Versioned};

/// Runs against an empty register.
pub(crate) async fn check(register: &Register) {
    replaces_only_what_is_expected(register).await;
    keeps_any_name_and_value(register).await;
    refuses_what_is_beyond_the_bounds(register).await;
}

async fn replaces_only_what_is_expected(register: &Register) {
    let key = "group/one";
    assert_eq!(register.read(key).await, Ok(None));
    let absent = register.swap(key, Some(1), b"x").await;
    assert_eq!(absent, Ok(Swap::Conflict(None)));
    let first = done(register.swap(key, None, b"first").await);
    let there = Versioned {
        version: first,
        value: b"first".to_vec(),
    };
    let conflict = Ok(Swap::Conflict(Some(there.clone())));
    for expected in [None, Some(first + 1), Some(u64::MAX >> 1)] {
        assert_eq!(register.swap(key, expected, b"x").await, conflict);
    }
    assert_eq!(register.read(key).await, Ok(Some(there)));
    // The same octets once more are a change all the same.
    let second = done(register.swap(key, Some(first), b"first").await);
    assert!(second > first);
    // Another key's changes do not touch it.
    done(register.swap("lease/one", None, b"").await);
    let third = done(register.swap(key, Some(second), b"").await);
    let there = register.read(key).await.unwrap().unwrap();
    assert_eq!((there.version, there.value), (third, Vec::new()));
}

async fn keeps_any_name_and_value(register: &Register) {
    let all: Vec<u8> = (0..=u8::MAX).cycle().take(VALUE_MAX).collect();
    let mut keys: Vec<String> = (0..18).map(|n| format!("group/n{n:02}")).collect();
    for name in [
        "../x",
        "\u{e9}\0\n",
        "\u{10ffff}",
        "~/%2F",
        &"n".repeat(NAME_MAX),
    ] {
        keys.push(format!("group/{name}"));
    }
    for key in &keys {
        done(register.swap(key, None, &all).await);
        assert_eq!(
            register.read(key).await.unwrap().unwrap().value,
            all,
            "{key:?}"
        );
    }
    keys.push("group/one".to_owned());
    keys.sort();
    let list = register.list("group/").await.unwrap();
    let listed: Vec<&String> = list.iter().map(|(key, _)| key).collect();
    assert_eq!(listed, keys.iter().collect::<Vec<_>>());
    for (key, versioned) in &list {
        assert_eq!(register.read(key).await.unwrap().as_ref(), Some(versioned));
    }
    let count = async |prefix: &str| register.list(prefix).await.unwrap().len();
    assert_eq!(count("group/n0").await, 10);
    assert_eq!(count("lease/").await, 1);
    assert_eq!(count("lease/x").await, 0);
    assert_eq!(count("").await, keys.len() + 1);
}

async fn refuses_what_is_beyond_the_bounds(register: &Register) {
    let long = format!("lease/{}", "x".repeat(NAME_MAX + 1));
    for key in ["group", "group/", "other/x", &long] {
        let read = register.read(key).await;
        assert!(matches!(read, Err(RegisterError::Refused { .. })), "{key}");
        assert!(register.swap(key, None, b"x").await.is_err(), "{key}");
    }
    let large = register
        .swap("group/large", None, &[0; VALUE_MAX + 1])
        .await;
    assert!(matches!(large, Err(RegisterError::Refused { .. })));
    assert_eq!(register.read("group/large").await, Ok(None));
}

fn done(swap: Result<Swap, RegisterError>) -> u64 {
    match swap {
        Ok(Swap::Done(version)) => version,
        other => panic!("{other:?}"),
    }
}
