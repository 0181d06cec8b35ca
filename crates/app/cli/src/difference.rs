//! The lines in which two texts differ, for a person.

/// Lines of a settings file that are compared; a longer file is shown without its unchanged beginning only.
const LINES_MAX: usize = 2_000;

/// The changed lines, with `+` or `-` in front, and one unchanged line before each place.
pub(crate) fn difference(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let common = common(&old, &new);
    let mut text = String::new();
    let (mut o, mut n) = (0, 0);
    for (next_old, next_new) in common.into_iter().chain([(old.len(), new.len())]) {
        let (gone, come) = (&old[o..next_old], &new[n..next_new]);
        if (!gone.is_empty() || !come.is_empty())
            && let Some(before) = o.checked_sub(1)
        {
            text += &format!("  {}\n", old[before]);
        }
        gone.iter().for_each(|line| text += &format!("- {line}\n"));
        come.iter().for_each(|line| text += &format!("+ {line}\n"));
        (o, n) = (next_old + 1, next_new + 1);
    }
    text
}

/// The places of a longest common subsequence of lines.
fn common(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    let same = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let mut pairs: Vec<_> = (0..same).map(|place| (place, place)).collect();
    let (rest_old, rest_new) = (&old[same..], &new[same..]);
    if rest_old.len().max(rest_new.len()) > LINES_MAX {
        return pairs;
    }
    // The length of the longest one behind each pair of places.
    let mut table = vec![vec![0_u32; rest_new.len() + 1]; rest_old.len() + 1];
    for o in (0..rest_old.len()).rev() {
        for n in (0..rest_new.len()).rev() {
            table[o][n] = if rest_old[o] == rest_new[n] {
                table[o + 1][n + 1] + 1
            } else {
                table[o + 1][n].max(table[o][n + 1])
            };
        }
    }
    let (mut o, mut n) = (0, 0);
    while o < rest_old.len() && n < rest_new.len() {
        if rest_old[o] == rest_new[n] {
            pairs.push((same + o, same + n));
            (o, n) = (o + 1, n + 1);
        } else if table[o + 1][n] >= table[o][n + 1] {
            o += 1;
        } else {
            n += 1;
        }
    }
    pairs
}
