//! Progress of a check, with rate and time left, at a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use vere_control::StoreProgress;

/// A bar of octets; hidden where standard error is no terminal.
pub(super) fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = "{msg:12!} {wide_bar} {binary_bytes:>11}/{binary_total_bytes} {binary_bytes_per_sec:>13} {eta:>4}";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    bar
}

/// Draws a state of the work.
pub(super) fn show(bar: &ProgressBar, progress: &StoreProgress) {
    if bar.message() != progress.stage {
        bar.reset();
        bar.set_message(progress.stage.clone());
    }
    match progress.all {
        0 => bar.unset_length(),
        all => bar.set_length(all),
    }
    bar.set_position(progress.done);
}
