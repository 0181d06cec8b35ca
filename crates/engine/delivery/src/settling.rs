//! The end of an attempt: what the schedule makes of it, in the spool and in the trace.

use std::rc::Rc;

use vere_queue::{Attempt, Job, Settlement};
use vere_spoolwire::QueueId;

use crate::ending::{Ending, end_of};
use crate::group::Group;
use crate::host::{Happened, Host};

impl<H: Host> Group<H> {
    /// Settles an attempt: updates the schedule now and the spool behind it. Returns the number of reports on the way.
    pub fn settle(self: &Rc<Self>, queue: QueueId, job: &Job, attempt: &Attempt) -> usize {
        let now = self.queue_time();
        let settled = self
            .queues
            .change(|queues| queues.settle(queue, job, attempt, now));
        let Some(mut settlement) = settled else {
            return 0;
        };
        self.host.tell(&Happened::Settled {
            queue: self.queues.name(queue).as_deref(),
            job,
            attempt,
            settlement: &settlement,
        });
        let mut lines = self.finished_lines(queue, job, attempt, &settlement);
        settlement.reports.retain(|report| {
            let sent = self.host.may_report(report, job.envelope.head.trace);
            if !sent {
                lines.extend(self.report_lines(queue, job, report, None));
            }
            sent
        });
        if settlement.remaining.is_none() && settlement.reports.is_empty() && !lines.is_empty() {
            let end = Ending {
                queue,
                record: job.record,
                size: job.envelope.head.size,
                lines,
            };
            let group = Rc::clone(self);
            self.host
                .spawn(async move { group.end_records(&[end]).await });
            return 0;
        }
        let alone = settlement.reports.is_empty() && lines.is_empty();
        if alone && self.host.post(end_of(queue, job, &settlement)).is_ok() {
            self.written(queue, job, &settlement);
            return 0;
        }
        let reports = settlement.reports.len();
        let (group, mut job) = (Rc::clone(self), job.clone());
        self.host.spawn(async move {
            group
                .conclude(queue, &mut job, &mut settlement, lines)
                .await;
            group.written(queue, &job, &settlement);
        });
        reports
    }

    /// Notes that the record has the remaining recipients: other tasks may change the record now.
    fn written(&self, queue: QueueId, job: &Job, settlement: &Settlement) {
        if let Some(rest) = &settlement.remaining {
            let now = self.host.now();
            self.queues
                .change(|queues| queues.written(queue, job, rest, now));
        }
    }
}
