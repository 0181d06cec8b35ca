//! Files of volumes on mail accounts.

use crate::{AccountSecret, Volume};

const WHOLE: &str = "version = 1\n\
    [[account]]\n\
    number = 3\n\
    url = \"imaps://bob@mail.example.org/\"\n\
    password_file = \"bob.password\"\n\
    [[account]]\n\
    number = 5\n\
    url = \"imap://bob@127.0.0.1:2143/\"\n\
    tls = \"off\"\n\
    token_command = [\"token\", \"bob\"]\n\
    group = 3\n";

fn errors(text: &str) -> String {
    Volume::parse(text, "home.toml").unwrap_err().to_string()
}

#[test]
fn a_whole_file() {
    let volume = Volume::parse(WHOLE, "/etc/fs/home.toml").unwrap();
    assert_eq!((volume.lead, volume.strong), (3, false));
    assert_eq!(volume.flush_interval.to_string(), "5s");
    let [first, second] = volume.accounts.as_slice() else {
        panic!("two accounts");
    };
    let file = AccountSecret::PasswordFile("/etc/fs/bob.password".into());
    assert_eq!(first.secret, file);
    let token = AccountSecret::TokenCommand(vec!["token".into(), "bob".into()]);
    assert_eq!(second.secret, token);
    assert_eq!((first.group, second.group), (3, 3));
    assert!(!first.clear && second.clear);
}

#[test]
fn errors_have_lines() {
    let wrong = WHOLE.replace("url = \"imaps://bob@", "url = \"imaps://");
    assert!(
        errors(&wrong).starts_with("home.toml:4: account[1].url: "),
        "{}",
        errors(&wrong)
    );
    let wrong = WHOLE.replace("group = 3", "grup = 3");
    let text = "home.toml:11: account[2].grup: unknown key, the nearest known one is group";
    assert_eq!(errors(&wrong), text);
    let wrong = WHOLE.replace("number = 5", "number = 3");
    assert!(
        errors(&wrong).starts_with("home.toml:7: account[2].number: expected a number of its own")
    );
    let wrong = WHOLE.replace("password_file = \"bob.password\"\n", "");
    assert!(errors(&wrong).contains("home.toml:2: account[1]: expected one of password_file"));
    let wrong = WHOLE.replace("version = 1", "version = 1\nlead = 4");
    assert!(errors(&wrong).starts_with("home.toml:2: lead: expected the number of an account"));
    assert!(errors("version = 1\n").contains("expected at least one section [[account]]"));
    let wrong = WHOLE.replace("bob.password\"", "bob.password\"\ntls = \"off\"");
    assert!(errors(&wrong).contains("imaps:// has TLS always"));
}
