//! The file of heads: what survives, and what it refuses.

use std::fs;

use cluster::{HEAD_EPOCHS_MAX, JournalHead, Shard};

use super::topic;
use crate::heads::places;
use crate::{HeadsError, HeadsFile};

fn head(epoch: u64, number: u64) -> JournalHead {
    JournalHead {
        epoch,
        number,
        sum: number.to_be_bytes(),
        begun: epoch.to_be_bytes(),
    }
}

#[test]
fn heads_survive_each_in_place_of_its_epoch_s_last() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = HeadsFile::open(folder.path()).unwrap();
    assert_eq!(file.all(), []);
    file.keep(vec![(Shard::Common, head(1, 3)), (topic(), head(2, 9))])
        .unwrap();
    file.keep(vec![(Shard::Common, head(1, 4))]).unwrap();
    file.keep(vec![(Shard::Common, head(1, 2))]).unwrap();
    let expect = [(Shard::Common, head(1, 4)), (topic(), head(2, 9))];
    drop(file);
    let mut file = HeadsFile::open(folder.path()).unwrap();
    assert_eq!(file.all(), expect);
    let many = (1..20).map(|epoch| (topic(), head(epoch, 10 + epoch)));
    file.keep(many.collect()).unwrap();
    drop(file);
    let all = HeadsFile::open(folder.path()).unwrap().all();
    assert_eq!(all.len(), 1 + HEAD_EPOCHS_MAX);
    assert_eq!(all.last(), Some(&(topic(), head(19, 29))));
}

#[test]
fn a_torn_write_leaves_the_heads_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = HeadsFile::open(folder.path()).unwrap();
    file.keep(vec![(Shard::Common, head(1, 3))]).unwrap();
    let torn = folder.path().join("heads.0123456789abcdef.new");
    fs::write(&torn, "portmoot heads 1\n@common 1 4 00").unwrap();
    drop(file);
    let again = HeadsFile::open(folder.path()).unwrap();
    assert_eq!(again.all(), [(Shard::Common, head(1, 3))]);
    assert!(!torn.exists(), "what the crash left is removed");
}

#[test]
fn a_heads_file_that_is_damaged_is_refused_and_never_empty() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = HeadsFile::open(folder.path()).unwrap();
    file.keep(vec![(Shard::Common, head(1, 3)), (topic(), head(2, 9))])
        .unwrap();
    drop(file);
    let path = folder.path().join("heads");
    let whole = fs::read(&path).unwrap();
    let foreign = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let opened = HeadsFile::open(folder.path());
        matches!(opened, Err(HeadsError::Foreign(at)) if at == path)
    };
    for length in 0..whole.len() {
        assert!(foreign(&whole[..length]), "{length} bytes of it");
        let mut other = whole.clone();
        other[length] ^= 1;
        assert!(foreign(&other), "another byte at {length}");
    }
    assert!(foreign(b"# notes\n"), "another program's");
    fs::write(&path, &whole).unwrap();
    assert_eq!(HeadsFile::open(folder.path()).unwrap().all().len(), 2);
}

#[test]
fn a_folder_that_is_not_there_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let absent = folder.path().join("absent");
    let refused = HeadsFile::open(&absent).unwrap_err().to_string();
    assert!(refused.contains("absent/heads"), "{refused}");
}

#[test]
fn a_folder_is_one_file_s_until_that_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = HeadsFile::open(folder.path()).unwrap();
    let again = HeadsFile::open(folder.path()).unwrap_err();
    assert!(matches!(again, HeadsError::Locked(_)), "{again}");
    file.close();
    assert!(file.keep(vec![(topic(), head(1, 1))]).is_err());
    assert_eq!(HeadsFile::open(folder.path()).unwrap().all(), []);
}

#[test]
fn a_file_with_more_than_numbers_that_can_be_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = HeadsFile::open(folder.path()).unwrap();
    file.keep(vec![(topic(), head(1, u64::MAX))]).unwrap();
    assert!(matches!(places(folder.path()), Err(HeadsError::Foreign(_))));
}
