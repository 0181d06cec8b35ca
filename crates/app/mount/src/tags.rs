//! Requests carry the number of their opening, so that an answer to an earlier volume reaches nobody.

use vere_ports::mail_accounts::RequestId;

/// The place of an opening's number in the ids of requests: requests of an opening by the local disk count from 2^56 on.
const NUMBER_SHIFT: u32 = 57;
/// Numbers of openings; an answer comes long before its number comes round again.
pub(crate) const NUMBERS: u64 = 1 << 7;

/// The id of a request, with the number of its opening.
pub(crate) fn tagged(number: u64, id: RequestId) -> RequestId {
    RequestId(id.0 | ((number % NUMBERS) << NUMBER_SHIFT))
}

/// The number of the opening, and the id of the request.
pub(crate) fn untagged(id: RequestId) -> (u64, RequestId) {
    let number = id.0 >> NUMBER_SHIFT;
    (number, RequestId(id.0 & ((1 << NUMBER_SHIFT) - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_openings_are_told_apart() {
        for number in [0, 1, NUMBERS - 1, NUMBERS, NUMBERS + 5] {
            for id in [0, 1 << 32, (1 << 56) + 7] {
                let tagged = tagged(number, RequestId(id));
                assert_eq!(untagged(tagged), (number % NUMBERS, RequestId(id)));
            }
        }
    }
}
