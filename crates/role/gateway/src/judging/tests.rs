use vere_judge::{Attachment, AuthResult, Structure};
use vere_smtp::address::ForwardPath;

use super::*;

const SETTINGS: &str = "version = 1\nhostname = \"mx.example.org\"\n[judging]\ntag_at = 1\nquarantine_at = 6\n\
    [judging.weights]\nSPF_FAIL = 2.0\n\
    [[judging.policy]]\nrecipients = [\"strict@example.org\"]\nquarantine_at = 1\n";

fn group(sections: &str, recipients: &[&str]) -> Group {
    let text = SETTINGS.replace("quarantine_at = 6", sections);
    let settings = Settings::parse(&text, "/etc/vere/vere.toml").unwrap();
    let judge = Judge::new(settings.judging.clone().unwrap());
    let facts = Facts {
        spf: Some(AuthResult::Fail),
        ..Facts::default()
    };
    let judgement = judge.judge(&facts, recipients);
    let path = |text: &&str| RcptTo::new(ForwardPath::parse(&format!("<{text}>")).unwrap());
    Group {
        facts,
        recipients: recipients.iter().map(path).collect(),
        judgement,
    }
}

fn names(class: &Class) -> Vec<&str> {
    let recipients = class.recipients.iter();
    recipients.map(|rcpt| rcpt.forward_path.as_str()).collect()
}

#[test]
fn recipients_are_sorted_by_verdict() {
    let to = ["ann@example.org", "strict@example.org", "bob@example.org"];
    let group = group("quarantine_at = 6", &to);
    let mut classes = classes(&group, b"Authentication-Results: x\r\n");
    let [tagged, aside] = &classes[..] else {
        panic!("{classes:?}");
    };
    assert_eq!(names(tagged), ["ann@example.org", "bob@example.org"]);
    assert_eq!(names(aside), ["strict@example.org"]);
    assert_eq!((tagged.is_quarantined, aside.is_quarantined), (false, true));
    for class in &classes {
        let fields = String::from_utf8(class.fields.clone()).unwrap();
        assert!(fields.starts_with("X-Spam-") && fields.ends_with("Authentication-Results: x\r\n"));
    }
    assert_eq!(refusal(&group.judgement, TraceId::new(1)), None);

    let told = || Told {
        reverse_path: "a@example.net".to_owned(),
        client: "192.0.2.1:25".parse().unwrap(),
        verdict: Verdict::Tag,
        score: None,
        rules: String::new(),
        recipients: None,
        facts: None,
        reply: None,
    };
    finish(&mut classes, told(), Some("a@example.net"), false);
    let has_author = |class: &Class| class.fields.starts_with(b"X-Spam-Author: ");
    assert_eq!(
        classes.iter().map(has_author).collect::<Vec<_>>(),
        [false, true]
    );
    assert!(classes.iter().all(|class| class.told.is_some()));
    // A filter without a recipient left has all copies kept aside.
    finish(&mut classes, told(), None, true);
    assert!(classes.iter().all(|class| class.is_quarantined));
}

#[test]
fn a_refusal_names_rule_and_id() {
    let to = ["ann@example.org"];
    for (line, is_permanent, begin) in [
        ("reject_at = 2", true, "message refused (SPF_FAIL)"),
        ("defer_at = 2", false, "message deferred"),
    ] {
        let refusal = refusal(&group(line, &to).judgement, TraceId::new(7)).expect(line);
        assert_eq!(refusal.is_permanent(), is_permanent);
        let text = refusal.to_string();
        assert!(
            text.starts_with(begin) && text.contains("SPF_FAIL"),
            "{text}"
        );
        assert!(text.ends_with(&format!("id {}", TraceId::new(7))), "{text}");
    }
}

#[test]
fn facts_in_the_trace_are_bounded() {
    let attachment = |number: usize| Attachment {
        name: format!("{number:0>120}"),
        media_type: "application/octet-stream".to_owned(),
    };
    let facts = |count| Facts {
        structure: Some(Structure {
            attachments: (0..count).map(attachment).collect(),
            ..Structure::default()
        }),
        ..Facts::default()
    };
    let read = |text: &str| Facts::decode(&STANDARD.decode(text).unwrap()).unwrap();
    let few = traced(&facts(9));
    assert_eq!(read(&few), facts(9));
    let many = traced(&facts(200));
    assert!(many.len() <= FACTS_OCTETS_MAX);
    let many = read(&many);
    assert!(many.cut);
    assert_eq!(
        many.structure.unwrap().attachments.len(),
        TRACED_ATTACHMENTS
    );
}
