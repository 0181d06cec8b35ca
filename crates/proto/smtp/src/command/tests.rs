use super::{
    Bdat, BodyType, Command, CommandError, MailFrom, Notify, Orcpt, RcptTo, Ret, Workarounds, Xtext,
};
use crate::address::{AddressError, ForwardPath, ReversePath};
use proptest::prelude::{any, prop, proptest};

fn parse(line: &str) -> Result<Command, CommandError> {
    Command::parse(line.as_bytes(), Workarounds::default())
}

fn mail(line: &str) -> Result<MailFrom, CommandError> {
    match parse(line)? {
        Command::Mail(mail) => Ok(mail),
        other => panic!("{other:?}"),
    }
}

fn rcpt(line: &str) -> Result<RcptTo, CommandError> {
    match parse(line)? {
        Command::Rcpt(rcpt) => Ok(rcpt),
        other => panic!("{other:?}"),
    }
}

#[test]
fn commands_are_found_in_any_case_with_space_behind() {
    assert!(matches!(parse("data"), Ok(Command::Data)));
    assert!(matches!(parse("RSET  \t "), Ok(Command::Rset)));
    assert!(matches!(parse("Quit"), Ok(Command::Quit)));
    assert!(matches!(parse("NOOP anything at all"), Ok(Command::Noop)));
    assert!(matches!(parse("HELP me"), Ok(Command::Help)));
    assert!(matches!(parse("STARTTLS"), Ok(Command::StartTls)));
    assert!(matches!(parse("EHLO [IPv6:::1]"), Ok(Command::Ehlo(_))));
    assert!(matches!(parse("vrfy x"), Ok(Command::Vrfy)));
}

#[test]
fn what_is_no_command_is_told_by_cause() {
    for (line, error) in [
        ("", CommandError::Unrecognized),
        (" DATA", CommandError::Unrecognized),
        ("DATAX", CommandError::Unrecognized),
        ("XYZZYXYZZY", CommandError::Unrecognized),
        ("ETRN x", CommandError::NotImplemented),
        ("GET / HTTP/1.1", CommandError::OtherProtocol),
        ("DATA x", CommandError::Usage("DATA")),
        ("RSET x", CommandError::Usage("RSET")),
        ("VRFY", CommandError::Usage("VRFY string")),
        ("EHLO", CommandError::Helo(AddressError::Empty)),
        ("EHLO a b", CommandError::Helo(AddressError::Domain)),
        ("EHLO my_host", CommandError::Helo(AddressError::Domain)),
        ("EHLO müller", CommandError::Helo(AddressError::Domain)),
        ("EHLO [1.2.3]", CommandError::Helo(AddressError::Literal)),
        (
            "AUTH",
            CommandError::Usage("AUTH mechanism [initial-response]"),
        ),
        (
            "AUTH PLAIN a b",
            CommandError::Usage("AUTH mechanism [initial-response]"),
        ),
        ("BDAT", CommandError::ChunkSize),
        ("BDAT +1", CommandError::ChunkSize),
        ("BDAT -1", CommandError::ChunkSize),
        ("BDAT 1 LASTX", CommandError::ChunkSize),
        ("BDAT 1  LAST", CommandError::ChunkSize),
        ("BDAT 18446744073709551616", CommandError::ChunkSize),
        ("XCLIENT", CommandError::Usage("XCLIENT attribute=value...")),
    ] {
        assert_eq!(parse(line).err(), Some(error), "{line}");
    }
    let not_utf8 = Command::parse(b"MAIL FROM:<\xff@b>", Workarounds::default());
    assert_eq!(not_utf8.err(), Some(CommandError::NotUtf8));
}

#[test]
fn chunk_sizes_reach_to_64_bits() {
    let chunk = |line| match parse(line) {
        Ok(Command::Bdat(bdat)) => bdat,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        chunk("BDAT 0 last"),
        Bdat {
            size: 0,
            last: true
        }
    );
    assert_eq!(
        chunk("BDAT 18446744073709551615"),
        Bdat {
            size: u64::MAX,
            last: false
        }
    );
}

#[test]
fn mail_takes_every_parameter_once() {
    let all = mail(
        "mail from:<a@b> size=1000 Body=8bitMIME SMTPUTF8 RET=HDRS ENVID=QQ+2B314 AUTH=e+3Dmc2@e.com",
    )
    .unwrap();
    assert_eq!(all.size, Some(1000));
    assert_eq!(all.body, BodyType::EightBitMime);
    assert!(all.smtputf8);
    assert_eq!(all.ret, Some(Ret::Headers));
    assert_eq!(all.envid.as_ref().unwrap().decode(), b"QQ+314");
    assert_eq!(all.auth.as_ref().unwrap().as_str(), "e=mc2@e.com");
    assert!(all.has_parameters() && !mail("MAIL FROM:<>").unwrap().has_parameters());
    assert_eq!(
        mail("MAIL FROM:<> AUTH=<>").unwrap().auth,
        Some(ReversePath::Null)
    );
    let huge = mail("MAIL FROM:<> SIZE=99999999999999999999").unwrap();
    assert_eq!(huge.size, Some(u64::MAX));
}

#[test]
fn mail_refuses_by_cause() {
    const USAGE: CommandError = CommandError::Usage("MAIL FROM:<address>");
    let long_envid = format!("MAIL FROM:<> ENVID={}", "x".repeat(101));
    for (line, error) in [
        ("MAIL", USAGE),
        ("MAIL <a@b>", USAGE),
        ("MAIL FROM <a@b>", USAGE),
        ("MAIL FROM:<a@b>SIZE=1", USAGE),
        (
            "MAIL FROM: <a@b>",
            CommandError::ReversePath(AddressError::MissingBrackets),
        ),
        (
            "MAIL FROM:a@b",
            CommandError::ReversePath(AddressError::MissingBrackets),
        ),
        (
            "MAIL FROM:",
            CommandError::ReversePath(AddressError::MissingBrackets),
        ),
        (
            "MAIL FROM:<a@b",
            CommandError::ReversePath(AddressError::MissingBrackets),
        ),
        (
            "MAIL FROM:<a>",
            CommandError::ReversePath(AddressError::MissingAt),
        ),
        ("MAIL FROM:<> X=1", CommandError::UnknownParameter),
        ("MAIL FROM:<> NOTIFY=NEVER", CommandError::UnknownParameter),
        ("MAIL FROM:<> SIZE", CommandError::ParameterValue("SIZE")),
        ("MAIL FROM:<> SIZE=-1", CommandError::ParameterValue("SIZE")),
        (
            "MAIL FROM:<> SIZE=999999999999999999999",
            CommandError::ParameterValue("SIZE"),
        ),
        (
            "MAIL FROM:<> SIZE=1 SIZE=1",
            CommandError::ParameterTwice("SIZE"),
        ),
        (
            "MAIL FROM:<> BODY=9BIT",
            CommandError::ParameterValue("BODY"),
        ),
        (
            "MAIL FROM:<> SMTPUTF8=1",
            CommandError::ParameterValue("SMTPUTF8"),
        ),
        ("MAIL FROM:<> RET=ALL", CommandError::ParameterValue("RET")),
        ("MAIL FROM:<> ENVID=", CommandError::ParameterValue("ENVID")),
        (
            "MAIL FROM:<> ENVID=a+0D",
            CommandError::ParameterValue("ENVID"),
        ),
        (
            "MAIL FROM:<> ENVID=a+3d",
            CommandError::ParameterValue("ENVID"),
        ),
        ("MAIL FROM:<> AUTH=", CommandError::ParameterValue("AUTH")),
        (
            "MAIL FROM:<> AUTH=a+0D+0A@b",
            CommandError::ParameterValue("AUTH"),
        ),
        (&long_envid, CommandError::ParameterValue("ENVID")),
    ] {
        assert_eq!(mail(line).err(), Some(error), "{line}");
    }
}

#[test]
fn quoted_local_parts_hide_brackets_and_spaces() {
    let quoted = mail("MAIL FROM:<\"a > b\\\" c\"@d> SIZE=5").unwrap();
    assert_eq!(quoted.reverse_path.as_str(), "\"a > b\\\" c\"@d");
    assert_eq!(quoted.size, Some(5));
}

#[test]
fn rcpt_takes_its_parameters() {
    let rcpt_to = rcpt("RCPT TO:<a@b> NOTIFY=success,DELAY ORCPT=rfc822;a+2Bx@b").unwrap();
    assert_eq!(
        rcpt_to.notify,
        Some(Notify::On {
            success: true,
            failure: false,
            delay: true
        })
    );
    let orcpt = rcpt_to.orcpt.unwrap();
    assert_eq!(
        (orcpt.address_type(), orcpt.address()),
        ("rfc822", "a+x@b".to_owned())
    );
    assert_eq!(
        rcpt("RCPT TO:<postmaster>").unwrap().forward_path,
        ForwardPath::Postmaster
    );
    assert_eq!(
        rcpt("RCPT TO:<a@b> NOTIFY=NEVER").unwrap().notify,
        Some(Notify::Never)
    );
    for (line, error) in [
        ("RCPT TO:<>", CommandError::ForwardPath(AddressError::Empty)),
        ("RCPT FROM:<a@b>", CommandError::Usage("RCPT TO:<address>")),
        ("RCPT TO:<a@b> SIZE=1", CommandError::UnknownParameter),
        (
            "RCPT TO:<a@b> NOTIFY=",
            CommandError::ParameterValue("NOTIFY"),
        ),
        (
            "RCPT TO:<a@b> NOTIFY=NEVER,DELAY",
            CommandError::ParameterValue("NOTIFY"),
        ),
        (
            "RCPT TO:<a@b> ORCPT=a@b",
            CommandError::ParameterValue("ORCPT"),
        ),
        (
            "RCPT TO:<a@b> ORCPT=;a@b",
            CommandError::ParameterValue("ORCPT"),
        ),
        (
            "RCPT TO:<a@b> ORCPT=rfc822;ä@b",
            CommandError::ParameterValue("ORCPT"),
        ),
        (
            "RCPT TO:<a@b> ORCPT=rfc822;a NOTIFY=NEVER ORCPT=x;y",
            CommandError::ParameterTwice("ORCPT"),
        ),
    ] {
        assert_eq!(rcpt(line).err(), Some(error), "{line}");
    }
}

#[test]
fn orcpt_of_type_utf_8_takes_unicode() {
    for good in ["utf-8;ä@b", "UTF-8;\\x{E4}@b", "utf-8;a@b"] {
        assert!(Orcpt::parse(good).is_some(), "{good}");
    }
    for bad in [
        "utf-8;a+b",
        "utf-8;a\\b",
        "utf-8;a\\x{}b",
        "utf-8;a\\x{1234567}",
        "utf-8;",
    ] {
        assert!(Orcpt::parse(bad).is_none(), "{bad}");
    }
    assert!(Orcpt::parse(&format!("rfc822;{}", "x".repeat(494))).is_none());
}

#[test]
fn workarounds_are_off_until_named() {
    let with = |line: &str, workarounds| Command::parse(line.as_bytes(), workarounds).is_ok();
    let space = Workarounds {
        space_before_path: true,
        ..Workarounds::default()
    };
    assert!(with("MAIL FROM: <a@b> SIZE=1", space));
    assert!(!with("MAIL FROM: a@b", space));
    let plain = Workarounds {
        path_without_brackets: true,
        ..Workarounds::default()
    };
    assert!(with("RCPT TO:a@b NOTIFY=NEVER", plain));
    assert!(with("RCPT TO:<a@b>", plain));
    assert!(!with("RCPT TO:a@b>", plain));
    let helo = Workarounds {
        underscore_in_helo: true,
        ..Workarounds::default()
    };
    assert!(with("EHLO my_host.example", helo));
    assert!(!with("EHLO my_host/example", helo));
}

#[test]
fn passwords_are_not_printed() {
    let auth = parse("AUTH PLAIN AHQAcA==").unwrap();
    assert!(!format!("{auth:?}").contains("AHQ"));
}

proptest! {
    #[test]
    fn parsing_never_panics(line in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = Command::parse(&line, Workarounds::default());
    }

    #[test]
    fn parsing_of_near_commands_never_panics(
        verb in "(MAIL FROM:|RCPT TO:|BDAT |AUTH |XCLIENT |EHLO )", rest in "\\PC{0,80}"
    ) {
        let lenient = Workarounds {
            space_before_path: true, path_without_brackets: true, underscore_in_helo: true,
        };
        for workarounds in [Workarounds::default(), lenient] {
            let _ = Command::parse(format!("{verb}{rest}").as_bytes(), workarounds);
        }
    }

    #[test]
    fn mail_survives_its_encoding(
        local in "[ -~é]{1,30}", size in any::<Option<u64>>(), envid in "[ -~]{1,30}", bits in 0_u8..16
    ) {
        let address = crate::address::AddrSpec::new(&local, "example.org").unwrap();
        let mail = MailFrom {
            reverse_path: address.clone().into(),
            size,
            body: if bits & 1 == 0 { BodyType::BinaryMime } else { BodyType::SevenBit },
            smtputf8: bits & 2 == 0,
            ret: (bits & 4 == 0).then_some(Ret::Full),
            envid: Some(Xtext::encode(envid.as_bytes())),
            auth: Some(address.into()),
            require_tls: bits & 8 == 0,
            priority: (bits & 16 == 0).then_some(i8::try_from(bits % 19).unwrap_or(0) - 9),
        };
        let mut line = Vec::new();
        mail.encode(&mut line);
        let line = line.strip_suffix(b"\r\n").unwrap();
        match Command::parse(line, Workarounds::default()).unwrap() {
            Command::Mail(parsed) => assert_eq!(parsed, mail),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn xtext_survives(plain in prop::collection::vec(any::<u8>(), 0..50)) {
        let xtext = Xtext::encode(&plain);
        assert_eq!(xtext.decode(), plain);
        assert_eq!(Xtext::parse(xtext.as_str()), Some(xtext));
    }
}
