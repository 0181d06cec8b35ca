//! The files of counts, on a thread of their own: a day may have 64 MiB, and a sync may take long.

use std::io;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread::Builder;

use crate::observed::Observed;
use tokio::sync::oneshot;
use vere_reports::Kind;

type Job = Box<dyn FnOnce(&Observed) + Send>;

/// The way to the thread. The thread ends with the last sender.
#[derive(Debug)]
pub struct Files {
    jobs: Sender<Job>,
}

impl Files {
    /// Opens the directory, and starts the thread.
    ///
    /// # Errors
    /// The directory cannot be made, or the thread not started.
    pub fn open(directory: &Path) -> io::Result<Self> {
        let observed = Observed::open(directory)?;
        let (jobs, waiting) = channel::<Job>();
        let thread = Builder::new().name("reports".to_owned());
        thread.spawn(move || {
            for job in waiting {
                job(&observed);
            }
        })?;
        Ok(Self { jobs })
    }

    /// Has the thread run a job, and waits for the end of the job: few tasks use the files, so no jobs pile up.
    ///
    /// # Errors
    /// Those of the job.
    pub async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Observed) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let (done, waiting) = oneshot::channel();
        let job = move |observed: &Observed| {
            let _ = done.send(job(observed));
        };
        let gone = || io::Error::other("the thread for counts has ended");
        self.jobs.send(Box::new(job)).map_err(|_| gone())?;
        waiting.await.map_err(|_| gone())?
    }

    /// Notes that a report, or a part of one, was handed over. A failure is in the log.
    pub async fn note_sent(&self, day: u64, kind: Kind, what: &str) {
        let name = what.to_owned();
        let noted = self.run(move |observed| observed.sent(day, kind, &name));
        if let Err(error) = noted.await {
            tracing::warn!(%error, what, "sent report cannot be noted; it may be sent once more");
        }
    }
}
