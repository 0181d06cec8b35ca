//! Several processes with one store.
//!
//! They are this test binary, started again with one ignored test ([`child`]).

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::*;

/// Starts this binary again to add accounts `{prefix}0`, `{prefix}1`, ... and `shared0`, ...
fn start_child(place: &Place, prefix: &str, count: usize) -> Child {
    let (Place::File(path) | Place::Sqlite(path)) = place;
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "directory::tests::processes::child",
            "--ignored",
            "--nocapture",
        ])
        .env("VERE_TEST_STORE", path)
        .env("VERE_TEST_PREFIX", prefix)
        .env("VERE_TEST_COUNT", count.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The lines `added NAME` of a child.
fn added(child: &mut Child) -> Vec<AccountName> {
    let output = BufReader::new(child.stdout.take().unwrap());
    let lines = output.lines().map_while(Result::ok);
    let names = lines.filter_map(|line| line.split_once("added ").map(|(_, name)| name.to_owned()));
    // The last line of a killed process may be cut.
    names
        .filter_map(|text| AccountName::parse(&text).ok())
        .collect()
}

#[test]
#[ignore = "runs in the processes that other tests start"]
fn child() {
    let path = PathBuf::from(std::env::var_os("VERE_TEST_STORE").unwrap());
    let prefix = std::env::var("VERE_TEST_PREFIX").unwrap();
    let count: usize = std::env::var("VERE_TEST_COUNT").unwrap().parse().unwrap();
    let toml = path.extension().is_some_and(|end| end == "toml");
    let place = if toml {
        Place::File(path)
    } else {
        Place::Sqlite(path)
    };
    let store = open(&place).unwrap();
    let add = |who: String| match store.apply(&add_account(&who)) {
        Ok(()) => writeln!(std::io::stdout(), "added {who}").unwrap(),
        Err(ChangeError::AccountExists(_)) => {}
        Err(error) => panic!("{error}"),
    };
    for n in 0..count {
        add(format!("{prefix}{n}@a.test"));
        add(format!("shared{n}@a.test"));
    }
}

fn create_with_domain(place: &Place) {
    create(place).unwrap().apply(&add_domain("a.test")).unwrap();
}

#[test]
fn several_processes_change_at_once_and_nothing_is_lost() {
    let folder = TempDir::new().unwrap();
    for place in places(&folder) {
        create_with_domain(&place);
        let mut children: Vec<Child> = ["p", "q", "r"]
            .iter()
            .map(|prefix| start_child(&place, prefix, 20))
            .collect();
        let mut all: Vec<String> = Vec::new();
        for child in &mut children {
            all.extend(added(child).iter().map(ToString::to_string));
            assert!(child.wait().unwrap().success());
        }
        all.sort();
        assert_eq!(
            all.len(),
            4 * 20,
            "each shared name was added by exactly one"
        );
        assert_eq!(accounts(&*open(&place).unwrap(), &ALL), all);
    }
}

#[test]
fn killed_process_loses_nothing_it_reported_and_holds_no_lock() {
    let folder = TempDir::new().unwrap();
    for place in places(&folder) {
        create_with_domain(&place);
        for round in 0..5_u64 {
            let mut child = start_child(&place, &format!("k{round}-"), 100_000);
            std::thread::sleep(Duration::from_millis(60 + 17 * round));
            child.kill().unwrap();
            child.wait().unwrap();
            let reported = added(&mut child);
            let store = open(&place).unwrap();
            for who in &reported {
                assert!(store.account(who).unwrap().is_some(), "{who} was reported");
            }
            // A lock that was held would be waited for in vain.
            store
                .apply(&add_account(&format!("after{round}@a.test")))
                .unwrap();
        }
    }
}

#[test]
fn readers_of_a_changing_store_never_miss_what_was_there_before() {
    let folder = TempDir::new().unwrap();
    for place in places(&folder) {
        create_with_domain(&place);
        let store = open(&place).unwrap();
        store.apply(&add_account("always@a.test")).unwrap();
        let mut child = start_child(&place, "w", 50);
        while child.try_wait().unwrap().is_none() {
            assert!(store.account(&name("always@a.test")).unwrap().is_some());
            assert!(store.domain(&domain("a.test")).unwrap().is_some());
        }
        assert_eq!(added(&mut child).len(), 100);
        assert_eq!(accounts(&*store, &ALL).len(), 101);
    }
}
