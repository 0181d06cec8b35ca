//! Facts about a message, as kept for `vere explain`.

use std::sync::LazyLock;

use vere_judge::{Facts, Judge};
use vere_settings::Settings;

pub(crate) const SEEDS: &[&[u8]] = &[
    b"\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    b"\x01\x04\xc0\0\x02\x01\x01\x01\0l\x01\0\0\x02\0\0\0\x05\0\x04\0\x01\x01\0\x01\0d\x03\x01\x01\0e\x04\x03\0\x01\0\
      \x01\0\x01\0b\xfe\xff\x02\0\0\x01\0\x01\0f\x05\x01\0\x01\0S\xfb\xff\xff\xff\0\0\x01",
];

const SETTINGS: &str = "version = 1\nhostname = \"mx.example.org\"\n[judging]\nquarantine_at = 6\ndefer_at = 8\nreject_at = 10\n\
    dmarc = \"follow\"\nallow_senders = [\"example.net\"]\nblock_senders = [\"<>\"]\n\
    [[judging.attachment]]\nnames = [\"*a*.exe\"]\ntypes = [\"application/*\"]\nverdict = \"quarantine\"\n\
    [[judging.filter]]\nname = \"rspamd\"\nfactor = 0.33\naction = \"follow\"\n\
    [[filter]]\nname = \"rspamd\"\nkind = \"rspamd\"\naddress = \"[::1]:1\"\n";

static JUDGE: LazyLock<Option<Judge>> = LazyLock::new(|| {
    let settings = Settings::parse(SETTINGS, "vere.toml").ok()?;
    settings.judging.map(Judge::new)
});

/// Decoded facts encode to the same octets, and give the same judgement; replies and fields are lines of ASCII.
pub(crate) fn record(octets: &[u8]) {
    let Ok(facts) = Facts::decode(octets) else {
        return;
    };
    assert_eq!(facts.encode(), octets);
    let Some(judge) = &*JUDGE else {
        panic!("the settings of the target have no judge");
    };
    let judgement = judge.judge(&facts, &["ann@example.org"]);
    assert_eq!(
        judgement,
        judge.judge(&facts.clone().bounded(), &["ann@example.org"])
    );
    let is_line = |text: &str| text.bytes().all(|octet| (b' '..=b'~').contains(&octet));
    assert!(judgement.reply().is_none_or(|reply| is_line(&reply.text)));
    assert!(
        judgement
            .hits
            .iter()
            .all(|hit| !hit.fact.contains(char::is_control))
    );
    for recipient in &judgement.recipients {
        let fields = judgement.fields(recipient);
        assert!(
            fields
                .split("\r\n")
                .all(|line| is_line(line.trim_start_matches('\t')))
        );
    }
}
