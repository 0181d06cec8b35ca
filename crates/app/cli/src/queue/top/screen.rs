//! The state of the display, and the effects of keys.

use std::cmp::Ordering;
use std::time::Duration;

use super::draw;
use super::sample::{Look, QueueKey, Row};
use vere_control::{TopOrder, TopSample};

/// Limit of the requested queues; of more queues the gateway returns the first in the chosen order.
const QUEUES_MAX: usize = 500;
/// Longest text to filter by.
const FILTER_MAX: usize = 100;

/// A key with a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Char(char),
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Escape,
    Backspace,
    Interrupt,
}

/// The effect of a key beyond another frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    /// A look at once.
    Look,
    Do(Deed),
    Quit,
}

/// The actions for the selected queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Hold,
    Release,
    Retry,
}

/// An order for a destination, in adopted queues of the same name too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Deed {
    pub(super) verb: Verb,
    pub(super) destination: String,
}

impl Deed {
    /// The question to the user.
    pub(super) fn question(&self) -> String {
        let name = &self.destination;
        match self.verb {
            Verb::Hold => format!("Deliver nothing to {name} until it is released? (y/n)"),
            Verb::Release => format!("Deliver to {name} again? (y/n)"),
            Verb::Retry => format!("Try all deferred messages for {name} now? (y/n)"),
        }
    }
}

/// The receiver of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mode {
    Table,
    /// The user types a text; Escape restores the text before.
    Filter {
        before: String,
    },
    Confirm(Deed),
    Help,
}

/// The sort order of the queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Queued,
    Ready,
    Deferred,
    InDelivery,
    Incoming,
    Outgoing,
    Oldest,
    Latency,
    Connections,
    Name,
}

impl Sort {
    const ALL: [Self; 10] = [
        Self::Name,
        Self::Queued,
        Self::Ready,
        Self::Deferred,
        Self::InDelivery,
        Self::Incoming,
        Self::Outgoing,
        Self::Oldest,
        Self::Latency,
        Self::Connections,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Ready => "ready",
            Self::Deferred => "deferred",
            Self::InDelivery => "in delivery",
            Self::Incoming => "rate in",
            Self::Outgoing => "rate out",
            Self::Oldest => "oldest",
            Self::Latency => "latency",
            Self::Connections => "connections",
            Self::Name => "name",
        }
    }

    fn step(self, by: usize) -> Self {
        let at = Self::ALL.iter().position(|one| *one == self).unwrap_or(0);
        Self::ALL[(at + by) % Self::ALL.len()]
    }

    /// The order by which the gateway chooses among too many queues: the gateway knows no rates, and a queue under
    /// delivery has connections.
    const fn wanted(self) -> TopOrder {
        match self {
            Self::Queued | Self::Ready | Self::Incoming => TopOrder::Messages,
            Self::Deferred => TopOrder::Deferred,
            Self::InDelivery | Self::Outgoing | Self::Latency | Self::Connections => {
                TopOrder::Connections
            }
            Self::Oldest => TopOrder::Oldest,
            Self::Name => TopOrder::Name,
        }
    }

    /// The largest first; names from a to z.
    fn compare(self, a: &Row, b: &Row) -> Ordering {
        let number = |row: &Row| -> f64 {
            let queue = &row.queue;
            match self {
                Self::Queued => queue.messages as f64,
                Self::Ready => row.ready() as f64,
                Self::Deferred => queue.deferred as f64,
                Self::InDelivery => queue.in_flight as f64,
                Self::Incoming => row.rates.map_or(-1.0, |rates| rates.came),
                Self::Outgoing => row.rates.map_or(-1.0, |rates| rates.left),
                Self::Oldest => queue.oldest_seconds.map_or(-1.0, |seconds| seconds as f64),
                Self::Latency => queue.latency_ms.map_or(-1.0, |millis| millis as f64),
                Self::Connections => queue.connections as f64,
                Self::Name => 0.0,
            }
        };
        number(b).total_cmp(&number(a))
    }
}

/// The request to the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) order: TopOrder,
    pub(super) filter: String,
    pub(super) limit: usize,
}

/// The state of the display.
#[derive(Debug)]
pub(super) struct Screen {
    pub(super) interval: Duration,
    pub(super) look: Option<Look>,
    /// Why the last look failed.
    pub(super) trouble: Option<String>,
    /// The outcome of the last order.
    pub(super) said: Option<String>,
    pub(super) mode: Mode,
    pub(super) sort: Sort,
    pub(super) backwards: bool,
    pub(super) filter: String,
    selected: Option<QueueKey>,
    /// Lines of the terminal.
    lines: u16,
}

impl Screen {
    pub(super) fn new(interval: Duration, filter: &str) -> Self {
        Self {
            interval,
            look: None,
            trouble: None,
            said: None,
            mode: Mode::Table,
            sort: Sort::Queued,
            backwards: false,
            filter: filter.to_owned(),
            selected: None,
            lines: 24,
        }
    }

    pub(super) fn wanted(&self) -> Wanted {
        Wanted {
            order: self.sort.wanted(),
            filter: self.filter.clone(),
            limit: QUEUES_MAX,
        }
    }

    /// The gateway answered, or did not.
    pub(super) fn sampled(&mut self, sample: Result<TopSample, String>) {
        match sample {
            Ok(sample) => self.looked(Look::new(sample, self.look.as_ref())),
            Err(trouble) => self.trouble = Some(trouble),
        }
    }

    /// Shows a look.
    pub(super) fn looked(&mut self, look: Look) {
        self.look = Some(look);
        self.trouble = None;
        self.arrange();
    }

    /// An order was carried out, or not.
    pub(super) fn said(&mut self, said: String) {
        self.said = Some(said);
    }

    pub(super) const fn resized(&mut self, lines: u16) {
        self.lines = lines;
    }

    /// Number of lines that show all queues.
    pub(super) fn height(&self) -> u16 {
        let rows = u16::try_from(self.rows().len()).unwrap_or(u16::MAX);
        rows.max(1).saturating_add(draw::other_lines(self))
    }

    /// The queues in display order.
    pub(super) fn rows(&self) -> &[Row] {
        self.look.as_ref().map_or(&[], |look| &look.rows)
    }

    /// The place of the selected queue; the first place, if the queue is gone.
    pub(super) fn place(&self) -> usize {
        let wanted = self.selected.as_ref();
        let place = |wanted: &QueueKey| self.rows().iter().position(|row| row.key() == *wanted);
        wanted.and_then(place).unwrap_or(0)
    }

    fn arrange(&mut self) {
        let (sort, backwards) = (self.sort, self.backwards);
        let Some(look) = &mut self.look else { return };
        look.rows.sort_by(|a, b| {
            let names = || {
                let name = |row: &Row| (row.queue.destination.clone(), row.queue.group.clone());
                name(a).cmp(&name(b))
            };
            let order = sort.compare(a, b).then_with(names);
            if backwards { order.reverse() } else { order }
        });
    }

    /// The effect of a key.
    pub(super) fn key(&mut self, key: Key) -> Effect {
        if key == Key::Interrupt {
            return Effect::Quit;
        }
        match std::mem::replace(&mut self.mode, Mode::Table) {
            Mode::Table => self.table_key(key),
            Mode::Filter { before } => self.filter_key(key, before),
            Mode::Confirm(deed) => match key {
                Key::Char('y' | 'Y') => Effect::Do(deed),
                Key::Char('n' | 'N' | 'q') | Key::Escape => Effect::None,
                // Neither yes nor no: the question remains.
                _ => {
                    self.mode = Mode::Confirm(deed);
                    Effect::None
                }
            },
            // Any key leads back.
            Mode::Help => Effect::None,
        }
    }

    fn table_key(&mut self, key: Key) -> Effect {
        self.said = None;
        let page = draw::rows_in(self, self.lines).max(1);
        match key {
            Key::Char('q') => return Effect::Quit,
            Key::Char('?') => self.mode = Mode::Help,
            Key::Char('/') => {
                let before = self.filter.clone();
                self.mode = Mode::Filter { before };
            }
            Key::Char('s') => return self.sort_by(self.sort.step(1)),
            Key::Char('S') => return self.sort_by(self.sort.step(Sort::ALL.len() - 1)),
            Key::Char('o') => {
                self.backwards = !self.backwards;
                self.arrange();
            }
            Key::Char('h') => self.ask(Verb::Hold),
            Key::Char('r') => self.ask(Verb::Release),
            Key::Char('t') => self.ask(Verb::Retry),
            Key::Escape if !self.filter.is_empty() => {
                self.filter.clear();
                return Effect::Look;
            }
            Key::Up | Key::Char('k') => self.select(self.place().saturating_sub(1)),
            Key::Down | Key::Char('j') => self.select(self.place() + 1),
            Key::PageUp => self.select(self.place().saturating_sub(page)),
            Key::PageDown => self.select(self.place() + page),
            Key::Home => self.select(0),
            Key::End => self.select(usize::MAX),
            _ => {}
        }
        Effect::None
    }

    fn sort_by(&mut self, sort: Sort) -> Effect {
        self.sort = sort;
        self.arrange();
        Effect::Look
    }

    fn filter_key(&mut self, key: Key, before: String) -> Effect {
        match key {
            Key::Enter => return Effect::Look,
            Key::Escape => {
                self.filter = before;
                return Effect::Look;
            }
            Key::Backspace => drop(self.filter.pop()),
            Key::Char(letter) if self.filter.len() < FILTER_MAX => self.filter.push(letter),
            _ => {}
        }
        self.mode = Mode::Filter { before };
        Effect::None
    }

    fn ask(&mut self, verb: Verb) {
        if let Some(row) = self.rows().get(self.place()) {
            let destination = row.queue.destination.clone();
            self.mode = Mode::Confirm(Deed { verb, destination });
        }
    }

    fn select(&mut self, place: usize) {
        let rows = self.rows();
        let place = place.min(rows.len().saturating_sub(1));
        self.selected = rows.get(place).map(Row::key);
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::tests::{queue, sample};
    use super::*;

    fn screen() -> Screen {
        let mut screen = Screen::new(Duration::from_secs(1), "");
        let queues = |a: u64, b: u64| vec![queue("a.example", 9 + a, a), queue("b.example", 5, b)];
        screen.sampled(Ok(sample(1_000, queues(0, 0))));
        screen.sampled(Ok(sample(2_000, queues(1, 2))));
        screen
    }

    fn names(screen: &Screen) -> Vec<&str> {
        let rows = screen.rows().iter();
        rows.map(|row| row.queue.destination.as_str()).collect()
    }

    #[test]
    fn keys_change_the_order_and_what_is_selected_stays_so() {
        let mut screen = screen();
        assert_eq!(names(&screen), ["a.example", "b.example"]);
        screen.key(Key::Down);
        assert_eq!(screen.place(), 1);
        while screen.sort != Sort::Outgoing {
            assert_eq!(screen.key(Key::Char('s')), Effect::Look);
        }
        assert_eq!(names(&screen), ["b.example", "a.example"]);
        assert_eq!(screen.place(), 0, "the same queue");
        screen.key(Key::Char('o'));
        assert_eq!(names(&screen), ["a.example", "b.example"]);
        screen.key(Key::Char('S'));
        assert_eq!(screen.sort, Sort::Incoming);
        screen.key(Key::End);
        screen.key(Key::Down);
        assert_eq!(screen.place(), 1, "not beyond the last");
        screen.key(Key::PageUp);
        assert_eq!(screen.place(), 0);
    }

    #[test]
    fn nothing_is_done_before_it_is_confirmed() {
        let mut screen = screen();
        screen.key(Key::Down);
        for (key, verb) in [('h', Verb::Hold), ('r', Verb::Release), ('t', Verb::Retry)] {
            assert_eq!(screen.key(Key::Char(key)), Effect::None);
            assert_eq!(screen.key(Key::Char('x')), Effect::None);
            assert_eq!(screen.key(Key::Escape), Effect::None);
            assert_eq!(screen.mode, Mode::Table);
            screen.key(Key::Char(key));
            let destination = "b.example".to_owned();
            let deed = Deed { verb, destination };
            assert_eq!(screen.key(Key::Char('y')), Effect::Do(deed));
        }
        let mut empty = Screen::new(Duration::from_secs(1), "");
        empty.key(Key::Char('h'));
        assert_eq!(empty.mode, Mode::Table, "there is no queue");
    }

    #[test]
    fn a_filter_is_typed_taken_and_left() {
        let mut screen = screen();
        screen.key(Key::Char('/'));
        for letter in "qx".chars() {
            assert_eq!(screen.key(Key::Char(letter)), Effect::None);
        }
        screen.key(Key::Backspace);
        assert_eq!(screen.key(Key::Enter), Effect::Look);
        assert_eq!(screen.wanted().filter, "q");
        screen.key(Key::Char('/'));
        screen.key(Key::Char('y'));
        assert_eq!(screen.key(Key::Escape), Effect::Look);
        assert_eq!(screen.filter, "q", "as before");
        assert_eq!(screen.key(Key::Escape), Effect::Look);
        assert_eq!(screen.filter, "");
        assert_eq!(screen.key(Key::Char('q')), Effect::Quit);
    }

    #[test]
    fn trouble_leaves_what_was_seen_last() {
        let mut screen = screen();
        screen.sampled(Err("no gateway is running".to_owned()));
        assert_eq!(screen.rows().len(), 2);
        assert!(screen.trouble.is_some());
        screen.sampled(Ok(sample(3_000, Vec::new())));
        assert_eq!((screen.rows().len(), screen.trouble.clone()), (0, None));
        assert_eq!(screen.key(Key::Interrupt), Effect::Quit);
    }
}
