//! Sections of a description: the user's own lines stay.

/// The text with a further section at the end; the user's own lines stay.
pub(crate) fn with_section(text: &str, section: &str) -> String {
    let text = text.trim_end_matches('\n');
    format!("{text}\n\n{section}")
}

#[cfg(test)]
mod tests {
    use super::with_section;
    use vere_settings::Volume;

    #[test]
    fn a_section_leaves_the_rest_as_it_was() {
        let text = "# My volume\nversion = 1\nmode = \"strong\"   # sure is sure\n\n\
            [[account]]   # the old one\nnumber = 1\nurl = \"imaps://a@one.example/\"\npassword_file = \"p\"\n\n\n";
        let section = "[[account]]\nnumber = 2\nurl = \"imaps://a@two.example/\"\npassword_file = \"p\"\ngroup = 1\n";
        let new = with_section(text, section);
        assert!(new.starts_with(text.trim_end()), "{new}");
        let volume = Volume::parse(&new, "home.toml").unwrap();
        assert!(volume.strong);
        assert_eq!(volume.accounts.len(), 2);
        assert_eq!(volume.accounts[1].group, 1);
    }
}
