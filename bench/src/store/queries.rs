//! The questions of a mailbox without changes: lists, and searches with texts chosen from the mail by the number of
//! messages that contain the text.

use super::mail::{Mail, Random};

/// Number of messages read to find out how common a text is.
const LOOKED_AT: usize = 2_000;

/// Number of candidates; the text nearest to the wanted share is chosen.
const CANDIDATES: usize = 200;

/// A command whose reply is timed.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    /// The name of the figure.
    pub(crate) task: &'static str,
    pub(crate) command: String,
}

/// Words by the share of messages that contain the word.
const WORDS: [(&str, &str, f64); 8] = [
    ("TEXT 0.1 %", "TEXT", 0.001),
    ("TEXT 1 %", "TEXT", 0.01),
    ("TEXT 10 %", "TEXT", 0.1),
    ("TEXT 50 %", "TEXT", 0.5),
    ("BODY 0.1 %", "BODY", 0.001),
    ("BODY 1 %", "BODY", 0.01),
    ("BODY 10 %", "BODY", 0.1),
    ("BODY 50 %", "BODY", 0.5),
];

/// Two adjacent words, and five letters within longer words, likewise.
const PHRASES: [(&str, f64); 3] = [
    ("phrase 0.1 %", 0.001),
    ("phrase 1 %", 0.01),
    ("phrase 10 %", 0.1),
];
const PARTS: [(&str, f64); 3] = [
    ("part of a word 0.1 %", 0.001),
    ("part of a word 1 %", 0.01),
    ("part of a word 10 %", 0.1),
];

/// The figure of a question's first answer, where a system may remember the result.
pub(crate) fn first_answer(task: &str) -> Option<&'static str> {
    match task {
        "phrase 0.1 %" => Some("phrase 0.1 %, first time"),
        "phrase 1 %" => Some("phrase 1 %, first time"),
        "phrase 10 %" => Some("phrase 10 %, first time"),
        _ => None,
    }
}

/// Lengths of passages, in characters.
const PASSAGES: [(&str, usize); 6] = [
    ("1 character", 1),
    ("2 characters", 2),
    ("3 characters", 3),
    ("10 characters", 10),
    ("100 characters", 100),
    ("1,000 characters", 1_000),
];

/// A word that no message contains.
const ABSENT: &str = "zqxjkvwy";

/// The fields of a client's list of messages.
const LIST: &str = "FETCH 1:* (FLAGS INTERNALDATE RFC822.SIZE ENVELOPE)";
const FOUR_FIELDS: &str = "FETCH 1:* (BODY.PEEK[HEADER.FIELDS (FROM TO SUBJECT DATE)])";

/// The questions for the large mailbox.
pub(crate) fn questions(mail: &Mail) -> Vec<Question> {
    let mut questions = Vec::new();
    let mut ask = |task, command: String| questions.push(Question { task, command });
    ask("list", LIST.to_owned());
    ask("four fields", FOUR_FIELDS.to_owned());
    ask("all headers", "FETCH 1:* (BODY.PEEK[HEADER])".to_owned());
    ask("FROM", "SEARCH FROM \"linux\"".to_owned());
    ask("SUBJECT", "SEARCH SUBJECT \"kernel\"".to_owned());
    ask("SENTSINCE", "SEARCH SENTSINCE 1-Jan-2005".to_owned());
    let several = "SEARCH FROM \"linux\" SUBJECT \"re\" TO \"mips\" SENTSINCE 1-Jan-2003";
    ask("several fields", several.to_owned());
    ask("TEXT absent", format!("SEARCH TEXT \"{ABSENT}\""));
    ask("BODY absent", format!("SEARCH BODY \"{ABSENT}\""));
    for (task, key, share) in WORDS {
        ask(task, format!("SEARCH {key} \"{}\"", mail.word(share)));
    }
    let texts = Texts::new(mail);
    for (tasks, found) in [(PHRASES, texts.phrases()), (PARTS, texts.parts())] {
        let found = texts.count(found);
        for (task, share) in tasks {
            ask(task, format!("SEARCH BODY \"{}\"", nearest(&found, share)));
        }
    }
    for (task, length) in PASSAGES {
        ask(task, format!("SEARCH BODY \"{}\"", texts.passage(length)));
    }
    questions
}

/// The questions for the small account, whose neighbour has much mail.
pub(crate) fn small_questions(mail: &Mail) -> Vec<Question> {
    [
        ("small account: list", LIST.to_owned()),
        ("small account: four fields", FOUR_FIELDS.to_owned()),
        ("small account: FROM", "SEARCH FROM \"linux\"".to_owned()),
        (
            "small account: TEXT 1 %",
            format!("SEARCH TEXT \"{}\"", mail.word(0.01)),
        ),
    ]
    .map(|(task, command)| Question { task, command })
    .into()
}

/// Texts of bodies for searches.
struct Texts {
    /// Some bodies spread over the mail, as written and in lower case.
    bodies: Vec<Vec<u8>>,
    small: Vec<Vec<u8>>,
}

impl Texts {
    fn new(mail: &Mail) -> Self {
        let every = mail.messages.len().div_ceil(LOOKED_AT).max(1);
        let bodies: Vec<Vec<u8>> = mail
            .messages
            .iter()
            .step_by(every)
            .filter_map(|message| plain_body(message))
            .map(<[u8]>::to_vec)
            .collect();
        let small = bodies
            .iter()
            .map(|body| body.to_ascii_lowercase())
            .collect();
        Self { bodies, small }
    }

    /// Some lines, drawn from all bodies.
    fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let mut random = Random::new();
        let mut draw = move |among: usize| (random.next() % among.max(1) as u64) as usize;
        let tries = if self.bodies.is_empty() {
            0
        } else {
            CANDIDATES * 20
        };
        (0..tries).filter_map(move |_| {
            let body = &self.small[draw(self.small.len())];
            let behind = &body[draw(body.len())..];
            let rest = behind.get(memchr::memchr(b'\n', behind)? + 1..)?;
            rest.split(|octet| matches!(octet, b'\r' | b'\n')).next()
        })
    }

    /// Two words with a blank between.
    fn phrases(&self) -> Vec<String> {
        let phrase = |line: &[u8]| {
            let mut words = line.split(|octet| *octet == b' ');
            let (one, two) = (words.next()?, words.next()?);
            let is_word = |word: &[u8]| word.len() > 1 && word.iter().all(u8::is_ascii_alphabetic);
            let both = is_word(one) && is_word(two);
            both.then(|| String::from_utf8_lossy(&[one, b" ", two].concat()).into_owned())
        };
        self.lines().filter_map(phrase).take(CANDIDATES).collect()
    }

    /// Five letters from within a word.
    fn parts(&self) -> Vec<String> {
        let part = |line: &[u8]| {
            let mut words = line.split(|octet| !octet.is_ascii_alphabetic());
            let word = words.find(|word| word.len() > 6)?;
            Some(String::from_utf8_lossy(&word[1..6]).into_owned())
        };
        self.lines().filter_map(part).take(CANDIDATES).collect()
    }

    /// Each text with the share of the bodies that contain the text.
    fn count(&self, mut texts: Vec<String>) -> Vec<(String, f64)> {
        texts.sort_unstable();
        texts.dedup();
        let share = |text: &String| {
            let finder = memchr::memmem::Finder::new(text.as_bytes());
            let found = self.small.iter().filter(|body| finder.find(body).is_some());
            found.count() as f64 / self.small.len().max(1) as f64
        };
        texts
            .into_iter()
            .map(|text| (text.clone(), share(&text)))
            .collect()
    }

    /// A passage of `length` characters out of one line, or the longest passage.
    fn passage(&self, length: usize) -> String {
        let is_plain = |octet: &u8| (b' '..=b'~').contains(octet) && !matches!(octet, b'"' | b'\\');
        let lines = self
            .bodies
            .iter()
            .flat_map(|body| body.split(|octet| !is_plain(octet)));
        let mut longest: &[u8] = b"e";
        for line in lines.map(<[u8]>::trim_ascii) {
            if line.len() > longest.len() {
                longest = line;
            }
            if line.len() >= length {
                break;
            }
        }
        let passage = longest.get(..length).unwrap_or(longest);
        String::from_utf8_lossy(passage.trim_ascii_end()).into_owned()
    }
}

/// The body of a message without encoding and without parts.
fn plain_body(message: &[u8]) -> Option<&[u8]> {
    let (header, body) = message.split_at(memchr::memmem::find(message, b"\r\n\r\n")? + 4);
    let header = header.to_ascii_lowercase();
    let is_other = [
        &b"base64"[..],
        b"quoted-printable",
        b"multipart/",
        b"text/html",
    ]
    .iter()
    .any(|word| memchr::memmem::find(&header, word).is_some());
    (!is_other && body.is_ascii()).then_some(body)
}

/// The text whose share is nearest to `share`.
fn nearest(texts: &[(String, f64)], share: f64) -> &str {
    let distance = |known: f64| (known - share).abs();
    let nearest = texts
        .iter()
        .min_by(|one, other| distance(one.1).total_cmp(&distance(other.1)));
    nearest.map_or("of the", |(text, _)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts() -> Texts {
        let message = |text: &str| format!("Subject: x\r\n\r\n\r\n{text}\r\n").into_bytes();
        let mut messages: Vec<Vec<u8>> = (0..90)
            .map(|_| message("the usual words everywhere"))
            .collect();
        messages.extend((0..10).map(|_| message("a \"quoted\" rare finding")));
        messages.push(b"Content-Type: text/html\r\n\r\n<p>no plain text\r\n".to_vec());
        let mail = Mail::of(messages);
        Texts::new(&mail)
    }

    #[test]
    fn texts_are_chosen_by_how_many_messages_hold_them() {
        let texts = texts();
        assert_eq!(texts.bodies.len(), 100);
        let phrases = texts.count(texts.phrases());
        assert_eq!(phrases, [("the usual".to_owned(), 0.9)]);
        let parts = texts.count(texts.parts());
        assert_eq!(nearest(&parts, 0.8), "veryw");
        assert_eq!(nearest(&parts, 0.1), "indin");
    }

    #[test]
    fn passages_are_as_long_as_the_mail_has_them() {
        let texts = texts();
        assert_eq!(texts.passage(1), "t");
        assert_eq!(texts.passage(3), "the");
        assert_eq!(texts.passage(10), "the usual");
        assert_eq!(texts.passage(1_000), "the usual words everywhere");
        let html = b"Content-Type: TEXT/HTML\r\n\r\n<p>\r\n";
        assert_eq!(plain_body(html), None);
    }
}
