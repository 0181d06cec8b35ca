use clap::Parser;
use vere_directory::Login;
use vere_units::Secret;

use super::*;
use crate::{alias, domain};

#[derive(Parser)]
enum Command {
    #[command(subcommand)]
    Account(AccountCommand),
    #[command(subcommand)]
    Domain(domain::DomainCommand),
    #[command(subcommand)]
    Alias(alias::AliasCommand),
}

/// A system without a configuration file, and its two kinds of store.
struct System {
    folder: tempfile::TempDir,
    settings: Settings,
}

impl System {
    fn new(store: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "version = 1\nhostname = \"mx.a.test\"\ndata = \".\"\n[directory]\nstore = \"{store}\"\n"
        );
        let file = folder.path().join("vere.toml");
        let settings = Settings::parse(&text, file.to_str().unwrap()).unwrap();
        Self { folder, settings }
    }

    fn run(&self, line: &str) -> Result<String, String> {
        let words = std::iter::once("vere").chain(line.split(' '));
        match Command::try_parse_from(words).map_err(|error| error.to_string())? {
            Command::Account(command) => run(
                &command,
                &("vere.toml".into(), Arc::new(self.settings.clone())),
            ),
            Command::Domain(command) => domain::run(&command, &self.settings),
            Command::Alias(command) => alias::run(&command, &self.settings),
        }
        .map_err(|failure| failure.to_string())
    }

    fn json(&self, line: &str) -> serde_json::Value {
        serde_json::from_str(&self.run(&format!("{line} --json")).unwrap()).unwrap()
    }

    fn refused(&self, line: &str, words: &str) {
        let error = self.run(line).expect_err(line);
        assert!(error.contains(words), "{error:?} lacks {words:?}");
    }
}

fn with_each(test: impl Fn(&System)) {
    for store in ["file:directory.toml", "sqlite:directory.db"] {
        test(&System::new(store));
    }
}

#[test]
fn accounts_from_add_to_del() {
    with_each(|system| {
        system.refused("account list", "begin with: vere domain add");
        system.refused(
            "account add you@a.test --generate",
            "add it with: vere domain add a.test",
        );
        system.run("domain add a.test").unwrap();
        system.refused("account add a+b@a.test --generate", "stands before tags");
        let added = system.json("account add You@A.test --generate");
        assert_eq!(added["account"], "you@a.test");
        let login = |password: &serde_json::Value| {
            let password = Secret::new(password.as_str().unwrap().to_owned());
            let directory = open(&system.settings).unwrap();
            directory.verify_password("you@a.test", &password).unwrap()
        };
        assert!(matches!(login(&added["password"]), Login::Accepted(_)));
        let words = "vere account passwd you@a.test";
        system.refused("account add you@a.test --generate", words);
        let again = system.json("account passwd you@a.test --generate");
        assert_eq!(login(&added["password"]), Login::Rejected);
        assert!(matches!(login(&again["password"]), Login::Accepted(_)));
        system.run("account add in@a.test --no-password").unwrap();
        let all = "in@a.test  (no password)\nyou@a.test\n";
        assert_eq!(system.run("account list").unwrap(), all);
        assert_eq!(system.json("account list a.test")[1]["login"], true);
        system.refused("account list b.test", "no domain b.test");
        system.refused(
            "account passwd me@a.test --generate",
            "no account me@a.test",
        );

        system
            .run("alias add all@a.test you@a.test in@a.test")
            .unwrap();
        let mailbox = system.folder.path().join("maildir/a.test/you");
        std::fs::create_dir_all(&mailbox).unwrap();
        let removed = system.run("account del you@a.test").unwrap();
        assert!(
            removed.contains(&mailbox.display().to_string()),
            "{removed}"
        );
        assert!(
            removed.contains("still lead to it: all@a.test"),
            "{removed}"
        );
        assert!(mailbox.exists());
        system.refused("account del you@a.test", "no account you@a.test");
    });
}

#[test]
fn generated_password_is_printed_once() {
    let system = System::new("file:directory.toml");
    system.run("domain add a.test").unwrap();
    let text = system.run("account add you@a.test --generate").unwrap();
    let password = text
        .strip_prefix("added you@a.test\npassword: ")
        .unwrap()
        .trim_end();
    let file = std::fs::read_to_string(system.folder.path().join("directory.toml")).unwrap();
    assert!(
        !file.contains(password) && file.contains("$argon2id$"),
        "{file}"
    );
    assert!(!system.run("account list").unwrap().contains(password));
}

#[test]
fn domains_from_add_to_del() {
    with_each(|system| {
        let text = system.run("domain add a.test").unwrap();
        assert!(text.contains("vere alias add postmaster@a.test"), "{text}");
        let line = "domain add B\u{fc}cher.test --catch-all x@far.test --postmaster x@far.test";
        assert_eq!(system.json(line)["domain"], "xn--bcher-kva.test");
        system.refused("domain add A.TEST", "domain a.test exists already");
        system.refused("domain add c.test --catch-all nobody", "is not an address");
        let list = system.json("domain list");
        assert_eq!(list[1]["catch_all"], "x@far.test");
        assert_eq!(list[1]["aliases"], 1);
        let text = system.run("domain list").unwrap();
        assert!(text.contains("1 aliases  others to x@far.test"), "{text}");
        system.refused("domain del xn--bcher-kva.test", "0 accounts and 1 aliases");
        system.run("alias del postmaster@b\u{fc}cher.test").unwrap();
        system.run("domain del b\u{fc}cher.test").unwrap();
        assert_eq!(system.json("domain list").as_array().unwrap().len(), 1);
    });
}

#[test]
fn aliases_from_add_to_del() {
    with_each(|system| {
        system.run("domain add a.test").unwrap();
        let text = system
            .run("alias add all@a.test you@a.test x@far.test")
            .unwrap();
        assert!(text.contains("there is no you@a.test yet"), "{text}");
        system.refused(
            "alias add all@a.test y@far.test",
            "leads to you@a.test, x@far.test",
        );
        system
            .run("alias add all@a.test y@far.test --replace")
            .unwrap();
        assert_eq!(
            system.run("alias list").unwrap(),
            "all@a.test  y@far.test\n"
        );
        assert_eq!(
            system.json("alias list a.test")[0]["targets"][0],
            "y@far.test"
        );
        let words = "would lead to nobody but itself, nothing was changed";
        system.refused("alias add self@a.test self@a.test", words);
        system.run("alias add z@a.test y@a.test").unwrap();
        system.refused("alias add y@a.test z@a.test", words);
        system.refused("alias del y@a.test", "no alias y@a.test");
        system.run("alias add y@a.test x@far.test").unwrap();
        system.refused("alias add y@a.test z@a.test --replace", words);
        let list = system.run("alias list").unwrap();
        assert!(list.contains("y@a.test  x@far.test"), "{list}");
        system
            .run("account add alice@a.test --no-password")
            .unwrap();
        let text = system.run("alias add alice@a.test x@far.test").unwrap();
        assert!(text.contains("alice@a.test is an account"), "{text}");
        let line = "alias add alice@a.test x@far.test alice@a.test --replace";
        let text = system.run(line).unwrap();
        assert!(!text.contains("warning"), "{text}");
        system.refused("alias add all@b.test x@far.test", "vere domain add b.test");
        system.refused("alias add x@a.test |/bin/sh", "is not an address");
        system.refused("alias add x@a.test", "required");
        system.run("alias del ALL@a.test").unwrap();
        system.refused("alias del all@a.test", "no alias all@a.test");
    });
}

#[test]
fn hostile_names_reach_no_store() {
    with_each(|system| {
        system.run("domain add a.test").unwrap();
        for name in [
            "../../x@a.test",
            "a/b@a.test",
            "x'--@a.test/..",
            "\u{202e}x@a.test",
            ".@a.test",
            "x@.",
        ] {
            assert!(
                system
                    .run(&format!("account add {name} --no-password"))
                    .is_err(),
                "{name}"
            );
            assert!(
                system.run(&format!("alias add {name} x@far.test")).is_err(),
                "{name}"
            );
        }
        // Harmless, though the text looks like SQL.
        system
            .run("account add o'x=1--@a.test --no-password")
            .unwrap();
        assert_eq!(system.json("account list")[0]["account"], "o'x=1--@a.test");
    });
}
