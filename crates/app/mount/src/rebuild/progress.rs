//! Bars with rate and time left.

use indicatif::{ProgressBar, ProgressStyle};

pub(super) fn bar(what: &'static str) -> ProgressBar {
    let bar = ProgressBar::no_length();
    let template = "{msg} {bar:40} {pos}/{len} {per_sec} {eta}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_message(what);
    bar
}

pub(super) fn show(bar: &ProgressBar, done: usize, all: usize) {
    bar.set_length(all as u64);
    bar.set_position(done as u64);
}
