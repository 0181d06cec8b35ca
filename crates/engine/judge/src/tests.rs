mod fields;
mod properties;
mod recipients;
mod rules;

use proptest::prelude::*;
use vere_settings::{Judging, Settings};
use vere_units::Score;

use super::*;

/// The terms of a file with these lines in `[judging]` and behind it.
fn terms(lines: &str) -> Judging {
    let text = format!("version = 1\nhostname = \"mx.example.org\"\n[judging]\n{lines}\n");
    let settings = Settings::parse(&text, "vere.toml").expect(lines);
    settings.judging.expect("a section")
}

fn judge(lines: &str) -> Judge {
    Judge::new(terms(lines))
}

fn score(text: &str) -> Score {
    text.parse().expect(text)
}

fn word(text: &str) -> String {
    text.to_owned()
}

pub(crate) fn every_fact() -> Facts {
    Facts {
        client: Some("2001:db8::1".parse().expect("an address")),
        login: Some(word("ann")),
        reverse_path: Some(word("bob@example.net")),
        recipients: 3,
        helo: Some(HeloForm::Literal),
        iprev: Some(AuthResult::Pass),
        spf: Some(AuthResult::SoftFail),
        spf_helo: Some(AuthResult::Neutral),
        dkim: Some(vec![Signature {
            domain: word("example.net"),
            result: AuthResult::PermError,
        }]),
        dmarc: Some(Dmarc {
            domain: word("example.net"),
            result: AuthResult::Pass,
            policy: DmarcPolicy::Quarantine,
            spf_aligned: true,
            dkim_aligned: false,
        }),
        arc: Some(Arc {
            result: AuthResult::Pass,
            sealer: word("lists.example"),
            dmarc_passed: true,
        }),
        listings: vec![Listing {
            list: word("bl.example"),
            weight: 3,
        }],
        greylist: Some(Greylist::Exempt),
        author: Some(Author {
            fields: 1,
            total: 1,
            addresses: vec![word("bob@example.net")],
        }),
        structure: Some(Structure {
            depth: 2,
            parts: 3,
            header_octets: 1 << 40,
            total: 1,
            attachments: vec![Attachment {
                name: word("é.zip"),
                media_type: word("application/zip"),
            }],
        }),
        filters: vec![Filter {
            name: word("rspamd"),
            action: Some(Verdict::Tag),
            symbols: vec![Symbol {
                name: word("BAYES_SPAM"),
                score: Score::from_hundredths(510),
            }],
        }],
        viruses: vec![Virus {
            filter: word("clamav"),
            name: word("Eicar"),
        }],
        learned: true,
        cut: false,
    }
}

fn result() -> impl Strategy<Value = Option<AuthResult>> {
    prop::option::of(prop::sample::select(AuthResult::ALL))
}

fn text() -> impl Strategy<Value = String> {
    prop::sample::select(
        &[
            "",
            "a@b.example",
            "b.example",
            "x.EXE",
            "é\r\n\u{202e}",
            "c d",
        ][..],
    )
    .prop_map(str::to_owned)
}

fn filter() -> impl Strategy<Value = Filter> {
    let action = prop::option::of(prop::sample::select(Verdict::ALL));
    let symbol = (text(), -2_000_000_i64..2_000_000).prop_map(|(name, hundredths)| Symbol {
        name,
        score: Score::from_hundredths(hundredths),
    });
    (text(), action, prop::collection::vec(symbol, 0..4)).prop_map(|(name, action, symbols)| {
        Filter {
            name,
            action,
            symbols,
        }
    })
}

fn dmarc() -> impl Strategy<Value = Dmarc> {
    let policy = prop::sample::select(DmarcPolicy::ALL);
    let result = prop::sample::select(AuthResult::ALL);
    (text(), result, policy, any::<[bool; 2]>()).prop_map(|(domain, result, policy, aligned)| {
        Dmarc {
            domain,
            result,
            policy,
            spf_aligned: aligned[0],
            dkim_aligned: aligned[1],
        }
    })
}

fn arc() -> impl Strategy<Value = Arc> {
    let result = prop::sample::select(AuthResult::ALL);
    (result, text(), any::<bool>()).prop_map(|(result, sealer, dmarc_passed)| Arc {
        result,
        sealer,
        dmarc_passed,
    })
}

fn structure() -> impl Strategy<Value = Structure> {
    let attachment =
        (text(), text()).prop_map(|(name, media_type)| Attachment { name, media_type });
    let attachments = prop::collection::vec(attachment, 0..4);
    (
        0_u32..60,
        0_u32..1_001,
        0_u64..1 << 20,
        0_u32..4,
        attachments,
    )
        .prop_map(
            |(depth, parts, header_octets, total, attachments)| Structure {
                depth,
                parts,
                header_octets,
                total,
                attachments,
            },
        )
}

/// Facts of every kind, also beyond their bounds.
pub(crate) fn facts() -> impl Strategy<Value = Facts> {
    let signature = (text(), prop::sample::select(AuthResult::ALL))
        .prop_map(|(domain, result)| Signature { domain, result });
    let listing = (text(), any::<i16>()).prop_map(|(list, weight)| Listing { list, weight });
    let virus = (text(), text()).prop_map(|(filter, name)| Virus { filter, name });
    let client = (
        prop::option::of(any::<std::net::IpAddr>()),
        prop::option::of(text()),
        prop::option::of(text()),
        0_u32..100,
        prop::option::of(prop::sample::select(HeloForm::ALL)),
        prop::option::of(prop::sample::select(Greylist::ALL)),
        prop::collection::vec(listing, 0..3),
        any::<bool>(),
    );
    let authentication = (
        [result(), result(), result()],
        prop::option::of(prop::collection::vec(signature, 0..20)),
        prop::option::of(dmarc()),
        prop::option::of(arc()),
    );
    let author = (0_u32..3, 0_u32..3, prop::collection::vec(text(), 0..3)).prop_map(
        |(fields, total, addresses)| Author {
            fields,
            total,
            addresses,
        },
    );
    let content = (
        prop::option::of(author),
        prop::option::of(structure()),
        prop::collection::vec(filter(), 0..3),
        prop::collection::vec(virus, 0..2),
    );
    (client, authentication, content).prop_map(|(client, authentication, content)| {
        let (client, login, reverse_path, recipients, helo, greylist, listings, learned) = client;
        let ([iprev, spf, spf_helo], dkim, dmarc, arc) = authentication;
        let (author, structure, filters, viruses) = content;
        Facts {
            client,
            login,
            reverse_path,
            recipients,
            helo,
            iprev,
            spf,
            spf_helo,
            dkim,
            dmarc,
            arc,
            listings,
            greylist,
            author,
            structure,
            filters,
            viruses,
            learned,
            cut: false,
        }
    })
}
