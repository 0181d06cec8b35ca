use vere_faults::{Fate, MemoryMeta, Seeded};
use vere_ports::directory::AccountName;

use super::*;

fn batch(
    fate: &mut Seeded,
    versions: &mut std::collections::HashMap<Partition, u64>,
    at: u64,
) -> Batch {
    let account = || Partition::Account(AccountName::parse("a@demo.test").unwrap());
    let partition = match fate.pick(4) {
        0 => account(),
        n => Partition::Mailbox(n as u64 * 255),
    };
    let rows = (0..fate.pick(6)).map(|_| RowChange {
        key: vec![1 + fate.pick(3) as u8, fate.pick(4) as u8],
        value: (fate.pick(3) > 0).then(|| at.to_le_bytes().to_vec()),
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by(|a, b| a.key.cmp(&b.key));
    rows.dedup_by(|a, b| a.key == b.key);
    let expected = versions.insert(partition.clone(), at).unwrap_or_default();
    Batch {
        clear: fate.pick(8) == 0,
        hints: vec![(
            account(),
            RowChange {
                key: vec![9],
                value: Some(vec![at as u8]),
            },
        )],
        partition,
        expected,
        version: at,
        rows,
    }
}

fn all(meta: &dyn MetaEngine, partition: &Partition, prefix: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut rows = Vec::new();
    let visit = &mut |key: &[u8], value: &[u8]| {
        rows.push((key.to_vec(), value.to_vec()));
        true
    };
    meta.scan(partition, prefix, visit).unwrap();
    rows
}

/// Whatever is applied, it answers as the engine in memory does, also after it was opened again and
/// given everything once more.
#[test]
fn it_does_what_the_simple_engine_does() {
    let directory = tempfile::tempdir().unwrap();
    let open = || FjallMeta::open(directory.path(), ByteSize::mib(1)).unwrap();
    let (mut real, mut model) = (open(), MemoryMeta::default());
    let (mut fate, mut versions) = (Seeded(1), std::collections::HashMap::new());
    let mut everything = Vec::new();
    for round in 0..40_u64 {
        let batches: Vec<_> = (0..fate.pick(5) as u64)
            .map(|n| batch(&mut fate, &mut versions, round * 10 + n + 1))
            .collect();
        real.apply(&batches, round * 10).unwrap();
        model.apply(&batches, round * 10).unwrap();
        if round % 7 == 3 {
            let account = Partition::Account(AccountName::parse("a@demo.test").unwrap());
            let hints = [(account.clone(), vec![9]), (account, vec![77])];
            real.remove_hints(&hints).unwrap();
            model.remove_hints(&hints).unwrap();
        }
        everything.extend(batches);
        if round % 10 == 9 {
            real.persist().unwrap();
            drop(real);
            real = open();
            real.apply(&everything, round * 10).unwrap();
        }
        assert_eq!(real.applied(), model.applied());
        let partitions = model.partitions(None, 100).unwrap();
        assert_eq!(real.partitions(None, 100).unwrap(), partitions);
        for partition in &partitions {
            assert_eq!(real.version(partition), model.version(partition));
            for prefix in [&[][..], &[1], &[2, 1]] {
                assert_eq!(
                    all(&real, partition, prefix),
                    all(&model, partition, prefix)
                );
            }
            assert_eq!(real.row(partition, &[1, 1]), model.row(partition, &[1, 1]));
            let after = real.partitions(Some(partition), 1).unwrap();
            assert_eq!(after, model.partitions(Some(partition), 1).unwrap());
        }
    }
}

#[test]
fn a_batch_on_another_version_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut meta = FjallMeta::open(directory.path(), ByteSize::mib(1)).unwrap();
    let mut batch = batch(&mut Seeded(3), &mut std::collections::HashMap::new(), 7);
    batch.expected = 5;
    let refused = meta.apply(std::slice::from_ref(&batch), 8);
    assert!(matches!(
        refused,
        Err(MetaError::Conflict {
            found: 0,
            expected: 5,
            ..
        })
    ));
    assert_eq!(meta.applied(), Ok(0));
}
