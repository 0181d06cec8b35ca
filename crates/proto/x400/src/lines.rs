//! Text for people: one line for each field, indented by depth.

use std::fmt::{self, Display};

/// Writes lines.
pub(crate) struct Lines<'a, 'b> {
    out: &'a mut fmt::Formatter<'b>,
    depth: usize,
}

impl<'a, 'b> Lines<'a, 'b> {
    pub(crate) const fn new(out: &'a mut fmt::Formatter<'b>) -> Self {
        Self { out, depth: 0 }
    }

    /// Writes a line without a value.
    pub(crate) fn heading(&mut self, name: impl Display) -> fmt::Result {
        self.indent()?;
        writeln!(self.out, "{name}")
    }

    /// Writes a line with a name and a value. Control characters of the value are written as escapes: a peer
    /// chose it.
    pub(crate) fn line(&mut self, name: impl Display, value: impl Display) -> fmt::Result {
        self.indent()?;
        write!(self.out, "{name}: ")?;
        for character in value.to_string().chars() {
            if character.is_control() {
                write!(self.out, "{}", character.escape_default())?;
            } else {
                write!(self.out, "{character}")?;
            }
        }
        writeln!(self.out)
    }

    /// Writes a line if there is a value.
    pub(crate) fn optional(
        &mut self,
        name: impl Display,
        value: Option<impl Display>,
    ) -> fmt::Result {
        value.map_or(Ok(()), |value| self.line(name, value))
    }

    /// Writes lines below the last one.
    pub(crate) fn below(
        &mut self,
        write: impl FnOnce(&mut Lines<'_, 'b>) -> fmt::Result,
    ) -> fmt::Result {
        let depth = self.depth.saturating_add(1);
        write(&mut Lines {
            out: &mut *self.out,
            depth,
        })
    }

    /// Writes text as it is, each line indented.
    pub(crate) fn text(&mut self, text: &str) -> fmt::Result {
        for line in text.lines() {
            self.indent()?;
            for character in line.chars() {
                if character.is_control() && character != '\t' {
                    write!(self.out, "{}", character.escape_default())?;
                } else {
                    write!(self.out, "{character}")?;
                }
            }
            writeln!(self.out)?;
        }
        Ok(())
    }

    fn indent(&mut self) -> fmt::Result {
        write!(
            self.out,
            "{:width$}",
            "",
            width = self.depth.saturating_mul(2)
        )
    }
}
