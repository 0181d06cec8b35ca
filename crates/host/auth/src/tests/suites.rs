//! Suites of other implementations (`vectors/README.md`).

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::*;

/// The time of the messages of mail-auth, one of which expires a day later.
const THEN: u64 = 1_667_843_664;
/// Cases of ValiMail's suite whose result is another one here, with our result and the reason.
const OTHER_ARC: &[(&str, &str, &str)] = &[(
    "ams_fields_c_na",
    "fail",
    "a message signature without c= was made as relaxed/relaxed; RFC 8617 section 4.1.2 takes simple/simple over from DKIM",
)];

fn of_json(records: &Value) -> Zone {
    let records = records.as_object().unwrap().iter();
    records.fold(Zone::default(), |zone, (name, text)| {
        zone.with(&name.to_lowercase(), text.as_str().unwrap())
    })
}

fn message_of(test: &Value) -> Vec<u8> {
    let text = test["message"].as_str().unwrap();
    text.replace('\n', "\r\n").into_bytes()
}

#[test]
fn chains_of_the_suite_for_arc() {
    let scenarios: Value = serde_json::from_str(include_str!(
        "../../vectors/arc-draft-validation-tests.json"
    ))
    .unwrap();
    let (mut count, mut differences) = (0, Vec::new());
    for scenario in scenarios.as_array().unwrap() {
        let zone = of_json(&scenario["records"]);
        for (name, test) in scenario["tests"].as_object().unwrap() {
            let arc = zone.evaluate(&message_of(test), session(None)).arc;
            // A chain that its last sealer found broken has an empty result in the suite, as nothing is verified.
            let expected = match test["cv"].as_str().unwrap() {
                "" => "fail".to_owned(),
                other => other.to_lowercase(),
            };
            let ours = OTHER_ARC.iter().find(|(other, ..)| other == name);
            let expected = ours.map_or(expected.as_str(), |(_, ours, _)| ours);
            if arc.as_str() != expected {
                let description = &test["description"];
                differences.push(format!("{name}: suite {expected}, {arc:?}: {description}"));
            }
            count += 1;
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert_eq!(count, 171);
}

#[test]
fn messages_of_other_implementations() {
    let sources: Value =
        serde_json::from_str(include_str!("../../vectors/dkim-messages.json")).unwrap();
    for source in sources.as_array().unwrap() {
        let zone = of_json(&source["records"]);
        for test in source["messages"].as_array().unwrap() {
            let authentication = zone.evaluate(&message_of(test), session(None));
            let results = authentication.dkim.iter();
            let results: Vec<_> = results.map(|signed| signed.result().as_str()).collect();
            let faults: Vec<_> = authentication.dkim.iter().map(|s| s.fault).collect();
            assert_eq!(
                Value::from(results),
                test["results"],
                "{} {faults:?}",
                test["name"]
            );
        }
    }
}

/// The folder that a variable names; `None`, and a line about that, where it is not set.
fn folder(variable: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(variable).map(PathBuf::from);
    if folder.is_none() {
        eprintln!("skipped: {variable} names no source tree (vectors/README.md)");
    }
    folder
}

/// Reads the cases of a script of Mail::DKIM: `test_email( "NAME", "RESULT" )`, over one line or two.
fn cases_of(script: &str) -> Vec<(String, String)> {
    let calls = script.split("test_email( \"").skip(1);
    calls
        .filter_map(|call| {
            let mut words = call.split('"');
            let name = words.next()?.to_owned();
            Some((name, words.nth(1)?.to_owned()))
        })
        .collect()
}

/// The records of Mail::DKIM: a name and a text, `NXDOMAIN`, or a fault between tildes.
fn records_of(file: &str) -> Zone {
    let lines = file
        .lines()
        .filter_map(|line| line.split_once(char::is_whitespace));
    let records = lines.filter(|(name, _)| !name.starts_with(['#', ';']));
    records.fold(Zone::default(), |zone, (name, text)| {
        let name = name.to_lowercase();
        match text.trim() {
            "NXDOMAIN" => zone,
            text if text.starts_with("~~") => zone.without_answer(&name),
            text => zone.with(&name, text),
        }
    })
}

/// Whether a fault is a rule that Mail::DKIM does not have: signatures with SHA-1, short keys (RFC 8301), and forms of drafts. Mail::DKIM
/// also decodes `=40` and `=2E` in the domain of `i=`, which the grammar of RFC 6376 section 3.5 has as plain characters.
fn is_stricter(name: &str, fault: Fault) -> bool {
    let is_encoded =
        name.starts_with("good_qp") && matches!(fault, Fault::Identity | Fault::Syntax);
    is_encoded
        || matches!(
            fault,
            Fault::Sha1 | Fault::KeyShort | Fault::Version | Fault::Missing("v")
        )
}

#[test]
fn the_corpus_of_mail_dkim() {
    let Some(folder) = folder("VERE_MAIL_DKIM").map(|folder| folder.join("t")) else {
        return;
    };
    let zone = records_of(&fs::read_to_string(folder.join("FAKE_DNS.dat")).unwrap());
    let script = fs::read_to_string(folder.join("verifier.t")).unwrap();
    let (mut same, mut stricter, mut differences) = (0, 0, Vec::new());
    for (name, expected) in cases_of(&script) {
        // DomainKeys, and forms of drafts that Mail::DKIM leaves out as well.
        if name.contains("dk_") || name.contains("ietf00") {
            continue;
        }
        let message = fs::read(folder.join("corpus").join(&name)).unwrap();
        let signed = zone.evaluate(&message, session(None)).dkim;
        let passes = signed.iter().any(|signed| signed.fault.is_none());
        let faults: Vec<_> = signed.iter().filter_map(|signed| signed.fault).collect();
        if passes == (expected == "pass") {
            same += 1;
        } else if faults.iter().any(|fault| is_stricter(&name, *fault)) {
            stricter += 1;
        } else {
            differences.push(format!("{name}: Mail::DKIM {expected}, {faults:?}"));
        }
    }
    eprintln!("Mail::DKIM: {same} equal, {stricter} refused by newer rules");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(same + stricter > 50);
}

/// The messages of mail-auth, whose files have records, an empty line and a message. Each of them has a signature or a chain that passes.
#[test]
fn the_messages_of_mail_auth() {
    let Some(folder) = folder("VERE_MAIL_AUTH").map(|folder| folder.join("resources")) else {
        return;
    };
    let mut count = 0;
    for kind in ["dkim", "arc"] {
        for entry in fs::read_dir(folder.join(kind)).unwrap() {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap().replace("\r\n", "\n");
            let (records, message) = text.split_once("\n\n").unwrap();
            let zone = records_of(records);
            let message = message.replace('\n', "\r\n");
            let message = Message::of(message.as_bytes());
            let now = if kind == "arc" { NOW } else { THEN };
            let found = ready(authenticate(&zone, &message, session(None), now));
            let passes = match kind {
                "arc" => matches!(found.arc, Arc::Pass { .. }),
                _ => found.dkim.iter().any(|signed| signed.fault.is_none()),
            };
            let faults: Vec<_> = found.dkim.iter().map(|signed| signed.fault).collect();
            assert!(passes, "{}: {faults:?} {:?}", path.display(), found.arc);
            count += 1;
        }
    }
    assert!(count >= 8, "{count}");
}
