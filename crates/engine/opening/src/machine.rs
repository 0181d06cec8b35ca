//! The machine of a mount, and how a row of a writer names it.

use vere_mailfs_format::rows::WriterRow;

/// A machine that mounts a volume.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Machine {
    /// What tells the machine from all others: a copied folder is one of another machine.
    pub id: [u8; 16],
    /// The name for people.
    pub name: String,
}

/// Octets of the machine's id in a registration. The others tell two folders of a machine apart.
const MACHINE_OCTETS: usize = 8;

/// The mark of a registration.
#[must_use]
pub fn registration(machine: &Machine, random: [u8; 16]) -> [u8; 16] {
    let mut id = random;
    id.rotate_right(MACHINE_OCTETS);
    for (to, from) in id.iter_mut().zip(&machine.id).take(MACHINE_OCTETS) {
        *to = *from;
    }
    id
}

/// Whether a machine has registered a writer.
#[must_use]
pub fn is_machine(row: &WriterRow, machine: &Machine) -> bool {
    let ours = machine.id.iter().take(MACHINE_OCTETS);
    row.machine.iter().take(MACHINE_OCTETS).eq(ours)
}
