//! Octets of the last 24 hours, against a budget. Time is a steady time of the caller.

use std::collections::VecDeque;
use std::time::Duration;

use vere_ports::mail_accounts::Urgency;

/// The time that a budget is for.
pub(crate) const DAY: Duration = Duration::from_secs(24 * 3_600);

/// Octets are kept by slots of time, so the count has a bound. An octet counts for a day, and up to a slot longer.
const SLOT_SECONDS: u64 = 30 * 60;

/// Octets that went one way, and the most octets of a day.
#[derive(Debug)]
pub(crate) struct Window {
    limit: u64,
    /// Slots with octets, oldest first: at most 50.
    slots: VecDeque<(u64, u64)>,
    used: u64,
}

/// The part of a budget that requests of an urgency leave to more urgent ones: a half, a quarter, and so on. Commits
/// leave nothing.
const fn left_to_others(urgency: Urgency, limit: u64) -> u64 {
    match urgency {
        Urgency::Commit => 0,
        Urgency::Waited => limit >> 5,
        Urgency::Synced => limit >> 4,
        Urgency::Background => limit >> 3,
        Urgency::Ahead => limit >> 2,
        Urgency::Idle => limit >> 1,
    }
}

const fn slot(now: Duration) -> u64 {
    now.as_secs() / SLOT_SECONDS
}

/// When the octets of a slot count no more.
const fn end(slot: u64) -> Duration {
    let begin = Duration::from_secs(slot.saturating_mul(SLOT_SECONDS));
    begin
        .saturating_add(Duration::from_secs(SLOT_SECONDS))
        .saturating_add(DAY)
}

impl Window {
    pub(crate) const fn new(limit: u64) -> Self {
        Self {
            limit,
            slots: VecDeque::new(),
            used: 0,
        }
    }

    pub(crate) const fn limit(&self) -> u64 {
        self.limit
    }

    /// The octets of the last day.
    pub(crate) fn used(&mut self, now: Duration) -> u64 {
        while let Some((slot, octets)) = self.slots.front().copied()
            && end(slot) <= now
        {
            self.used = self.used.saturating_sub(octets);
            self.slots.pop_front();
        }
        self.used
    }

    /// Notes octets.
    pub(crate) fn charge(&mut self, octets: u64, now: Duration) {
        self.used(now);
        let slot = slot(now);
        self.used = self.used.saturating_add(octets);
        match self.slots.back_mut() {
            Some((last, own)) if *last >= slot => *own = own.saturating_add(octets),
            _ => self.slots.push_back((slot, octets)),
        }
    }

    /// Notes that fewer octets went than were charged.
    pub(crate) fn refund(&mut self, octets: u64) {
        if let Some((_, own)) = self.slots.back_mut() {
            let octets = octets.min(*own);
            *own = own.saturating_sub(octets);
            self.used = self.used.saturating_sub(octets);
        }
    }

    /// The time until so many octets may go; `None` if they may go now. A request above the whole budget goes alone.
    pub(crate) fn wait(
        &mut self,
        urgency: Urgency,
        octets: u64,
        now: Duration,
    ) -> Option<Duration> {
        let mut used = self.used(now);
        let most = self
            .limit
            .saturating_sub(left_to_others(urgency, self.limit));
        let fits = |used: u64| used == 0 || used.saturating_add(octets) <= most;
        if fits(used) {
            return None;
        }
        for (slot, octets) in &self.slots {
            used = used.saturating_sub(*octets);
            if fits(used) {
                return Some(end(*slot).saturating_sub(now));
            }
        }
        Some(DAY)
    }

    /// Age in seconds, counted from the begin of the slot, and octets of each slot.
    pub(crate) fn ages(&self, now: Duration) -> impl Iterator<Item = (u64, u64)> {
        self.slots.iter().map(move |(slot, octets)| {
            let begin = slot.saturating_mul(SLOT_SECONDS);
            (now.as_secs().saturating_sub(begin), *octets)
        })
    }

    /// Takes octets of an earlier run; the oldest come first.
    pub(crate) fn restore(&mut self, age_seconds: u64, octets: u64, now: Duration) {
        let then = now.saturating_sub(Duration::from_secs(age_seconds));
        if end(slot(then)) > now {
            self.charge_at(slot(then), octets);
        }
    }

    fn charge_at(&mut self, slot: u64, octets: u64) {
        self.used = self.used.saturating_add(octets);
        match self.slots.back_mut() {
            Some((last, own)) if *last >= slot => *own = own.saturating_add(octets),
            _ => self.slots.push_back((slot, octets)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);
    /// Steady times of a run begin anywhere.
    const BEGIN: Duration = Duration::from_secs(40 * 24 * 3_600);

    #[test]
    fn a_day_has_no_more_octets_than_its_budget() {
        let mut window = Window::new(1_000);
        // As many octets as go, at every minute of four days.
        let mut sent: Vec<(Duration, u64)> = Vec::new();
        for minute in 0..4 * 24 * 60 {
            let now = BEGIN + Duration::from_secs(60 * minute);
            while window.wait(Urgency::Commit, 7, now).is_none() {
                window.charge(7, now);
                sent.push((now, 7));
            }
            let day = sent.iter().filter(|(at, _)| *at + DAY > now);
            assert!(day.map(|(_, octets)| octets).sum::<u64>() <= 1_000);
        }
        // Nearly the whole budget goes each day.
        let all: u64 = sent.iter().map(|(_, octets)| octets).sum();
        assert!(all > 3_900, "{all}");
        assert!(window.slots.len() <= 50);
    }

    #[test]
    fn urgent_requests_go_on_where_others_wait() {
        let mut window = Window::new(1_000);
        let classes = [
            Urgency::Idle,
            Urgency::Ahead,
            Urgency::Background,
            Urgency::Synced,
            Urgency::Waited,
            Urgency::Commit,
        ];
        let mut most = Vec::new();
        for urgency in classes {
            while window.wait(urgency, 1, BEGIN).is_none() {
                window.charge(1, BEGIN);
            }
            most.push(window.used(BEGIN));
        }
        assert_eq!(most, [500, 750, 875, 938, 969, 1_000]);
        let wait = window.wait(Urgency::Idle, 1, BEGIN).expect("a wait");
        assert!(wait > DAY && wait <= DAY + HOUR / 2, "{wait:?}");
        assert_eq!(window.wait(Urgency::Idle, 1, BEGIN + wait), None);
    }

    #[test]
    fn a_request_above_the_budget_goes_alone() {
        let mut window = Window::new(10);
        assert_eq!(window.wait(Urgency::Idle, 4_000, BEGIN), None);
        window.charge(4_000, BEGIN);
        assert!(window.wait(Urgency::Commit, 1, BEGIN).is_some());
        window.refund(3_995);
        assert_eq!(window.used(BEGIN), 5);
        assert_eq!(window.wait(Urgency::Commit, 5, BEGIN), None);
    }

    #[test]
    fn octets_of_an_earlier_run_count() {
        let mut window = Window::new(1_000);
        window.charge(600, BEGIN);
        window.charge(300, BEGIN + HOUR);
        let now = BEGIN + HOUR * 2;
        let ages: Vec<_> = window.ages(now).collect();
        let mut other = Window::new(1_000);
        // Another boot: the steady time begins anew.
        for (age, octets) in ages {
            other.restore(age, octets, HOUR * 30);
        }
        assert_eq!(other.used(HOUR * 30), 900);
        assert_eq!(other.used(HOUR * 30 + HOUR * 22), 900);
        assert_eq!(other.used(HOUR * 30 + HOUR * 23), 300);
        assert_eq!(other.used(HOUR * 30 + HOUR * 24), 0);
    }
}
