//! The client's side of the floor.

use super::drive::{Dialect, Replied};
use super::floor::{ACK_LEN, DELETE, HEAD_LEN, STORE, head};

/// Store, and delete if wanted, of successive records from id 0 on.
#[derive(Debug)]
pub(super) struct FloorWire {
    block: Vec<u8>,
    ready: usize,
    store_len: usize,
    unit_octets: usize,
    id: u64,
    done: u64,
}

/// Octets of ready-made requests, about.
const READY_LEN: usize = 128 << 10;

impl FloorWire {
    pub(super) fn new(body: &[u8], delete: bool) -> Self {
        let store_len = HEAD_LEN + body.len();
        let mut unit = head(store_len, STORE, 0).to_vec();
        unit.extend_from_slice(body);
        if delete {
            unit.extend_from_slice(&head(HEAD_LEN, DELETE, 0));
        }
        Self {
            block: unit.repeat((READY_LEN / unit.len()).max(1)),
            ready: 0,
            store_len,
            unit_octets: unit.len(),
            id: 0,
            done: 0,
        }
    }
}

impl Dialect for FloorWire {
    fn unit_octets(&self) -> usize {
        self.unit_octets
    }

    fn prepare(&mut self, units: usize) -> usize {
        let mut count = 0;
        for unit in self.block.chunks_exact_mut(self.unit_octets).take(units) {
            let id = self.id.to_le_bytes();
            unit[8..16].copy_from_slice(&id);
            if let Some(delete) = unit.get_mut(self.store_len + 8..) {
                delete.copy_from_slice(&id);
            }
            self.id += 1;
            count += 1;
        }
        self.ready = count * self.unit_octets;
        count
    }

    fn octets(&self) -> &[u8] {
        &self.block[..self.ready]
    }

    fn replies(&mut self, _server: usize, input: &[u8]) -> Result<Replied, String> {
        let (acknowledgements, _) = input.as_chunks::<ACK_LEN>();
        if let Some(last) = acknowledgements.last() {
            let per_unit = if self.unit_octets > self.store_len {
                2
            } else {
                1
            };
            self.done = u64::from_le_bytes(*last) / per_unit;
        }
        Ok(Replied {
            consumed: acknowledgements.len() * ACK_LEN,
            done: self.done,
        })
    }
}
