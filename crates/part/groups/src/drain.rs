//! Delivers the queues of gateways that are dead, in the foreground (`vere queue drain --here`).

mod error;

use std::error::Error;
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::{LocalSet, spawn_local};
use vere_cluster::Register;
use vere_owner::Membership;
use vere_settings::Settings;

pub use self::error::DrainError;
use super::connecting::link_options;
use super::group::{self, Group};
use super::takeover::{self, End, Progress, Quarantine};
use super::trade::Trade;
use vere_link as nodes;
use vere_link::link::{SpoolLink, random_life};
use vere_link::namesake::{self, By, Namesake};
use vere_link::reader::Admission;
use vere_process::wording::messages;

/// Interval between progress lines.
const TELL: Duration = Duration::from_secs(2);
/// Pause before a node that did not answer is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Drains groups with mail of one kind.
#[derive(Debug)]
pub struct Drainer<T: Trade, E, F> {
    /// Opens the process, before the first group.
    pub open: fn(&Arc<Settings>) -> Result<T, E>,
    /// Delivers the mail of a group until it is dropped.
    pub deliver: fn(Rc<Group<T>>) -> F,
}

impl<T: Trade, E: Error, F: Future<Output = ()> + 'static> Drainer<T, E, F> {
    /// Drains the groups of the given gateways, or of all dead gateways. With `force`, also drains the group of a live
    /// gateway, which then ends. Writes progress to `out`.
    ///
    /// # Errors
    /// When a gateway lives, or something is left.
    pub fn drain(
        self,
        settings: &Arc<Settings>,
        names: &[String],
        force: bool,
        out: &mut dyn Write,
    ) -> Result<(), DrainError<E>> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let local = LocalSet::new();
        runtime.block_on(local.run_until(async {
            let (stop, stopped) = watch::channel(false);
            let mut terminate = signal(SignalKind::terminate())?;
            let mut interrupt = signal(SignalKind::interrupt())?;
            spawn_local(async move {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
                stop.send_replace(true);
            });
            let mut drain = Drain {
                by: self,
                settings,
                register: nodes::register(settings)?,
                force,
                stopped,
                process: None,
            };
            drain.run(names, out).await
        }))
    }
}

struct Drain<'a, T: Trade, E, F> {
    by: Drainer<T, E, F>,
    settings: &'a Arc<Settings>,
    register: Register,
    force: bool,
    stopped: watch::Receiver<bool>,
    /// Opened for the first group; the others share resolver, directory and trace with it.
    process: Option<Rc<T>>,
}

impl<T: Trade, E: Error, F: Future<Output = ()> + 'static> Drain<'_, T, E, F> {
    async fn run(&mut self, names: &[String], out: &mut dyn Write) -> Result<(), DrainError<E>> {
        if !names.is_empty() {
            for name in names {
                if !self.drain(name, out).await? {
                    return Err(DrainError::Alive(name.clone()));
                }
            }
            return Ok(());
        }
        let all = self.register.list("group/").await?;
        for (key, _) in all {
            let name = key.strip_prefix("group/").unwrap_or(&key);
            if !T::adopts(name) {
                continue;
            }
            if !self.drain(name, out).await? {
                writeln!(out, "{name}: its {} lives, left alone", T::OWNER)?;
            }
        }
        Ok(())
    }

    /// Delivers what one group holds. False: its gateway lives.
    async fn drain(&mut self, name: &str, out: &mut dyn Write) -> Result<bool, DrainError<E>> {
        let record = self.record(name).await?;
        self.wait_admitted(name, &record, out).await?;
        let life = random_life();
        let mark = nodes::mark(self.settings, name, life)?;
        let mut options = link_options(self.settings, name)?;
        if !self.force {
            let terms = options.lease;
            let wait = (terms.lease + terms.skew).as_secs();
            writeln!(
                out,
                "{name}: looking whether its {} lives, up to {wait} s",
                T::OWNER
            )?;
            let alive = mark.is_elsewhere()
                || Namesake::Alive
                    == namesake::look(&self.register, name, terms, &mark.dead, By::Another).await;
            if alive {
                return Ok(false);
            }
        }
        (options.life, options.dead) = (life, mark.dead.clone());
        options.adopted = true;
        options.takes = Some(record.epoch).filter(|_| !self.force);
        let (link, driver) = SpoolLink::connect(options);
        spawn_local(driver);
        let group = group::new(&self.process()?, link);
        let group = Rc::new(group);
        let mut told = Told::new(name, out);
        let delivering = (self.by.deliver)(Rc::clone(&group));
        let (stopped, quarantine) = (&mut self.stopped, Quarantine::Stays);
        let end = takeover::deliver(&group, delivering, stopped, quarantine, |progress| {
            told.tell(progress);
        })
        .await;
        let last = told.last;
        group.host.process.flush_trace();
        let (name, left) = (name.to_owned(), last.messages);
        match end {
            End::Empty {
                unreadable: 0,
                quarantined: 0,
            } => writeln!(out, "{name}: nothing is left")?,
            End::Empty {
                unreadable: 0,
                quarantined,
            } => writeln!(
                out,
                "{name}: nothing is left but {} in the quarantine, for the next {} of this name",
                messages(quarantined),
                T::OWNER
            )?,
            End::Empty { unreadable, .. } => {
                return Err(DrainError::Unreadable { name, unreadable });
            }
            End::Taken => return Err(DrainError::Taken { name, left }),
            End::Stopped => return Err(DrainError::Stopped { name, left }),
        }
        Ok(true)
    }

    /// Waits until a node says that this machine may have the group.
    async fn wait_admitted(
        &mut self,
        name: &str,
        record: &Membership,
        out: &mut dyn Write,
    ) -> Result<(), DrainError<E>> {
        let mut told = String::new();
        loop {
            match nodes::admission(self.settings, name, record).await? {
                Admission::Granted => return Ok(()),
                Admission::Denied(reason) => {
                    let account = &self.settings.spool.speaks_as;
                    return Err(DrainError::Denied {
                        name: name.to_owned(),
                        account: account.clone(),
                        reason: reason.to_string(),
                    });
                }
                Admission::Unknown(error) if error != told => {
                    writeln!(out, "{name}: waiting for the nodes: {error}")?;
                    told = error;
                }
                Admission::Unknown(_) => {}
            }
            tokio::select! {
                _ = self.stopped.changed() => {
                    return Err(DrainError::Unchanged(name.to_owned()));
                }
                () = tokio::time::sleep(ASK_AGAIN) => {}
            }
        }
    }

    async fn record(&self, name: &str) -> Result<Membership, DrainError<E>> {
        let found = self.register.read(&format!("group/{name}")).await?;
        let found = found.filter(|_| T::adopts(name));
        let found = found.ok_or_else(|| DrainError::Unknown(name.to_owned()))?;
        Ok(Membership::decode(&found.value)?)
    }

    fn process(&mut self) -> Result<Rc<T>, DrainError<E>> {
        if let Some(process) = &self.process {
            return Ok(Rc::clone(process));
        }
        let process = (self.by.open)(self.settings).map_err(DrainError::Process)?;
        Ok(Rc::clone(self.process.insert(Rc::new(process))))
    }
}

/// Tells how far it is, not too often.
struct Told<'a> {
    name: &'a str,
    out: &'a mut dyn Write,
    last: Progress,
    at: Option<Instant>,
}

impl<'a> Told<'a> {
    fn new(name: &'a str, out: &'a mut dyn Write) -> Self {
        Self {
            name,
            out,
            last: Progress::default(),
            at: None,
        }
    }

    fn tell(&mut self, progress: Progress) {
        let due = self.at.is_none_or(|at| at.elapsed() >= TELL);
        let known = self.at.is_some() && progress == self.last;
        self.last = progress;
        if !due || known {
            return;
        }
        self.at = Some(Instant::now());
        let name = self.name;
        // Delivery continues even if the reader of the progress has gone.
        let _ = match progress {
            Progress {
                recovered: false, ..
            } => writeln!(self.out, "{name}: waiting for the nodes"),
            Progress { held: false, .. } => writeln!(
                self.out,
                "{name}: {}, waiting for the end of the lease",
                messages(progress.messages)
            ),
            Progress { next, .. } => {
                let next = next.map(|time| format!(", next try {time}"));
                let held = Some(progress.standing).filter(|held| *held > 0);
                let held = held.map(|held| format!(", {held} held (vere queue release)"));
                writeln!(
                    self.out,
                    "{name}: {} left, {} deferred, {} under way{}{}",
                    messages(progress.messages),
                    progress.deferred,
                    progress.in_flight,
                    held.unwrap_or_default(),
                    next.unwrap_or_default()
                )
            }
        };
        let _ = self.out.flush();
    }
}
