//! Answers requests of commands.

use std::rc::Rc;

use vere_control::{Answer, HeaviestClient, Request};
use vere_groups::control::{self, Receiving, count, octets};
use vere_process::memory::Heaviest;

use super::group::Groups;
use super::{quarantine, throttle};

/// Answers a request.
pub(super) async fn answer(groups: &Rc<Groups>, request: &Request) -> Answer {
    match control::answer(groups, request, || receiving(groups)).await {
        Some(answer) => answer,
        None => quarantine::serve(groups, request).await,
    }
}

/// What `vere queue top` shows beside the queues.
fn receiving(groups: &Groups) -> Receiving {
    let process = groups.process();
    let settings = process.settings();
    let limits = &settings.limits;
    let (clients, in_memory) = process.metrics.receiving();
    let on_disk = process.disk.held() as u64;
    let (memory_max, disk_max) = (limits.body_memory_max, limits.body_disk_max);
    Receiving {
        closed: throttle::closed(&groups.own, false).map(|closed| closed.to_string()),
        clients: Some(count("clients", clients, limits.connections_max.into())),
        bodies: vec![
            octets("receiving", in_memory, Some(memory_max.as_u64())),
            octets("receiving, on disk", on_disk, Some(disk_max.as_u64())),
        ],
        heaviest: process.memory.heaviest().map(heaviest),
        heaviest_on_disk: process.disk.heaviest().map(heaviest),
    }
}

fn heaviest(heaviest: Heaviest) -> HeaviestClient {
    HeaviestClient {
        client: heaviest.client.to_string(),
        octets: heaviest.octets as u64,
        messages: heaviest.messages,
    }
}
