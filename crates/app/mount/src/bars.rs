//! Bars of counted work, with rate and time left.

use std::fmt::Write;

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

/// A bar for this work; its length comes with the first [`show`].
pub(crate) fn bar(what: &'static str) -> ProgressBar {
    let bar = ProgressBar::no_length();
    let template = "{msg} {bar:40} {pos}/{len} {rate} {eta}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        let style = style.with_key("rate", |state: &ProgressState, out: &mut dyn Write| {
            // A bar has no way to report an error.
            let _shown = write!(out, "{:.0}/s", state.per_sec());
        });
        bar.set_style(style);
    }
    bar.set_message(what);
    bar
}

pub(crate) fn show(bar: &ProgressBar, done: usize, all: usize) {
    bar.set_length(all as u64);
    bar.set_position(done as u64);
}
