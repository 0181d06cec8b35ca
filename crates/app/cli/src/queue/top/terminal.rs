//! The terminal in raw mode. A drop restores the terminal, also after a panic; signals that would end the program are
//! events.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::Rect;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use super::screen::Key;

/// An event of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    Key(Key),
    /// A signal asks for the end.
    Stop,
    /// An event that needs no more than another frame.
    Nothing,
}

/// The terminal in raw mode, on its second screen.
#[derive(Debug)]
pub(super) struct Terminal {
    inner: DefaultTerminal,
    stop: Arc<AtomicBool>,
}

impl Terminal {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// When the terminal refuses raw mode.
    pub(super) fn open() -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        // The library installs a hook before the printing of a panic, so that the text is on the first screen.
        let inner = ratatui::try_init().inspect_err(|_| ratatui::restore())?;
        Ok(Self { inner, stop })
    }

    /// Shows a frame, as large as the terminal is now.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub(super) fn draw(&mut self, draw: impl FnOnce(Rect, &mut Buffer)) -> io::Result<()> {
        self.inner
            .draw(|frame| draw(frame.area(), frame.buffer_mut()))
            .map(drop)
    }

    /// The number of lines.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub(super) fn height(&self) -> io::Result<u16> {
        self.inner.size().map(|size| size.height)
    }

    /// Waits so long for a key or another event.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub(super) fn wait(&self, patience: Duration) -> io::Result<Event> {
        let is_here = event::poll(patience)?;
        if self.stop.load(Ordering::Relaxed) {
            return Ok(Event::Stop);
        }
        if !is_here {
            return Ok(Event::Nothing);
        }
        Ok(match event::read()? {
            event::Event::Key(key) if key.kind != KeyEventKind::Release => {
                known(key).map_or(Event::Nothing, Event::Key)
            }
            _ => Event::Nothing,
        })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

fn known(key: KeyEvent) -> Option<Key> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(match key.code {
        KeyCode::Char('c') if control => Key::Interrupt,
        KeyCode::Char(_) if control => return None,
        KeyCode::Char(letter) => Key::Char(letter),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        _ => return None,
    })
}
