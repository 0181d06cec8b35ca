use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::super::sample::tests::{queue, sample};
use super::super::screen::Key;
use super::*;
use vere_control::QueueRow;

fn slow_queue() -> QueueRow {
    QueueRow {
        deferred: 3,
        in_flight: 2,
        connections: 2,
        connections_max: 5,
        site: Some("mx.slow.example".to_owned()),
        latency_ms: Some(1_500),
        held_until: Some("taken back".to_owned()),
        paused_until: Some("2026-11-22T06:00:00.000Z".to_owned()),
        oldest_seconds: Some(7_300),
        last_reply: Some("451 4.3.0 \x1b[2Jlater".to_owned()),
        ..queue("slow.example", 112, 12)
    }
}

fn screen() -> Screen {
    let mut screen = Screen::new(Duration::from_secs(1), "");
    let first = vec![queue("fast.example", 10, 0), slow_queue()];
    screen.sampled(Ok(sample(1_000, first)));
    let second = vec![queue("fast.example", 260, 255), slow_queue()];
    screen.sampled(Ok(sample(3_000, second)));
    screen
}

/// The content of a terminal of a given size.
fn shown(screen: &Screen, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal
        .draw(|whole| frame(screen, whole.area(), whole.buffer_mut()))
        .unwrap();
    let text = text(terminal.backend().buffer());
    text.lines().map(str::to_owned).collect()
}

fn find<'a>(lines: &'a [String], what: &str) -> &'a str {
    let found = lines.iter().find(|line| line.contains(what));
    found.unwrap_or_else(|| panic!("no {what} in {lines:#?}"))
}

#[test]
fn a_frame_of_80_columns_and_24_lines() {
    let expected = [
        "mx1  2026-11-22T05:00:00.000Z  every 1 s  intake open",
        "QUEUED 105  READY 105  DEFER 0  DLV 0  IN/S 125  OUT/S 128  OLD 2h",
        "queued             50 of 100      50 %  spool group    1.0MiB no limit",
        "replica a        sync       run  standby ready acknowledged 17, 2 open",
        "DESTINATION      *QUEUED  READY  DEFER   DLV   IN/S  OUT/S  OLD    LAT  CONN MRK",
        "slow.example         100     95      3     2      0      0   2h   1.5s   2/5 HS",
        "fast.example           5      5      0     0    125    128    -      -  0/10",
    ];
    let lines = shown(&screen(), 80, 24);
    assert_eq!(lines.len(), 24);
    assert_eq!(lines[..expected.len()], expected);
    assert_eq!(
        lines[21..],
        [
            "slow.example; site mx.slow.example; held until taken back; next try 2026-11-22T~",
            "451 4.3.0 [2Jlater",
            "q quit, ? help, s sort (queued), / filter, h hold, r release, t retry",
        ]
    );
}

#[test]
fn a_wide_terminal_shows_hosts_and_what_they_said() {
    let lines = shown(&screen(), 160, 24);
    let line = find(&lines, "slow.example  ");
    assert!(line.contains("mx.slow.example"), "{line}");
    assert!(line.ends_with("451 4.3.0 [2Jlater"), "{line}");
}

#[test]
fn what_hosts_said_last_comes_before_what_they_complained_of() {
    let told = |answer: Option<&str>, complaint: Option<&str>| {
        let queue = QueueRow {
            last_answer: answer.map(str::to_owned),
            last_reply: complaint.map(str::to_owned),
            ..queue("slow.example", 112, 12)
        };
        let mut screen = Screen::new(Duration::from_secs(1), "");
        screen.sampled(Ok(sample(1_000, vec![queue])));
        shown(&screen, 80, 24)[22].trim_end().to_owned()
    };
    assert_eq!(told(None, None), "");
    assert_eq!(told(Some("250 taken"), None), "250 taken");
    assert_eq!(told(None, Some("refused")), "refused");
    assert_eq!(told(Some("451 later"), Some("451 later")), "451 later");
    let both = told(Some("250 taken"), Some("451 later"));
    assert_eq!(both, "250 taken; last complaint: 451 later");
}

#[test]
fn every_size_is_drawn_and_the_prompt_is_at_the_bottom() {
    let screen = screen();
    for height in 1..40 {
        for width in [1, 10, 39, 80, 200] {
            let lines = shown(&screen, width, height);
            assert_eq!(lines.len(), usize::from(height));
        }
        if height > 5 {
            let lines = shown(&screen, 100, height);
            find(&lines, "slow.example    ");
            assert!(lines[usize::from(height) - 1].starts_with("q quit"));
        }
    }
}

#[test]
fn the_selected_queue_is_on_the_page_that_is_shown() {
    let mut screen = Screen::new(Duration::from_secs(1), "");
    let queues = (0..100).map(|n| queue(&format!("d{n:02}.example"), 5, 0));
    screen.sampled(Ok(sample(1_000, queues.collect())));
    screen.resized(24);
    let first = shown(&screen, 80, 24);
    find(&first, "d00.example  ");
    for _ in 0..3 {
        screen.key(Key::PageDown);
    }
    let later = shown(&screen, 80, 24);
    assert!(later.iter().all(|line| !line.starts_with("d00.example")));
    let named = later[21].trim_end().to_owned();
    assert!(later[..21].iter().any(|line| line.starts_with(&named)));
    screen.key(Key::End);
    find(&shown(&screen, 80, 24), "d99.example");
}

#[test]
fn questions_help_and_trouble_are_shown() {
    let mut screen = screen();
    screen.key(Key::Char('h'));
    find(&shown(&screen, 80, 24), "Deliver nothing to slow.example");
    screen.key(Key::Char('n'));
    screen.key(Key::Char('?'));
    find(&shown(&screen, 100, 40), "MARK: H held");
    screen.key(Key::Char('x'));
    screen.key(Key::Char('/'));
    screen.key(Key::Char('z'));
    find(&shown(&screen, 80, 24), "filter: z_");
    screen.key(Key::Enter);
    screen.sampled(Err("no gateway is running".to_owned()));
    find(&shown(&screen, 80, 24), "no gateway is running");
    let mut closed = sample(9_000, Vec::new());
    closed.closed = Some("queues are read back".to_owned());
    screen.sampled(Ok(closed));
    let lines = shown(&screen, 80, 24);
    find(&lines, "intake throttled: queues are read back");
    find(&lines, "no queue of that name has messages");
}

#[test]
fn figures_fit_their_columns() {
    assert_eq!(count(99_999), "99999");
    assert_eq!(count(1_000_000), "1000k");
    assert_eq!(count(u64::MAX).len(), 12, "beyond what anybody queues");
    assert_eq!(
        (rate(Some(0.0)), rate(Some(0.25))),
        ("0".to_owned(), "0.2".to_owned())
    );
    assert_eq!(latency(Some(1_234)), "1.2s");
}
