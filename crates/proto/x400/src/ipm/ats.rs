//! The header of an ATS message (ICAO Doc 9880 part II): the first lines of the text of an aeronautical message.
//!
//! ```text
//! <SOH> PRI: FF <CR LF>
//! FT: 101523 <CR LF>
//! OHI: optional heading information <CR LF>
//! <CR LF or STX> text
//! ```

const SOH: char = '\u{01}';
const STX: char = '\u{02}';

/// The priority of an aeronautical message, highest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AtsPriority {
    /// Distress.
    Ss,
    /// Urgency.
    Dd,
    /// Flight safety.
    Ff,
    /// Meteorological and flight regularity.
    Gg,
    /// Administrative.
    Kk,
}

impl AtsPriority {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Ss, "SS"),
        (Self::Dd, "DD"),
        (Self::Ff, "FF"),
        (Self::Gg, "GG"),
        (Self::Kk, "KK"),
    ];

    /// The two letters.
    #[must_use]
    pub fn letters(self) -> &'static str {
        Self::ALL
            .into_iter()
            .find(|(priority, _)| *priority == self)
            .map_or("", |(_, letters)| letters)
    }

    fn from_letters(letters: &str) -> Option<Self> {
        let is = |known: &str| known.eq_ignore_ascii_case(letters);
        Self::ALL
            .into_iter()
            .find(|(_, known)| is(known))
            .map(|(priority, _)| priority)
    }
}

/// The header, and the text after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AtsHeader<'a> {
    /// `PRI`
    pub priority: AtsPriority,
    /// `FT`: day, hour and minute of filing, six digits.
    pub filing_time: &'a str,
    /// `OHI`
    pub optional_heading_information: Option<&'a str>,
    /// The text of the message.
    pub text: &'a str,
}

impl<'a> AtsHeader<'a> {
    /// Reads the header at the beginning of the text of an IA5 text body part; none if there is no header.
    #[must_use]
    pub fn read(text: &'a str) -> Option<Self> {
        let rest = text.strip_prefix(SOH).unwrap_or(text);
        let (priority, rest) = field(rest, "PRI:")?;
        let (filing_time, rest) = field(rest, "FT:")?;
        let (optional_heading_information, rest) = field(rest, "OHI:")
            .map_or((None, rest), |(information, rest)| {
                (Some(information), rest)
            });
        if filing_time.len() != 6 || !filing_time.bytes().all(|octet| octet.is_ascii_digit()) {
            return None;
        }
        let rest = rest
            .strip_prefix("\r\n")
            .or_else(|| rest.strip_prefix('\n'))
            .unwrap_or(rest);
        Some(Self {
            priority: AtsPriority::from_letters(priority)?,
            filing_time,
            optional_heading_information: optional_heading_information
                .filter(|text| !text.is_empty()),
            text: rest.strip_prefix(STX).unwrap_or(rest),
        })
    }

    /// Writes header and text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let Self {
            filing_time, text, ..
        } = self;
        let priority = self.priority.letters();
        let information = self
            .optional_heading_information
            .map(|text| format!("OHI: {text}\r\n"));
        let information = information.unwrap_or_default();
        format!("{SOH}PRI: {priority}\r\nFT: {filing_time}\r\n{information}{STX}{text}")
    }
}

/// The text of a line after a prompt, and the following lines.
fn field<'a>(text: &'a str, prompt: &str) -> Option<(&'a str, &'a str)> {
    let (line, rest) = text.split_once('\n')?;
    let value = line.strip_prefix(prompt)?;
    Some((value.trim(), rest))
}
