//! The imports of a Rust file: its `use` declarations, `mod` declarations, definitions and paths.
//!
//! A scanner of tokens, not a parser of Rust: comments, literals, attributes and items under
//! `#[cfg(test)]` are left out, and of what remains only names and paths count.

use std::collections::{BTreeMap, BTreeSet};

/// A path as written, one segment each: `crate::role::wire` is `["crate", "role", "wire"]`.
pub(super) type Path = Vec<String>;

/// A name brought into a file by a `use` declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Import {
    /// The meaning of the name.
    pub(super) path: Path,
    /// `pub`, `pub(crate)` or `pub(super)`: the file passes the name on.
    pub(super) passed_on: bool,
}

/// The declarations of a file about other files.
#[derive(Debug, Default)]
pub(super) struct Source {
    /// `mod name;` outside tests.
    pub(super) children: BTreeSet<String>,
    /// `use` declarations by name; nameless declarations (`as _`) by path.
    pub(super) imports: BTreeMap<String, Import>,
    /// Paths before `::*`.
    pub(super) globs: Vec<Path>,
    /// Names of items defined outside functions.
    pub(super) defined: BTreeSet<String>,
    /// Names and paths in the code itself.
    pub(super) paths: BTreeSet<Path>,
}

/// Reads the production code of a file.
pub(super) fn read(text: &str) -> Source {
    let tokens = tokens(text);
    let mut reader = Reader {
        tokens: &tokens,
        at: 0,
        source: Source::default(),
    };
    reader.run();
    reader.source
}

struct Reader<'a> {
    tokens: &'a [&'a str],
    at: usize,
    source: Source,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> &'a str {
        self.tokens.get(self.at).copied().unwrap_or("")
    }

    fn after(&self) -> &'a str {
        self.tokens.get(self.at + 1).copied().unwrap_or("")
    }

    fn run(&mut self) {
        let mut depth = 0_usize;
        let mut passed_on = false;
        while self.at < self.tokens.len() {
            let visible = std::mem::take(&mut passed_on);
            match self.peek() {
                "#" => self.attribute(),
                "pub" => {
                    self.at += 1;
                    if self.peek() == "(" {
                        self.group();
                    }
                    passed_on = true;
                }
                // `use<'a>` in a return type is no import.
                "use" if self.after() != "<" => {
                    self.at += 1;
                    self.use_tree(&Path::new(), visible);
                }
                "mod" if self.tokens.get(self.at + 2) == Some(&";") => {
                    self.source.children.insert(self.after().to_owned());
                    self.at += 3;
                }
                "{" => {
                    depth += 1;
                    self.at += 1;
                }
                "}" => {
                    depth = depth.saturating_sub(1);
                    self.at += 1;
                }
                token if is_name(token) => {
                    if depth == 0 {
                        self.definition();
                    }
                    self.path();
                }
                _ => self.at += 1,
            }
        }
    }

    /// Records the item whose keyword stands here.
    fn definition(&mut self) {
        let name = match self.peek() {
            "struct" | "enum" | "union" | "trait" | "type" | "fn" | "static" | "const" => {
                self.after()
            }
            "macro_rules" => self.tokens.get(self.at + 2).copied().unwrap_or(""),
            _ => return,
        };
        if is_name(name) {
            self.source.defined.insert(name.to_owned());
        }
    }

    /// Notes a name or path of the code.
    fn path(&mut self) {
        let before = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        // A field or method, and the rest of a path that begins elsewhere.
        let inner = matches!(before, Some(&("." | "::" | "$")));
        let mut path = vec![self.peek().to_owned()];
        self.at += 1;
        while self.peek() == "::" && is_name(self.after()) {
            path.push(self.after().to_owned());
            self.at += 2;
        }
        let field = path.len() == 1 && self.peek() == ":";
        if !inner && !field {
            self.source.paths.insert(path);
        }
    }

    /// Reads a `use` tree up to the `;`, or up to the `,` or `}` at the end of a branch.
    fn use_tree(&mut self, before: &Path, passed_on: bool) {
        let mut path = before.clone();
        loop {
            match self.peek() {
                "{" => {
                    self.at += 1;
                    while !matches!(self.peek(), "}" | "") {
                        self.use_tree(&path, passed_on);
                        if self.peek() == "," {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    return;
                }
                "*" => {
                    self.at += 1;
                    self.source.globs.push(path);
                    return;
                }
                "as" => {
                    let name = match self.after() {
                        "_" => path.join("::"),
                        name => name.to_owned(),
                    };
                    self.at += 2;
                    return self.import(name, path, passed_on);
                }
                "::" => self.at += 1,
                token if is_name(token) => {
                    // `a::{self}` names `a`.
                    if token != "self" || path.is_empty() {
                        path.push(token.to_owned());
                    }
                    self.at += 1;
                }
                _ => {
                    let name = path.last().cloned().unwrap_or_default();
                    return self.import(name, path, passed_on);
                }
            }
        }
    }

    fn import(&mut self, name: String, path: Path, passed_on: bool) {
        if !name.is_empty() {
            self.source.imports.insert(name, Import { path, passed_on });
        }
    }

    /// Skips an attribute, and the following item if marked as test code.
    fn attribute(&mut self) {
        self.at += 1;
        if self.peek() == "!" {
            self.at += 1;
        }
        let begun = self.at;
        self.group();
        if self.tokens.get(begun..self.at) == Some(&["[", "cfg", "(", "test", ")", "]"]) {
            while self.peek() == "#" {
                self.at += 1;
                self.group();
            }
            self.item();
        }
    }

    /// Skips from an opening bracket to the closing bracket.
    fn group(&mut self) {
        let mut depth = 0_usize;
        while self.at < self.tokens.len() {
            match self.peek() {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return;
            }
        }
    }

    /// Skips an item, a statement, a field or an arm.
    fn item(&mut self) {
        const ITEMS: [&str; 12] = [
            "pub", "fn", "mod", "struct", "enum", "impl", "trait", "const", "static", "type",
            "async", "use",
        ];
        let first = self.peek();
        while self.at < self.tokens.len() {
            match self.peek() {
                ";" => {
                    self.at += 1;
                    return;
                }
                "," if !ITEMS.contains(&first) => return,
                "{" => {
                    self.group();
                    if first != "use" {
                        return;
                    }
                }
                "(" | "[" => self.group(),
                "}" => return,
                _ => self.at += 1,
            }
        }
    }
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Names, `::` and single signs; comments and literals are gone.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let taken = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = literal(rest) {
            length
        } else {
            let length = if rest.starts_with("::") {
                2
            } else if is_name(rest) {
                rest.find(|sign: char| !sign.is_alphanumeric() && sign != '_')
                    .unwrap_or(rest.len())
            } else {
                first.len_utf8()
            };
            if !first.is_whitespace() && !first.is_ascii_digit() {
                tokens.extend(rest.get(..length));
            }
            length
        };
        rest = rest.get(taken..).unwrap_or("");
    }
    tokens
}

/// The length of the text or character literal, or lifetime, that begins here.
fn literal(text: &str) -> Option<usize> {
    let prefix = text.len() - text.trim_start_matches(['b', 'r', 'c']).len();
    let after = text.get(prefix.min(2)..)?;
    let raw = text.get(..prefix.min(2))?.contains('r');
    let hashes = after.len() - after.trim_start_matches('#').len();
    let begin = prefix.min(2) + hashes;
    if raw && after.get(hashes..)?.starts_with('"') {
        let end = format!("\"{}", "#".repeat(hashes));
        let length = after.get(hashes + 1..)?.find(&end)?;
        return Some(begin + 1 + length + end.len());
    }
    if hashes == 0 && after.starts_with('"') {
        return Some(begin + closed(after, '"')?);
    }
    if hashes == 0 && after.starts_with('\'') {
        let mut signs = after.char_indices().skip(1);
        let (_, first) = signs.next()?;
        let (second_at, second) = signs.next()?;
        return Some(match (first, second) {
            ('\\', _) => begin + closed(after, '\'')?,
            (_, '\'') => begin + second_at + 1,
            _ => begin + 1,
        });
    }
    None
}

/// The length of a literal with escapes.
fn closed(text: &str, end: char) -> Option<usize> {
    let mut escaped = false;
    for (at, sign) in text.char_indices().skip(1) {
        match sign {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            sign if sign == end => return Some(at + sign.len_utf8()),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(text: &str) -> Vec<String> {
        let source = read(text);
        let said = |(name, import): (&String, &Import)| {
            let pass = if import.passed_on { "pub " } else { "" };
            format!("{pass}{name}={}", import.path.join("::"))
        };
        source.imports.iter().map(said).collect()
    }

    #[test]
    fn use_trees_are_taken_apart() {
        let text = "use crate::a::{self, B, c::{D as E, F as _}};\npub(crate) use super::g::H;";
        assert_eq!(
            imports(text),
            [
                "B=crate::a::B",
                "E=crate::a::c::D",
                "pub H=super::g::H",
                "a=crate::a",
                "crate::a::c::F=crate::a::c::F",
            ]
        );
        assert_eq!(read("use super::*;").globs, [["super"]]);
    }

    #[test]
    fn tests_comments_and_literals_are_left_out() {
        let text = r##"
            // use crate::a;
            /* crate::b */
            const A: &str = "crate::c \" crate::d";
            const B: &str = r#"crate::e " crate::f"#;
            const C: (char, char) = ('"', '\'');
            fn g<'a>(x: &'a str) { crate::h(x) }
            #[cfg(test)]
            #[allow(unused)]
            use crate::i::{j, k};
            #[cfg(test)]
            mod l { use crate::m; }
            #[cfg(test)]
            mod n;
            struct O { #[cfg(test)] p: crate::q, r: crate::s }
            mod t;
        "##;
        let source = read(text);
        assert_eq!(source.imports.len(), 0);
        assert_eq!(Vec::from_iter(source.children), ["t"]);
        let crates = source.paths.iter().filter(|path| path[0] == "crate");
        let crates: Vec<String> = crates.map(|path| path.join("::")).collect();
        assert_eq!(crates, ["crate::h", "crate::s"]);
        assert_eq!(Vec::from_iter(source.defined), ["A", "B", "C", "O", "g"]);
    }

    #[test]
    fn methods_and_fields_are_no_names() {
        let paths = read("fn f() { a.merge(); B { c: d::e } }").paths;
        assert!(!paths.contains(&vec!["merge".to_owned()]));
        assert!(!paths.contains(&vec!["c".to_owned()]));
        assert!(paths.contains(&vec!["d".to_owned(), "e".to_owned()]));
    }
}
