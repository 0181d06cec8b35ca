//! Budgets of octets a day: requests beyond are answered at once with the time until room, urgent ones go on, and a
//! restart forgets nothing.

use vere_accounts::{AccountSettings, BudgetSettings};
use vere_ports::mail_accounts::{Answer, Fault, Request, Urgency};

use crate::harness::{ACCOUNT, Volume, append, body, commit, mail, read, run, settings};
use crate::liar::server;

fn with(upload: Option<u64>, download: Option<u64>, folder: &std::path::Path) -> AccountSettings {
    let address = server(|command| match command.split(' ').next() {
        Some("SELECT") => {
            "* 1 EXISTS\r\n* OK [UIDVALIDITY 5] x\r\n* OK [UIDNEXT 8] x\r\nOK [READ-WRITE] open"
                .to_owned()
        }
        Some("UID") => "* 1 FETCH (UID 7 BODY[TEXT]<0> {4}\r\nabcd)\r\nOK".to_owned(),
        _ => "OK".to_owned(),
    });
    let mut own = settings(address, 2);
    own.budget = BudgetSettings {
        upload,
        download,
        file: Some(folder.join("budget")),
    };
    own
}

#[test]
fn uploads_beyond_the_budget_are_refused_with_a_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = with(Some(1_000_000), None, folder.path());
    run(async {
        let mut volume = Volume::new(own.clone());
        let large = mail("data", &body(99_000));
        let mut stored = 0;
        let refused = loop {
            let id = volume.send(Urgency::Background, append("data", &large));
            match volume.wait(id).await {
                Ok(Answer::Appended(_)) => stored += 1,
                Err(fault) => break fault,
                other => panic!("{other:?}"),
            }
        };
        // Seven eighths, and no more.
        assert_eq!(stored, 8);
        let Fault::Scarce(text, Urgency::Background, millis) = refused else {
            panic!("{refused:?}");
        };
        assert!(text.contains("upload_per_day"), "{text}");
        assert!(millis > 23 * 3_600_000, "{millis}");
        // Less urgent mails wait too, commits and reads go on.
        let id = volume.send(Urgency::Idle, append("data", &mail("x", b"y")));
        assert!(matches!(volume.wait(id).await, Err(Fault::Scarce(..))));
        let id = volume.send(Urgency::Commit, commit(&large));
        assert_eq!(volume.wait(id).await, Ok(Answer::Appended(None)));
        let got = volume.ask(read("data", (5, 7), &[(0, 4)])).await;
        assert_eq!(got, Ok(Answer::Read(vec!["abcd".into()])));
        let (state, _) = volume.accounts.state(ACCOUNT).expect("an account");
        let upload = state.upload.expect("a budget");
        assert!((890_000..900_000).contains(&upload.used), "{upload:?}");
        assert!(upload.room_in.as_secs() > 23 * 3_600 && state.download.is_none());
        // Without any room even commits wait, and the whole account with them.
        let id = volume.send(Urgency::Commit, commit(&mail("x", &body(120_000))));
        let full = volume.wait(id).await;
        assert!(matches!(full, Err(Fault::Throttled(..))), "{full:?}");
    });
    // A new process knows the octets of the old one.
    run(async {
        let mut volume = Volume::new(own);
        let id = volume.send(Urgency::Synced, append("data", &mail("x", &body(99_000))));
        let refused = volume.wait(id).await;
        assert!(matches!(refused, Err(Fault::Scarce(..))), "{refused:?}");
    });
}

#[test]
fn downloads_have_a_budget_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = with(Some(1_000_000), Some(2_000), folder.path());
    run(async {
        let mut volume = Volume::new(own);
        let mut came = 0;
        let refused = loop {
            match volume.ask(read("data", (5, 7), &[(0, 4)])).await {
                Ok(Answer::Read(_)) => came += 1,
                Err(fault) => break fault,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(came, 9);
        assert!(matches!(refused, Fault::Scarce(_, Urgency::Waited, _)));
        let stored = volume.ask(append("data", &mail("x", b"y"))).await;
        assert_eq!(stored, Ok(Answer::Appended(None)));
        assert_eq!(volume.ask(Request::Quota).await, Ok(Answer::Quota(None)));
    });
}
