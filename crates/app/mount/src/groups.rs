//! Groups of accounts with equal data, from the command line of `vere fs init`.

use vere_process::failure::Failure;

/// The group of each account. Groups are numbered from 1 on without gaps, in the order of their first accounts.
pub(crate) fn of(
    accounts: usize,
    replicas: Option<u16>,
    groups: &[String],
) -> Result<Vec<usize>, Failure> {
    let mut of: Vec<usize> = (1..=accounts).collect();
    if let Some(replicas) = replicas.map(usize::from).filter(|replicas| *replicas > 0) {
        if !accounts.is_multiple_of(replicas) {
            return Err(Failure::new(format!(
                "expected a multiple of {replicas} accounts for --replicas {replicas}; found {accounts}"
            )));
        }
        for (at, group) in of.iter_mut().enumerate() {
            *group = at.saturating_sub(at % replicas).saturating_add(1);
        }
    }
    let mut taken = vec![false; accounts];
    // Until here a group has the number of its first account.
    for text in groups {
        let mut first = None;
        for word in text.split(',') {
            let wrong = || {
                Failure::new(format!(
                    "--group {text}: expected numbers of accounts, 1 to {accounts}, each once; found {word:?}"
                ))
            };
            let number: usize = word.trim().parse().map_err(|_| wrong())?;
            let at = number.checked_sub(1).ok_or_else(wrong)?;
            let (Some(group), Some(taken)) = (of.get_mut(at), taken.get_mut(at)) else {
                return Err(wrong());
            };
            if std::mem::replace(taken, true) {
                return Err(wrong());
            }
            *group = *first.get_or_insert(number);
        }
    }
    Ok(without_gaps(&of))
}

fn without_gaps(of: &[usize]) -> Vec<usize> {
    let mut seen: Vec<usize> = Vec::new();
    let mut numbers = Vec::with_capacity(of.len());
    for group in of {
        let place = seen.iter().position(|known| known == group);
        let place = place.unwrap_or_else(|| {
            seen.push(*group);
            seen.len().saturating_sub(1)
        });
        numbers.push(place.saturating_add(1));
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::of;

    fn groups(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn accounts_form_groups() {
        assert_eq!(of(3, None, &[]).unwrap(), [1, 2, 3]);
        assert_eq!(of(4, Some(2), &[]).unwrap(), [1, 1, 2, 2]);
        assert_eq!(of(4, None, &groups(&["2,4"])).unwrap(), [1, 2, 3, 2]);
        let whole = groups(&["1,2", "3, 4"]);
        assert_eq!(of(4, None, &whole).unwrap(), [1, 1, 2, 2]);
        let late = groups(&["3,4"]);
        assert_eq!(of(5, None, &late).unwrap(), [1, 2, 3, 3, 4]);
    }

    #[test]
    fn wrong_groups_are_named() {
        let text = of(3, Some(2), &[]).unwrap_err().to_string();
        assert!(text.contains("a multiple of 2 accounts"), "{text}");
        for wrong in ["0", "1,5", "x", "1,1", ""] {
            let text = of(4, None, &groups(&[wrong])).unwrap_err().to_string();
            assert!(text.contains("each once"), "{text}");
        }
        assert!(of(4, None, &groups(&["1,2", "2,3"])).is_err());
    }
}
