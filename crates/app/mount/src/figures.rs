//! Octets and seconds for people.

/// Octets for people: at most one digit behind the point.
pub(crate) fn octets(octets: u64) -> String {
    let units = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB")];
    for (factor, unit) in units.into_iter().chain([(1 << 10, "KiB")]) {
        if octets >= factor {
            let tenths = u128::from(octets).saturating_mul(10) / u128::from(factor);
            let (whole, tenth) = (tenths / 10, tenths % 10);
            return if whole >= 100 {
                format!("{whole} {unit}")
            } else {
                format!("{whole}.{tenth} {unit}")
            };
        }
    }
    format!("{octets} octets")
}

/// Seconds for people.
pub(crate) fn time(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::{octets, time};

    #[test]
    fn figures_for_people() {
        let all = [0, 1023, 1536, 250 << 20, 5 << 40].map(octets);
        assert_eq!(
            all,
            ["0 octets", "1023 octets", "1.5 KiB", "250 MiB", "5.0 TiB"]
        );
        assert_eq!([59, 130, 7_300].map(time), ["59 s", "2 min", "2 h"]);
    }
}
