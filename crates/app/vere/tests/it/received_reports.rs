//! `vere reports` over the mailboxes of an account, with reports as they come by mail.

use std::process::Command;

use crate::harness::{Options, Session, assert_has, output_of, run_with_input, vere};
use crate::imap::{Imap, start_with_store, wait_messages};

/// A report in the words of older reporters.
const DMARC: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\" ?>\n<feedback><version>1.0</version>\
    <report_metadata><org_name>A &amp; B</org_name><email>noreply@reporter.example</email>\
    <report_id>123</report_id><date_range><begin>1777852800</begin><end>1777939199</end></date_range></report_metadata>\
    <policy_published><domain>Example.org</domain><adkim>r</adkim><aspf>s</aspf><p>reject</p><sp>none</sp><pct>100</pct>\
    </policy_published><record><row><source_ip>203.0.113.5</source_ip><count>1204</count><policy_evaluated>\
    <disposition>reject</disposition><dkim>fail</dkim><spf>fail</spf></policy_evaluated></row>\
    <identifiers><header_from>example.org</header_from></identifiers><auth_results>\
    <spf><domain>bounce.other.example</domain><result>HardFail</result></spf></auth_results></record></feedback>\n";
/// The example of RFC 8460 appendix B, shortened.
const TLS: &str = r#"{"organization-name":"Company-X","date-range":{"start-datetime":"2016-04-01T00:00:00Z",
    "end-datetime":"2016-04-01T23:59:59Z"},"contact-info":"sts-reporting@company-x.example","report-id":"5065427c-23d3",
    "policies":[{"policy":{"policy-type":"sts","policy-domain":"example.org","mx-host":"*.mail.example.org"},
    "summary":{"total-successful-session-count":5326,"total-failure-session-count":303},"failure-details":[
    {"result-type":"certificate-expired","receiving-mx-hostname":"mx1.mail.example.org","failed-session-count":303}]}]}"#;

/// A message with the report as its compressed attachment.
fn mail(media_type: &str, name: &str, report: &str) -> String {
    let packed = run_with_input(Command::new("sh").args(["-c", "gzip -c | base64"]), report);
    format!(
        "From: noreply@reporter.example\r\nSubject: Report Domain: example.org\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/mixed; boundary=\"b\"\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\na report\r\n\
         --b\r\nContent-Type: {media_type}; name=\"{name}\"\r\nContent-Transfer-Encoding: base64\r\n\
         Content-Disposition: attachment; filename=\"{name}\"\r\n\r\n{}\r\n--b--\r\n",
        packed.trim_end().replace('\n', "\r\n")
    )
}

/// A message with a report about DMARC.
pub(crate) fn dmarc_mail() -> String {
    let name = "reporter.example!example.org!1777852800!1777939199.xml.gz";
    mail("application/gzip", name, DMARC)
}

#[test]
fn reports_in_the_mailboxes_of_an_account_are_summed_up() {
    let (system, ports) = start_with_store(Options::default());
    let to = "alice@example.org";
    let dmarc = dmarc_mail();
    let tls = mail(
        "application/tlsrpt+gzip",
        "company-x.example!example.org!1!2.json.gz",
        TLS,
    );
    let mut session = Session::greeted(system.smtp);
    session.submit("noreply@reporter.example", &[to], &dmarc);
    session.submit("noreply@reporter.example", &[to], &tls);
    session.submit(
        "me@example.net",
        &[to],
        "Subject: lunch\r\n\r\nno report\r\n",
    );
    wait_messages(&ports, to, "INBOX", 3);
    // The same report comes again, and is filed elsewhere by the user.
    let mut imap = Imap::login(ports.imap, to, "secret");
    imap.ok("CREATE Reports/Old");
    imap.append("Reports/Old", &dmarc);
    let json = system.json(&["reports", "--account", to]);
    assert_eq!(
        (&json["reports"], &json["repeated"], &json["without_report"]),
        (&2.into(), &1.into(), &1.into()),
        "{json}"
    );
    assert_eq!(json["dmarc"][0]["sources"][0]["failed"], 1_204, "{json}");
    let text = system.command(&["reports", "--account", to]);
    assert_has(
        &text,
        &[
            "reports: 2; repeated and left out: 1",
            "DMARC example.org  p=reject",
            "203.0.113.5",
            "policy sts: sessions secured 5,326, failed 303",
            "certificate-expired mx1.mail.example.org",
        ],
    );
    let one = system.json(&["reports", "--account", to, "--mailbox", "Reports/Old"]);
    assert_eq!(
        (&one["reports"], &one["without_report"]),
        (&1.into(), &0.into()),
        "{one}"
    );
    // Another account has none, and a torn report is named with exit code 3.
    let none = system.json(&["reports", "--account", "bob@example.org"]);
    assert_eq!(none["reports"], 0, "{none}");
    imap.append(
        "INBOX",
        &mail("application/gzip", "report.xml.gz", "<feedback>"),
    );
    let mut command = vere();
    command.args(["reports", "--account", to]).arg("-c");
    let output = output_of(command.arg(&system.config), "");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert_has(&said, &["not readable: 1", "expected well-formed XML"]);
}
