//! `vere queue top`: the queues live, at a terminal.
//!
//! [`sample`] derives rates from two samples, [`screen`] has the displayed state and the effects of keys, [`draw`]
//! makes a frame of both; none of the three touches the terminal. [`terminal`] does, and is restored in any case;
//! [`asker`] asks the gateway on threads of its own, so that keys work while the gateway hangs.

mod asker;
mod draw;
mod sample;
mod screen;
mod terminal;

use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::time::{Duration, Instant};

use clap::Args;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use vere_units::Span;

use self::asker::{Asker, News};
use self::sample::Look;
use self::screen::{Effect, Screen};
use self::terminal::{Event, Terminal};
use vere_process::failure::Failure;
use vere_process::json::to_json;

/// The shortest interval between two samples: a shorter interval would only load the gateway.
const INTERVAL_MIN: Duration = Duration::from_millis(200);
/// The longest interval.
const INTERVAL_MAX: Duration = Duration::from_secs(3600);
/// Longest wait for a key before signals and answers are processed.
const EVENT_WAIT: Duration = Duration::from_millis(100);
/// Columns of a frame outside a terminal.
const ONCE_WIDTH: u16 = 132;
/// Limit of lines of a frame outside a terminal: a buffer of ratatui has no more than 65,535 cells.
const ONCE_HEIGHT_MAX: u16 = 480;

/// The arguments of `vere queue top`.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// The interval between two samples, from 200ms to 1h.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    interval: Span,
    /// Print a single frame as text after one interval, and end; needs no terminal.
    #[arg(long)]
    once: bool,
    /// Print the frame as JSON: an object with `gateway`, `time`, `millis`, `closed`, `delivers`, `totals`, `budgets`,
    /// `heaviest`, `replicas`, `queues`, `matching` and `rates` (per second).
    #[arg(long, requires = "once")]
    json: bool,
    /// Show only queues whose names contain this text.
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
}

/// Runs until the user quits, or returns a single frame as text.
///
/// # Errors
/// When no terminal is available, or with `--once` no gateway.
pub(super) fn run(socket: &Path, args: &TopArgs) -> Result<String, Failure> {
    let interval = args.interval.duration().clamp(INTERVAL_MIN, INTERVAL_MAX);
    let screen = Screen::new(interval, &args.filter);
    if args.once {
        let look = once(socket, &screen, interval)?;
        return match args.json {
            true => to_json(
                &look
                    .to_json()
                    .map_err(|error| Failure::new(error.to_string()))?,
            ),
            false => Ok(as_text(screen, look)),
        };
    }
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(Failure::new(
            "this is no terminal: vere queue top --once prints one frame, vere queue list --json all queues",
        ));
    }
    live(socket, screen, interval)?;
    Ok(String::new())
}

/// Takes two samples.
fn once(socket: &Path, screen: &Screen, interval: Duration) -> Result<Look, Failure> {
    let sample = || asker::sample(socket, &screen.wanted());
    let first = Look::new(sample()?, None);
    std::thread::sleep(interval);
    Ok(Look::new(sample()?, Some(&first)))
}

/// A frame as lines of text.
fn as_text(mut screen: Screen, look: Look) -> String {
    screen.looked(look);
    let area = Rect::new(0, 0, ONCE_WIDTH, screen.height().min(ONCE_HEIGHT_MAX));
    let mut buffer = Buffer::empty(area);
    draw::frame(&screen, area, &mut buffer);
    draw::text(&buffer)
}

fn live(socket: &Path, mut screen: Screen, interval: Duration) -> Result<(), Failure> {
    let mut terminal = Terminal::open()?;
    let mut asker = Asker::new(socket);
    let mut next = Instant::now();
    loop {
        if next <= Instant::now() && asker.look(screen.wanted()) {
            next = Instant::now() + interval;
        }
        terminal.draw(|area, buffer| draw::frame(&screen, area, buffer))?;
        screen.resized(terminal.height()?);
        match terminal.wait(EVENT_WAIT)? {
            Event::Key(key) => match screen.key(key) {
                Effect::None => {}
                Effect::Look => next = Instant::now(),
                Effect::Do(deed) => asker.act(deed),
                Effect::Quit => return Ok(()),
            },
            Event::Stop => return Ok(()),
            Event::Nothing => {}
        }
        while let Some(news) = asker.news() {
            match news {
                News::Sample(sample) => {
                    let sample = sample.map(|sample| *sample);
                    screen.sampled(sample.map_err(|error| error.to_string()));
                }
                News::Done(said) => {
                    screen.said(said);
                    next = Instant::now();
                }
            }
        }
    }
}
