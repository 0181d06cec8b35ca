//! The addresses in a header field (RFC 5322 section 3.4), as envelopes need them.
//!
//! ```text
//! address-list = address *("," address)
//! address      = mailbox / group
//! mailbox      = name-addr / addr-spec
//! name-addr    = [display-name] "<" addr-spec ">"
//! group        = display-name ":" [mailbox-list] ";"
//! ```
//!
//! Lenient as programs of this machine are used to: an address without a domain is one of ours, the
//! obsolete source route is dropped. What is no address at all comes back as it stands, so that whoever
//! checks it can name it.

/// One place in the text of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Plain,
    Quoted,
    /// Within so many parentheses.
    Comment(usize),
    /// Between `[` and `]`.
    Literal,
}

/// The addresses in the value of a field, unfolded or not.
pub(crate) fn addresses(value: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut current = Address::default();
    let mut place = Place::Plain;
    let mut characters = value.chars();
    while let Some(c) = characters.next() {
        if c == '\\' && matches!(place, Place::Quoted | Place::Comment(_)) {
            let next = characters.next();
            if place == Place::Quoted {
                current.push(c);
                next.into_iter().for_each(|next| current.push(next));
            }
            continue;
        }
        place = match (place, c) {
            (Place::Quoted, '"') => {
                current.push(c);
                Place::Plain
            }
            (Place::Literal, ']') => {
                current.push(c);
                Place::Plain
            }
            (Place::Comment(1), ')') => Place::Plain,
            (Place::Comment(depth), ')') => Place::Comment(depth - 1),
            (Place::Comment(depth), '(') => Place::Comment(depth + 1),
            (Place::Comment(_), _) => place,
            (Place::Quoted | Place::Literal, _) => {
                current.push(c);
                place
            }
            (Place::Plain, _) => plain(c, &mut current, &mut found),
        };
    }
    current.finish(&mut found);
    found
}

fn plain(c: char, current: &mut Address, found: &mut Vec<String>) -> Place {
    match c {
        '(' => return Place::Comment(1),
        '"' => {
            current.push(c);
            return Place::Quoted;
        }
        '[' => {
            current.push(c);
            return Place::Literal;
        }
        '<' => current.open(),
        '>' => current.close(),
        // The name of a group was no address; within brackets it is the end of a source route.
        ':' => current.clear(),
        ',' if current.in_route() => current.clear(),
        ',' | ';' => current.finish(found),
        // Spaces do not belong to an address, but keep the words of a name apart.
        c if c.is_whitespace() => current.space(),
        c => current.push(c),
    }
    Place::Plain
}

/// What was read of one address.
#[derive(Debug, Default)]
struct Address {
    text: String,
    /// The text between the brackets, once they are closed.
    bracketed: Option<String>,
    open: bool,
    space: bool,
}

impl Address {
    fn push(&mut self, c: char) {
        // `a @ b . c` is one address; `John Doe` are two words of a name.
        let joins = |c: char| matches!(c, '@' | '.');
        if std::mem::take(&mut self.space)
            && !self.text.is_empty()
            && !joins(c)
            && !self.text.ends_with(joins)
        {
            self.text.push(' ');
        }
        self.text.push(c);
    }

    fn space(&mut self) {
        self.space = true;
    }

    fn open(&mut self) {
        self.clear();
        self.open = true;
    }

    fn close(&mut self) {
        if std::mem::take(&mut self.open) {
            self.bracketed = Some(std::mem::take(&mut self.text));
        }
        self.clear();
    }

    fn clear(&mut self) {
        self.text.clear();
        self.space = false;
    }

    /// Whether a comma stands in a source route: `<@a,@b:c@d>`.
    fn in_route(&self) -> bool {
        self.open && self.text.starts_with('@')
    }

    fn finish(&mut self, found: &mut Vec<String>) {
        let done = std::mem::take(self);
        let address = done.bracketed.unwrap_or(done.text);
        if !address.is_empty() {
            found.push(address);
        }
    }
}

/// Puts the domain behind an address that has none.
pub(crate) fn complete(address: &str, domain: &str) -> String {
    // An `@` may stand in a quoted local part.
    let behind_quote = address.rfind('"').map_or(0, |end| end + 1);
    if address[behind_quote..].contains('@') {
        address.to_owned()
    } else {
        format!("{address}@{domain}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_an_address_is_found() {
        for (value, expected) in [
            ("a@b.example", &["a@b.example"][..]),
            (
                "root, Alice <a@b>,\r\n \"Doe, J.\" <j@d>",
                &["root", "a@b", "j@d"],
            ),
            ("Friends: a@b, c@d; , e@f", &["a@b", "c@d", "e@f"]),
            ("undisclosed-recipients:;", &[]),
            ("a@b (work (not) \\) home), (only a comment)", &["a@b"]),
            ("\"odd, \\\"name\\\"\"@b", &["\"odd, \\\"name\\\"\"@b"]),
            ("Old <@x,@y:a@b>, p @ q . r", &["a@b", "p@q.r"]),
            ("u@[IPv6:2001:db8::1], <>", &["u@[IPv6:2001:db8::1]"]),
            ("John Doe", &["John Doe"]),
            ("a@b c@d", &["a@b c@d"]),
            ("\"never closed, a@b", &["\"never closed, a@b"]),
            ("", &[]),
        ] {
            assert_eq!(addresses(value), expected, "{value}");
        }
    }

    #[test]
    fn a_domain_is_added_where_there_is_none() {
        assert_eq!(complete("root", "h.example"), "root@h.example");
        assert_eq!(complete("a@b", "h.example"), "a@b");
        assert_eq!(complete("\"a@b\"", "h.example"), "\"a@b\"@h.example");
    }
}
