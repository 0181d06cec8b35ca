//! The client machine against servers that reply at random.

use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop, prop_oneof, proptest};

use super::{Talk, config, message};
use crate::client::{ClientConfig, ClientStep, TlsMode};
use vere_sasl::client::Credentials;

fn reply() -> impl Strategy<Value = Vec<u8>> {
    let fitting = prop::sample::select(vec![
        "220 mx\r\n",
        "250 ok\r\n",
        "250-mx\r\n250-PIPELINING\r\n250-DSN\r\n250 SIZE 100\r\n",
        "250-mx\r\n250-PIPELINING\r\n250 CHUNKING\r\n",
        "250-mx\r\n250-STARTTLS\r\n250 AUTH PLAIN LOGIN SCRAM-SHA-256\r\n",
        "250-mx\r\n250-PIPELINING\r\n250 LIMITS RCPTMAX=1 MAILMAX=2\r\n",
        "235 ok\r\n",
        "334 VXNlcm5hbWU6\r\n",
        "354 go\r\n",
        "450 later\r\n",
        "452 4.5.3 many\r\n",
        "550 no\r\n",
        "421 bye\r\n",
    ]);
    prop_oneof![
        20 => fitting.prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..60),
    ]
}

fn settings() -> impl Strategy<Value = ClientConfig> {
    let tls = prop_oneof![
        Just(TlsMode::Off),
        Just(TlsMode::Opportunistic),
        Just(TlsMode::Required)
    ];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (tls, flags).prop_map(|(tls, (lmtp, auth, one_round))| ClientConfig {
        tls,
        lmtp,
        one_round_max: if one_round { 1 << 16 } else { 0 },
        auth: auth.then(|| Credentials::new("tim", "secret")),
        auth_in_clear: true,
        ..config()
    })
}

/// What happens next beside a reply.
#[derive(Clone, Debug)]
enum Event {
    Says(Vec<u8>),
    Sends(usize),
    TimesOut,
    Loses,
    Quits,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        10 => reply().prop_map(Event::Says),
        10 => (1..200_usize).prop_map(Event::Sends),
        1 => Just(Event::TimesOut),
        1 => Just(Event::Loses),
        1 => Just(Event::Quits),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Every message begun is settled once, for all its recipients; the machine never hangs: it
    /// always has something to send, waits with a deadline, or is at rest.
    #[test]
    fn every_message_is_settled(config in settings(), events in prop::collection::vec(event(), 0..80)) {
        let mut talk = Talk::new(config);
        let (mut begun, mut settled) = (0, 0);
        for event in events.into_iter().chain([Event::Loses]) {
            match event {
                Event::Says(octets) => talk.says_octets(&octets),
                Event::Sends(octets) => {
                    let octets = octets.min(talk.client.output().len());
                    talk.client.sent(octets);
                }
                Event::TimesOut => talk.client.timed_out(),
                Event::Loses => talk.client.connection_lost(),
                Event::Quits => talk.client.quit(talk.now),
            }
            loop {
                match talk.client.step() {
                    ClientStep::Done(outcome) => {
                        settled += 1;
                        assert_eq!(outcome.recipients.len(), 3);
                    }
                    ClientStep::Ready => {
                        begun += 1;
                        talk.begin(message(&["a@b.example", "b@b.example", "c@b.example"]));
                    }
                    ClientStep::StartTls => {
                        talk.client.tls_started(talk.now);
                    }
                    ClientStep::Send => {
                        assert!(!talk.client.output().is_empty());
                        break;
                    }
                    ClientStep::NeedInput => {
                        assert!(talk.client.deadline() > talk.now);
                        assert!(talk.client.deadline() < vere_units::Timestamp::MAX);
                        break;
                    }
                    ClientStep::Closed(_) => break,
                }
            }
        }
        assert_eq!(begun, settled);
        assert!(matches!(talk.client.step(), ClientStep::Closed(_)));
    }
}
