//! Lines of a text, and where the octets of a body lie in the lines.

/// The end of a line.
pub(super) const CRLF: &[u8] = b"\r\n";

/// The form of lines: text of a whole group of body octets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lines {
    /// Body octets of a group.
    pub(super) plain: u32,
    /// Text octets of a group.
    pub(super) text: u32,
    /// Groups of a line.
    pub(super) groups: u32,
}

impl Lines {
    pub(super) const fn line_plain(self) -> u32 {
        self.plain.saturating_mul(self.groups)
    }

    /// Text octets of a line, without CRLF.
    pub(super) const fn line_text(self) -> u32 {
        self.text.saturating_mul(self.groups)
    }

    /// The group that has an offset of a body.
    pub(super) fn group_of(self, at: u32) -> u32 {
        at.checked_div(self.plain).unwrap_or(0)
    }

    /// The line of a group, and the groups before in the line.
    pub(super) fn line_of(self, group: u32) -> (u32, u32) {
        let line = group.checked_div(self.groups).unwrap_or(0);
        (line, group.saturating_sub(line.saturating_mul(self.groups)))
    }

    /// The offset of a group's text.
    pub(super) fn offset(self, group: u32) -> u32 {
        let (lines, rest) = self.line_of(group);
        let line = self.line_text().saturating_add(2);
        lines
            .saturating_mul(line)
            .saturating_add(rest.saturating_mul(self.text))
    }
}

/// Whether an octet is one of a line end that a server rewrote.
pub(super) const fn is_line_end(octet: u8) -> bool {
    matches!(octet, b'\r' | b'\n')
}
