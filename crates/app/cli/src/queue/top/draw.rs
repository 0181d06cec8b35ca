//! A frame of the displayed state, as a pure function.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use vere_process::wording::size;

use super::sample::{Rates, Row};
use super::screen::{Mode, Screen, Sort};
use vere_control::{Budget, HeaviestClient, ReplicaLine};
use vere_health::figures::{age, dash};

/// Columns of a budget, with the gap behind the budget.
const BUDGET_WIDTH: u16 = 40;
/// Columns of the table without the first column and the columns of wide terminals.
const FIGURES_WIDTH: usize = 64;
/// The least columns of a destination, and the most before the site is shown too.
const NAME_MIN: usize = 12;
const NAME_MAX: usize = 40;
/// Columns of a site.
const SITE_WIDTH: usize = 24;
/// Lines at the bottom: the selected queue, its last reply, the keys.
const FOOT: usize = 3;
/// Share from which a budget is highlighted.
const NEARLY_FULL_PERCENT: u64 = 90;

const PLAIN: Style = Style::new();
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const HEAD: Style = Style::new().add_modifier(Modifier::REVERSED);
const WARN: Style = Style::new().fg(Color::Yellow);
const BAD: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);

const HELP: [&str; 18] = [
    "up, down, k, j           select a queue; page up, page down, home, end",
    "s, S                     sort by the next, the previous column",
    "o                        opposite order",
    "/                        show only queues whose names hold a text; Escape: all again",
    "h                        hold: deliver nothing there, mail is taken",
    "r                        release: end a hold",
    "t                        try deferred messages now",
    "q, Control-C             quit",
    "",
    "READY waits for its turn, DEFER for a time, DLV is being delivered; IN/S and OUT/S are",
    "messages a second; LAT is what a message takes at its hosts; CONN is connections of those",
    "that may be open now: fewer when the hosts answer 4xx, break off or grow slow.",
    "MARK: H held, h messages held one by one, R refused, S suspended until the next try,",
    "W another way, O in order, A adopted.",
    "",
    "Budgets are what is used of its limit. A replica that is not `sync` does not count for",
    "what is acknowledged.",
    "Any key leads back.",
];

/// Lines beside the lines of queues.
pub(super) fn other_lines(screen: &Screen) -> u16 {
    let table_head = 1;
    let lines = top(screen, u16::MAX).len() + table_head + FOOT;
    u16::try_from(lines).unwrap_or(u16::MAX)
}

/// Queues visible at once on a terminal with `lines` lines.
pub(super) fn rows_in(screen: &Screen, lines: u16) -> usize {
    // As wide as a narrow terminal: a page is never larger than the visible part.
    let others = top(screen, 80).len() + 1 + FOOT;
    usize::from(lines).saturating_sub(others)
}

/// Draws everything into `area`.
pub(super) fn frame(screen: &Screen, area: Rect, buffer: &mut Buffer) {
    let width = usize::from(area.width);
    let height = usize::from(area.height);
    let mut lines = top(screen, area.width);
    // A terminal of a few lines shows queues rather than all else.
    lines.truncate(height.saturating_sub(FOOT + 2));
    let room = height.saturating_sub(lines.len() + FOOT);
    if screen.mode == Mode::Help {
        lines.extend(HELP.iter().take(room).map(|text| Line::raw(*text)));
    } else if room > 0 {
        lines.push(Line::styled(head(screen, width), HEAD));
        lines.extend(table(screen, width, room - 1));
    }
    lines.resize(height.saturating_sub(FOOT), Line::default());
    lines.extend(foot(screen, width));
    for (y, line) in (area.y..area.bottom()).zip(&lines) {
        buffer.set_line(area.x, y, line, area.width);
    }
}

/// A frame as text, without blanks at line ends.
pub(super) fn text(buffer: &Buffer) -> String {
    let mut out = String::new();
    for row in buffer.content.chunks(usize::from(buffer.area.width).max(1)) {
        let line: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// The lines above the table.
fn top(screen: &Screen, width: u16) -> Vec<Line<'static>> {
    let Some(look) = &screen.look else {
        return vec![Line::styled(
            "vere queue top: waiting for the gateway",
            BOLD,
        )];
    };
    let sample = &look.sample;
    let intake = match &sample.closed {
        None => Span::styled("open", PLAIN),
        Some(reason) => Span::styled(format!("throttled: {reason}"), BAD),
    };
    let every = screen.interval.as_secs_f64();
    let title = format!(
        "{}  {}  every {every} s  intake ",
        sample.gateway, sample.time
    );
    let totals = &sample.totals;
    let ready = totals
        .messages
        .saturating_sub(totals.deferred + totals.in_flight + totals.held);
    let held = match totals.held {
        0 => String::new(),
        held => format!("HELD {}  ", count(held as u64)),
    };
    let mut lines = vec![
        Line::from(vec![Span::styled(title, BOLD), intake]),
        Line::raw(format!(
            "QUEUED {}  READY {}  DEFER {}  {held}DLV {}  IN/S {}  OUT/S {}  OLD {}",
            count(totals.messages as u64),
            count(ready as u64),
            count(totals.deferred as u64),
            count(totals.in_flight as u64),
            rate(look.rates.map(|rates| rates.came)),
            rate(look.rates.map(|rates| rates.left)),
            totals.oldest_seconds.map_or_else(dash, age),
        )),
    ];
    let in_line = usize::from((width / BUDGET_WIDTH).clamp(1, 3));
    for some in sample.budgets.chunks(in_line) {
        lines.push(Line::from(some.iter().map(budget).collect::<Vec<_>>()));
    }
    let memory = sample.heaviest.as_ref().map(|one| heaviest("", one));
    let disk = sample.heaviest_on_disk.as_ref();
    lines.extend(memory);
    lines.extend(disk.map(|one| heaviest(", on disk", one)));
    lines.extend(sample.replicas.iter().map(replica));
    lines
}

fn heaviest(place: &str, heaviest: &HeaviestClient) -> Line<'static> {
    let octets = size(heaviest.octets);
    let plural = if heaviest.messages == 1 { "" } else { "s" };
    Line::raw(format!(
        "receiving most{place} from {}: {} in {} message{plural}",
        heaviest.client,
        short_size(&octets),
        count(heaviest.messages as u64),
    ))
}

fn budget(budget: &Budget) -> Span<'static> {
    let figure = |number: u64| {
        if budget.octets {
            size(number)
        } else {
            count(number)
        }
    };
    let used = figure(budget.used);
    let percent = budget
        .max
        .map(|max| budget.used.saturating_mul(100) / max.max(1));
    let of = match budget.max {
        Some(max) => format!("of {} ", short_size(&figure(max))),
        None => "no limit ".to_owned(),
    };
    let share = percent.map_or_else(String::new, |percent| format!("{percent} %"));
    let text = format!(
        "{:<13}{:>8} {of:<11}{share:>5}",
        budget.name,
        short_size(&used)
    );
    let full = percent.is_some_and(|percent| percent >= NEARLY_FULL_PERCENT);
    let width = usize::from(BUDGET_WIDTH);
    Span::styled(format!("{text:<width$}"), if full { BAD } else { PLAIN })
}

/// `10 MiB` as `10MiB`.
fn short_size(text: &str) -> String {
    text.replace(' ', "")
}

fn replica(line: &ReplicaLine) -> Line<'static> {
    let mut text = format!(
        "replica {:<8} {:<10} {:<4} standby {:<5} acknowledged {}, {} open",
        line.node, line.sync, line.active, line.standby, line.transactions, line.in_flight
    );
    if let Some(copied) = line.copied {
        text += &format!(", {copied} copied");
    }
    if let Some(trouble) = &line.trouble {
        text += &format!(": {trouble}");
    }
    let whole = line.sync == "sync" && line.active == "run";
    Line::styled(text, if whole { PLAIN } else { WARN })
}

/// Columns of the destination, the site and the last reply.
fn columns(width: usize) -> (usize, Option<usize>) {
    let left = width.saturating_sub(FIGURES_WIDTH);
    let wide = left > NAME_MAX + SITE_WIDTH;
    let name = if wide { NAME_MAX } else { left.max(NAME_MIN) };
    (name, wide.then_some(SITE_WIDTH))
}

fn head(screen: &Screen, width: usize) -> String {
    let mark = |sort: Sort, name: &str| {
        if screen.sort == sort {
            format!("*{name}")
        } else {
            name.to_owned()
        }
    };
    let (name, site) = columns(width);
    let mut text = format!(
        "{:<name$} {:>7} {:>6} {:>6} {:>5} {:>6} {:>6} {:>4} {:>6} {:>5} MRK",
        mark(Sort::Name, "DESTINATION"),
        mark(Sort::Queued, "QUEUED"),
        mark(Sort::Ready, "READY"),
        mark(Sort::Deferred, "DEFER"),
        mark(Sort::InDelivery, "DLV"),
        mark(Sort::Incoming, "IN/S"),
        mark(Sort::Outgoing, "OUT/S"),
        mark(Sort::Oldest, "OLD"),
        mark(Sort::Latency, "LAT"),
        mark(Sort::Connections, "CONN"),
    );
    if let Some(site) = site {
        text += &format!(" {:<site$} LAST COMPLAINT", "SITE");
    }
    format!("{text:<width$}")
}

/// The page of the table with the selected queue.
fn table(screen: &Screen, width: usize, room: usize) -> Vec<Line<'static>> {
    let rows = screen.rows();
    if rows.is_empty() {
        let filtered = !screen.filter.is_empty();
        let text = match (&screen.look, filtered) {
            (None, _) => "",
            (_, true) => "no queue of that name has messages",
            (_, false) => "no queues",
        };
        return vec![Line::raw(text); room.min(1)];
    }
    let selected = screen.place();
    let first = selected.checked_div(room).unwrap_or(0) * room;
    let page = rows.iter().enumerate().skip(first).take(room);
    page.map(|(place, row)| {
        let mut style = match marks(row) {
            (_, true) => WARN,
            (_, false) => PLAIN,
        };
        if place == selected {
            style = style.add_modifier(Modifier::REVERSED);
        }
        Line::styled(line(row, width), style)
    })
    .collect()
}

fn line(row: &Row, width: usize) -> String {
    let queue = &row.queue;
    let (name, site) = columns(width);
    let rates = row.rates;
    let of = |part: fn(Rates) -> f64| rate(rates.map(part));
    let mut text = format!(
        "{:<name$} {:>7} {:>6} {:>6} {:>5} {:>6} {:>6} {:>4} {:>6} {:>5} {:<3}",
        cut(&queue.destination, name),
        count(queue.messages as u64),
        count(row.ready() as u64),
        count(queue.deferred as u64),
        count(queue.in_flight as u64),
        of(|rates| rates.came),
        of(|rates| rates.left),
        queue.oldest_seconds.map_or_else(dash, age),
        latency(queue.latency_ms),
        format!("{}/{}", queue.connections, queue.connections_max),
        marks(row).0,
    );
    if let Some(site) = site {
        let hosts = cut(queue.site.as_deref().unwrap_or("-"), site);
        let said = queue.last_reply.as_deref().unwrap_or("-");
        text += &format!(" {hosts:<site$} {said}");
    }
    format!("{text:<width$}")
}

/// Letters for the orders of a queue, and whether the orders need attention.
fn marks(row: &Row) -> (String, bool) {
    let queue = &row.queue;
    let all = [
        ('H', queue.held_until.is_some(), true),
        ('h', queue.held > 0, true),
        ('R', queue.refused_until.is_some(), true),
        ('S', queue.paused_until.is_some(), true),
        ('W', queue.way.is_some(), true),
        ('O', queue.in_order, false),
        ('A', queue.group.is_some(), false),
    ];
    let set = || all.iter().filter(|(_, set, _)| *set);
    (
        set().map(|(letter, ..)| *letter).collect(),
        set().any(|(.., attention)| *attention),
    )
}

/// The selected queue in words, and the receiver of keys.
fn foot(screen: &Screen, width: usize) -> [Line<'static>; FOOT] {
    let (mut about, mut said) = (String::new(), String::new());
    if let Some(row) = screen.rows().get(screen.place()) {
        let queue = &row.queue;
        about.clone_from(&queue.destination);
        let mut add = |text: &str, value: Option<&String>| {
            if let Some(value) = value {
                about += &format!("{text}{value}");
            }
        };
        add(" of ", queue.group.as_ref());
        add("; site ", queue.site.as_ref());
        add("; held until ", queue.held_until.as_ref());
        let held = Some(queue.held).filter(|held| *held > 0);
        add(
            "; held one by one: ",
            held.map(|held| held.to_string()).as_ref(),
        );
        add("; by way of ", queue.way.as_ref());
        add("; refused until ", queue.refused_until.as_ref());
        add("; next try ", queue.paused_until.as_ref());
        said = match (&queue.last_answer, &queue.last_reply) {
            (Some(answer), Some(complaint)) if answer != complaint => {
                format!("{answer}; last complaint: {complaint}")
            }
            (answer, complaint) => answer
                .clone()
                .or_else(|| complaint.clone())
                .unwrap_or_default(),
        };
    }
    [
        Line::raw(cut(&about, width)),
        Line::raw(cut(&said, width)),
        prompt(screen),
    ]
}

fn prompt(screen: &Screen) -> Line<'static> {
    match (&screen.mode, &screen.trouble, &screen.said) {
        (Mode::Filter { .. }, ..) => Line::styled(format!("filter: {}_", screen.filter), BOLD),
        (Mode::Confirm(deed), ..) => Line::styled(deed.question(), BAD),
        (_, Some(trouble), _) => Line::styled(trouble.clone(), BAD),
        (_, None, Some(said)) => Line::styled(said.clone(), BOLD),
        (_, None, None) => Line::raw(keys(screen)),
    }
}

fn keys(screen: &Screen) -> String {
    let rows = screen.rows().len();
    let matching = screen.look.as_ref().map_or(0, |look| look.sample.matching);
    let mut text = format!("q quit, ? help, s sort ({})", screen.sort.name());
    text += ", / filter, h hold, r release, t retry";
    if !screen.filter.is_empty() {
        text += &format!("; filter {:?}", screen.filter);
    }
    if matching > rows {
        text += &format!("; {rows} of {matching}");
    }
    text
}

/// At most so many characters.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let start = text.chars().take(width.saturating_sub(1));
    start.chain(['~']).collect()
}

/// At most six columns.
fn count(number: u64) -> String {
    match number {
        0..100_000 => number.to_string(),
        100_000..100_000_000 => format!("{}k", number / 1_000),
        100_000_000..100_000_000_000 => format!("{}M", number / 1_000_000),
        _ => format!("{}G", number / 1_000_000_000),
    }
}

fn rate(rate: Option<f64>) -> String {
    match rate {
        None => "-".to_owned(),
        Some(rate) if rate > 0.0 && rate < 99.95 => format!("{rate:.1}"),
        Some(rate) => format!("{rate:.0}"),
    }
}

fn latency(millis: Option<u64>) -> String {
    match millis {
        None => "-".to_owned(),
        Some(millis @ ..1_000) => format!("{millis}ms"),
        Some(millis @ ..100_000) => format!("{:.1}s", millis as f64 / 1_000.0),
        Some(millis) => format!("{}s", millis / 1_000),
    }
}

#[cfg(test)]
mod tests;
