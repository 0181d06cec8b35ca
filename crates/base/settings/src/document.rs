//! From the text of a file to checked values, by the table of options.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::errors::{ConfigError, Problem};
use crate::kind::{shown, type_of};
use crate::nearest::nearest;
use crate::table::{Fallback, Opt, REPEATED_MAX, SYSTEM, Section, Shape, Table};
use crate::value::Value;

/// The parser's text for a repeated key.
const DUPLICATE_KEY: &str = "duplicate key";
/// The largest file in octets; a hoster's file with thousands of routes has about one million.
const FILE_MAX: usize = 16 << 20;

/// The checked values of a file, with defaults, and the line of each key.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pub(crate) values: BTreeMap<String, Value>,
    pub(crate) lines: KeyLines,
    /// How many sections of each repeated kind there are; optional sections count 1 when present.
    pub(crate) counts: BTreeMap<&'static str, usize>,
}

/// The line of each key in a file.
#[derive(Debug, Default, Clone)]
pub struct KeyLines(BTreeMap<String, usize>);

impl KeyLines {
    /// Reads the keys of a text; an invalid text has no lines.
    #[must_use]
    pub fn of(text: &str) -> Self {
        read(text, SYSTEM)
            .map(|document| document.lines)
            .unwrap_or_default()
    }

    /// The line of a full key, such as `route[2].next_hop`; for a missing key, the line of the
    /// section header.
    #[must_use]
    pub fn at(&self, key: &str) -> Option<usize> {
        let section = || self.0.get(key.rsplit_once('.')?.0);
        self.0.get(key).or_else(section).copied()
    }

    fn note(&mut self, key: &str, line: usize) {
        self.0.insert(key.to_owned(), line);
    }
}

/// Reads a whole file by its table.
pub(crate) fn read(text: &str, table: Table) -> Result<Document, Vec<ConfigError>> {
    if text.len() > FILE_MAX {
        let problem = Problem::TooLarge(text.len(), FILE_MAX);
        return Err(vec![ConfigError {
            line: 1,
            key: String::new(),
            problem,
        }]);
    }
    let mut reader = Reader {
        table,
        lines: Lines::of(text),
        errors: Vec::new(),
        out: Document::default(),
    };
    let (root, syntax) = DeTable::parse_recoverable(text);
    let torn = reader.syntax(text, &syntax);
    if reader.version(root.get_ref()) {
        reader.section(table.top(), "", root.get_ref(), 1);
    }
    if let Some(torn) = torn {
        // Keys behind an invalid header appear to be in the wrong section.
        reader.errors.retain(|error| match error.problem {
            Problem::Syntax(_) => true,
            Problem::Missing(_) | Problem::VersionMissing => false,
            _ => error.line < torn,
        });
    }
    if reader.errors.is_empty() {
        Ok(reader.out)
    } else {
        Err(reader.errors)
    }
}

/// Where lines begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        let ends = text
            .bytes()
            .enumerate()
            .filter(|(_, octet)| *octet == b'\n');
        Self(
            std::iter::once(0)
                .chain(ends.map(|(at, _)| at + 1))
                .collect(),
        )
    }

    fn at(&self, span: &Range<usize>) -> usize {
        self.0.partition_point(|start| *start <= span.start)
    }
}

struct Reader {
    table: Table,
    lines: Lines,
    errors: Vec<ConfigError>,
    out: Document,
}

impl Reader {
    /// Finds the section `name` directly inside `section`.
    fn child(&self, section: &Section, name: &str) -> Option<&'static Section> {
        self.table.child(section, name)
    }

    fn error(&mut self, line: usize, key: &str, problem: Problem) {
        self.errors.push(ConfigError {
            line,
            key: key.to_owned(),
            problem,
        });
    }

    /// Records the syntax errors of the TOML text; returns the first line behind which keys may be
    /// assigned to a wrong section.
    fn syntax(&mut self, text: &str, found: &[toml::de::Error]) -> Option<usize> {
        let mut torn = None;
        for error in found {
            let line = error.span().map_or(1, |span| self.lines.at(&span));
            let word = error.span().and_then(|span| text.get(span));
            let message = error.message().replace('\n', ", ");
            let is_double = message == DUPLICATE_KEY;
            let message = match word.filter(|word| is_double && !word.is_empty()) {
                Some(word) => format!("{message}: {}", word.trim()),
                None => message,
            };
            if !is_double {
                torn = Some(torn.map_or(line, |torn: usize| torn.min(line)));
            }
            let problem = Problem::Syntax(message);
            // The parser reports a repeated key a second time for its value.
            let said =
                |other: &ConfigError| other.line == line && (is_double || other.problem == problem);
            if !self.errors.iter().any(said) {
                self.error(line, "", problem);
            }
        }
        torn
    }

    /// Checks the version first: in a file of another version no other key is reliable.
    fn version(&mut self, root: &DeTable<'_>) -> bool {
        let Some((key, value)) = root.iter().find(|(key, _)| key.get_ref() == "version") else {
            self.error(1, "version", Problem::VersionMissing);
            return true;
        };
        let number = value.get_ref().as_integer();
        let number = number.and_then(|n| i64::from_str_radix(n.as_str(), n.radix()).ok());
        match number {
            Some(1) | None => true,
            Some(other) => {
                let line = self.lines.at(&key.span());
                self.error(line, "version", Problem::VersionUnknown(other));
                false
            }
        }
    }

    /// Reads a section; `path` is the name with indices, `line` the line of the header.
    fn section(&mut self, section: &'static Section, path: &str, table: &DeTable<'_>, line: usize) {
        for (key, value) in table {
            let line = self.lines.at(&key.span());
            let name: &str = key.get_ref();
            if let Some(option) = section.options.iter().find(|option| option.name == name) {
                self.option(option, &join(path, name), value, line);
            } else if let Some(inner) = self.child(section, name) {
                self.inner(inner, &join(path, name), value, line);
            } else {
                let near = self.near(section, name);
                let shown = shown(name);
                let name = if shown.len() == name.len() + 2 {
                    name
                } else {
                    &shown
                };
                self.error(line, &join(path, name), Problem::UnknownKey(near));
            }
        }
        for option in section.options {
            let key = join(path, option.name);
            if !table.iter().any(|(name, _)| name.get_ref() == option.name) {
                self.absent(option, &key, line);
            }
        }
        for inner in self.table.sections() {
            let name = inner.name.rsplit('.').next().unwrap_or_default();
            let present = table.iter().any(|(key, _)| key.get_ref() == name);
            let belongs = self
                .child(section, name)
                .is_some_and(|child| child.name == inner.name);
            if belongs && !present && inner.shape == Shape::Always {
                self.section(inner, &join(path, name), &DeTable::new(), line);
            }
        }
    }

    fn option(&mut self, option: &Opt, key: &str, value: &Spanned<DeValue<'_>>, line: usize) {
        match option.kind.check(value.get_ref()) {
            Ok(value) => {
                self.out.values.insert(key.to_owned(), value);
                self.out.lines.note(key, line);
            }
            Err(problem) => self.error(line, key, problem),
        }
    }

    fn absent(&mut self, option: &Opt, key: &str, line: usize) {
        match option.default {
            // Said already, in better words.
            Fallback::Required(_) if key == "version" => {}
            Fallback::Required(example) => {
                self.error(line, key, Problem::Missing(example.to_owned()));
            }
            Fallback::Nothing(_) => {}
            Fallback::Is(text) => {
                let value = DeValue::parse(text)
                    .ok()
                    .map(|value| option.kind.check(value.get_ref()));
                let Some(Ok(value)) = value else {
                    panic!("the default of {key} in the option table fails its own check");
                };
                self.out.values.insert(key.to_owned(), value);
            }
        }
    }

    /// Reads a nested section.
    fn inner(
        &mut self,
        section: &'static Section,
        path: &str,
        value: &Spanned<DeValue<'_>>,
        line: usize,
    ) {
        self.out.lines.note(path, line);
        match (section.shape, value.get_ref()) {
            (Shape::Always | Shape::Optional, DeValue::Table(table)) => {
                self.out.counts.insert(section.name, 1);
                self.section(section, path, table, line);
            }
            (Shape::Repeated, DeValue::Array(list)) => {
                if list.len() > REPEATED_MAX {
                    let found = format!("{} sections", list.len());
                    let allowed = format!("expected at most {REPEATED_MAX}");
                    self.error(line, path, Problem::NotAllowed { found, allowed });
                    return;
                }
                self.out.counts.insert(section.name, list.len());
                for (n, entry) in list.iter().enumerate() {
                    let path = format!("{path}[{}]", n + 1);
                    let line = self.lines.at(&entry.span());
                    match entry.get_ref() {
                        DeValue::Table(table) => {
                            self.out.lines.note(&path, line);
                            self.section(section, &path, table, line);
                        }
                        other => self.no_section(section, &path, other, line),
                    }
                }
            }
            (_, other) => self.no_section(section, path, other, line),
        }
    }

    fn no_section(&mut self, section: &Section, path: &str, found: &DeValue<'_>, line: usize) {
        let wanted = match section.shape {
            Shape::Always | Shape::Optional => format!("a section [{}]", section.name),
            Shape::Repeated => format!("sections [[{}]], one for each", section.name),
        };
        self.error(
            line,
            path,
            Problem::WrongType {
                found: type_of(found),
                wanted,
            },
        );
    }

    /// Finds the likely meaning of a name: a name in this section, or the same name in another
    /// section.
    fn near(&self, section: &'static Section, name: &str) -> Option<String> {
        let options = section.options.iter().map(|option| option.name);
        let inner = self
            .table
            .sections()
            .filter_map(|one| one.name.rsplit('.').next());
        let inner = inner.filter(|name| self.child(section, name).is_some());
        if let Some(near) = nearest(name, options.chain(inner)) {
            return Some(near.to_owned());
        }
        let mut elsewhere = self.table.sections().filter_map(|one| {
            let known = one.options.iter().any(|option| option.name == name);
            known.then(|| join(one.name, name))
        });
        elsewhere.next()
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}
