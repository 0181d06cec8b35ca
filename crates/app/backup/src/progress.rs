//! Progress of long work, with rate and time left, at a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::ShownArgs;

/// A bar with a count of octets; hidden where standard error is no terminal.
pub(crate) fn bar(shown: &ShownArgs, what: &'static str, octets: u64) -> ProgressBar {
    let target = match shown.quiet {
        true => ProgressDrawTarget::hidden(),
        false => ProgressDrawTarget::stderr(),
    };
    let bar = ProgressBar::with_draw_target(Some(octets), target);
    let style = "{msg:12!} {wide_bar} {binary_bytes:>11}/{binary_total_bytes} {binary_bytes_per_sec:>13} {eta:>4}";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    bar.set_message(what);
    bar
}
