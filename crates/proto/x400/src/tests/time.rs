//! UTCTime.

use vere_ber::encode;

use super::sample::hex;
use crate::Time;

#[test]
fn times() {
    for (text, shown) in [
        ("260504030201Z", "2026-05-04T03:02:01Z"),
        ("2605040302Z", "2026-05-04T03:02:00Z"),
        ("260504030201+0230", "2026-05-04T00:32:01Z"),
        ("2601010030-0100", "2026-01-01T01:30:00Z"),
        ("700101000000Z", "1970-01-01T00:00:00Z"),
        ("690101000000Z", "2069-01-01T00:00:00Z"),
        ("840229120000Z", "1984-02-29T12:00:00Z"),
        ("000229120000Z", "2000-02-29T12:00:00Z"),
    ] {
        let time = Time::parse(text.as_bytes()).unwrap();
        assert_eq!(time.to_string(), shown);
        assert_eq!(Time::parse(time.utc_time().as_bytes()), Some(time));
    }
    assert_eq!(
        encode(&Time::from_unix(0)),
        hex("170d 3730303130313030303030305a")
    );
    for text in [
        "",
        "Z",
        "260504030201",
        "26050403Z",
        "260532030201Z",
        "261304030201Z",
        "260229000000Z",
        "260504240000Z",
        "260504030260Z",
        "260504030201+2400",
        "260504030201+01",
        "260504030201z",
        "2605040302011Z",
        "700101000000+0100",
    ] {
        assert_eq!(Time::parse(text.as_bytes()), None, "{text}");
    }
}
