//! The arrival time of a message from its own header, where the file has none.

use std::io;

use vere_imap::date::{DateTime, Moment};
use vere_mime::{fields, header_len, sent};

use crate::message::Message;

/// Octets of a message that are searched for header fields.
const HEADER_OCTETS_MAX: usize = 256 * 1024;

/// Seconds of the year 1970: programs without dates write the beginning of the year, in any time zone.
const YEAR: i64 = 365 * 86_400;

/// The date of the line before a message, unless the date means no date.
pub(super) fn told(date: Option<Moment>) -> Option<Moment> {
    date.filter(|date| !(-86_400..YEAR).contains(&date.seconds()))
}

/// The date of the first Received field, which the last server wrote (RFC 5321 section 4.4), or the date of Date.
///
/// # Errors
/// When the message cannot be read.
pub(super) fn of(message: &mut Message) -> io::Result<Option<DateTime>> {
    message.rewind()?;
    let mut octets = vec![0; HEADER_OCTETS_MAX];
    let mut read = 0;
    while read < octets.len() {
        match message.read(&mut octets[read..])? {
            0 => break,
            count => read += count,
        }
    }
    octets.truncate(read);
    Ok(of_header(&octets[..header_len(&octets)]))
}

fn of_header(header: &[u8]) -> Option<DateTime> {
    let received = fields(header).filter(|field| field.is("Received"));
    let mut received = received.filter_map(|field| {
        let semicolon = memchr::memrchr(b';', field.value)?;
        sent(&field.value[semicolon + 1..])
    });
    let dates = fields(header).filter(|field| field.is("Date"));
    let mut dates = dates.filter_map(|field| sent(field.value));
    let date = received.next().or_else(|| dates.next())?;
    // The written date and the date in UTC differ by a time zone; the message keeps the written day only.
    Some(Moment::from_seconds(date.seconds).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(header: &str) -> Option<i64> {
        of_header(header.as_bytes()).map(|date| date.moment().seconds())
    }

    #[test]
    fn the_last_server_tells_when_a_message_came_else_its_sender() {
        let received = "Received: from a (b; c)\n by d; Sat, 14 Sep 2002 13:36:40 -0700 (PDT)\n";
        let older = "Received: from x by y; Fri, 13 Sep 2002 13:36:40 +0000\n";
        let date = "Date: Sat, 14 Sep 2002 13:36:40\n";
        assert_eq!(
            seconds(&format!("Subject: s\n{received}{older}{date}\n")),
            Some(1_032_035_800)
        );
        assert_eq!(
            seconds(&format!("{date}Received: from a by b\n\n")),
            Some(1_032_010_600)
        );
        assert_eq!(seconds("Subject: s\n\nDate: 1 Jan 2002 00:00:00\n"), None);
        assert_eq!(seconds("Received: by a; never\nDate: soon\n\n"), None);
    }

    #[test]
    fn the_year_1970_is_no_date() {
        for (seconds, is_told) in [
            (0, false),
            (-36_000, false),
            (18_000, false),
            (YEAR - 1, false),
            (YEAR, true),
            (-86_401, true),
            (1_032_010_600, true),
        ] {
            let date = Moment::from_seconds(seconds);
            assert_eq!(told(Some(date)), is_told.then_some(date), "{seconds}");
        }
        assert_eq!(told(None), None);
    }
}
