//! The command over files of every kind.

use std::path::Path;

use super::read::Reading;
use super::show;

const XML: &str = "<feedback><report_metadata><org_name>reporter.example</org_name><report_id>1</report_id><date_range>\
    <begin>1777852800</begin><end>1777939199</end></date_range></report_metadata><policy_published><domain>example.org</domain>\
    <p>none</p></policy_published><record><row><source_ip>203.0.113.5</source_ip><count>1204</count></row></record>\
    <record><row><source_ip>192.0.2.1</source_ip><count>300</count><policy_evaluated><dkim>pass</dkim><spf>pass</spf>\
    </policy_evaluated></row></record></feedback>";
const JSON: &str = r#"{"organization-name":"sender.example","date-range":{"start-datetime":"2026-05-04T00:00:00Z",
    "end-datetime":"2026-05-04T23:59:59Z"},"report-id":"1","policies":[{"policy":{"policy-type":"sts","policy-domain":"example.org"},
    "summary":{"total-successful-session-count":10,"total-failure-session-count":2},"failure-details":[
    {"result-type":"certificate-expired","receiving-mx-hostname":"mx.example.org","failed-session-count":2}]}]}"#;

fn mail(xml: &str) -> String {
    format!("Subject: r\nContent-Type: text/xml\n\n{xml}\n")
}

fn read(path: &Path) -> Reading {
    let mut reading = Reading::default();
    reading.path(path).expect("files");
    reading
}

#[test]
fn files_of_every_kind_are_summed_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let second = XML.replace("<report_id>1<", "<report_id>2<");
    let mbox = format!(
        "From a@b Mon May  4 03:02:01 2026\n{}\nFrom a@b Mon May  4 03:02:01 2026\nSubject: other\n\nx\n",
        mail(&second)
    );
    for (name, text) in [
        ("a.xml", XML),
        ("b.eml", &mail(XML)),
        ("c.json", JSON),
        ("d.mbox", &mbox),
        (".hidden", "x"),
    ] {
        std::fs::write(at(name), text).expect("room");
    }
    std::fs::write(at("e.xml"), "<feedback>").expect("room");
    std::fs::create_dir_all(at("Maildir/cur")).expect("room");
    std::fs::create_dir_all(at("Maildir/new")).expect("room");
    std::fs::write(at("Maildir/new/1"), mail(XML)).expect("room");
    assert_eq!(read(&at("Maildir")).summary.reports, 1);

    let reading = read(folder.path());
    assert_eq!(
        (
            reading.summary.reports,
            reading.summary.repeated,
            reading.others
        ),
        (3, 1, 1)
    );
    let text = show::text(&reading, false);
    let wanted = format!(
        "reports: 3; repeated and left out: 1; other messages or files: 1\n\n\
         DMARC example.org  p=none  2026-05-04 to 2026-05-04\n  \
           messages 3,008; aligned by DKIM 600, by SPF 600; failed 2,408\n  reported by reporter.example\n  \
           what to do: p=none: receivers accept mail that fails; decide about the sources below before p=quarantine\n  \
           source                                    messages       dkim        spf     failed  quarantine     reject\n  \
           203.0.113.5                                  2,408          0          0      2,408           0          0\n    \
             what to do: 203.0.113.5 sends as example.org without alignment: 2,408 messages; sign its mail or add it to SPF; \
         if you do not know it, it forges your domain\n  \
           192.0.2.1                                      600        600        600          0           0          0\n\n\
         TLS example.org  2026-05-04 to 2026-05-04\n  policy sts: sessions secured 10, failed 2\n  reported by sender.example\n  \
           certificate-expired mx.example.org\n    what to do: 2 sessions: the certificate of mx.example.org has expired: renew it\n\n\
         not readable: 1\n  {}: expected well-formed XML; found the end inside an element at octet 10\n",
        at("e.xml").display()
    );
    assert_eq!(text, wanted);

    let json: serde_json::Value =
        serde_json::from_str(&show::json(&reading).expect("JSON")).expect("JSON");
    assert_eq!(json["dmarc"][0]["sources"][0]["failed"], 2_408);
    assert!(
        json["tls"][0]["failures"][0]["advice"]
            .as_str()
            .expect("text")
            .ends_with("renew it")
    );
    assert_eq!(json["unreadable"]["count"], 1);
}

#[test]
fn many_sources_are_cut() {
    let folder = tempfile::tempdir().expect("a folder");
    let row = |at: usize| {
        format!("<record><row><source_ip>10.0.0.{at}</source_ip><count>{at}</count></row></record>")
    };
    let rows: String = (1..=30).map(row).collect();
    let path = folder.path().join("a.xml");
    std::fs::write(
        &path,
        XML.replace("</feedback>", &format!("{rows}</feedback>")),
    )
    .expect("room");
    let reading = read(&path);
    assert!(
        show::text(&reading, false)
            .contains("further sources: 12, with 366 messages (--all shows them)"),
        "{}",
        show::text(&reading, false)
    );
    assert!(!show::text(&reading, true).contains("further sources"));
    assert!(
        Reading::default()
            .path(&folder.path().join("none"))
            .is_err()
    );
}
