//! Files whose names end with a number of 16 hexadecimal digits.

use std::io;

use vere_ports::storage::Storage;

/// The name of a file.
pub(crate) fn name_of(prefix: &str, number: u64) -> String {
    format!("{prefix}{number:016x}")
}

/// The number of a file with this prefix.
pub(crate) fn number_of(prefix: &str, name: &str) -> Option<u64> {
    let digits = name.strip_prefix(prefix)?;
    (digits.len() == 16).then(|| u64::from_str_radix(digits, 16).ok())?
}

/// The numbers of all files with a prefix, in order.
pub(crate) fn numbers<S: Storage>(storage: &S, prefix: &str) -> io::Result<Vec<u64>> {
    let names = storage.list()?;
    let numbers = names.iter().filter_map(|name| number_of(prefix, name));
    let mut numbers: Vec<u64> = numbers.collect();
    numbers.sort_unstable();
    Ok(numbers)
}
