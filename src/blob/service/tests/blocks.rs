//! Blocks: what a list makes of them, what stays and what goes.

use super::*;
use crate::blob::rules::blocks::{BlockId, BlockSearch, ListedBlock};

pub(super) fn put_block(
    bench: &Bench,
    name: &str,
    block: &[u8],
    bytes: &[u8],
    asked: AccessConditions,
) -> BlobResult<()> {
    let body = bench.body(bytes, true);
    let operation = BlobOperation::BlockBlobStageBlock;
    let block = BlockId::from_bytes(block.to_vec());
    within(bench.service.put_block(&bench.cx(), operation, &at(name), asked, block, body))
}

fn list(search: BlockSearch, blocks: &[&[u8]]) -> Vec<ListedBlock> {
    let listed = |id: &&[u8]| ListedBlock { search, id: BlockId::from_bytes(id.to_vec()) };
    blocks.iter().map(listed).collect()
}

pub(super) fn commit(
    bench: &Bench,
    name: &str,
    blocks: &[&[u8]],
    asked: AccessConditions,
) -> BlobResult<WrittenBlob> {
    let list = list(BlockSearch::Latest, blocks);
    let new = NewBlob::default();
    within(bench.service.put_block_list(&bench.cx(), &at(name), asked, new, list))
}

fn lists(bench: &Bench, name: &str) -> BlockLists {
    bench.service.block_lists(&bench.cx(), &at(name), &AccessConditions::default()).unwrap()
}

fn put(bench: &Bench, block: &[u8], bytes: &[u8]) {
    put_block(bench, "b", block, bytes, AccessConditions::default()).unwrap();
}

#[test]
fn a_new_list_may_keep_committed_blocks_and_drops_all_uncommitted_ones() {
    let bench = Bench::new();
    put(&bench, b"1", b"one,");
    put(&bench, b"2", b"two,");
    commit(&bench, "b", &[b"1", b"2"], AccessConditions::default()).unwrap();
    put(&bench, b"2", b"TWO,");
    put(&bench, b"9", b"nine");
    let wrong = |search, block: &[u8]| {
        let (list, new) = (list(search, &[block]), NewBlob::default());
        let put = within(bench.service.put_block_list(
            &bench.cx(),
            &at("b"),
            AccessConditions::default(),
            new,
            list,
        ));
        denial(put)
    };
    assert_eq!(wrong(BlockSearch::Committed, b"9"), BlobDenial::InvalidBlockList);
    assert_eq!(wrong(BlockSearch::Uncommitted, b"1"), BlobDenial::InvalidBlockList);
    assert_eq!(wrong(BlockSearch::Latest, b"x"), BlobDenial::InvalidBlockList);
    assert_eq!(bench.get("b").unwrap(), b"one,two,");
    assert_eq!(lists(&bench, "b").uncommitted.len(), 2, "a refused list drops nothing");
    let mut mixed = list(BlockSearch::Committed, &[b"2"]);
    mixed.extend(list(BlockSearch::Latest, &[b"2", b"1"]));
    let new = NewBlob::default();
    let put = within(bench.service.put_block_list(
        &bench.cx(),
        &at("b"),
        AccessConditions::default(),
        new,
        mixed,
    ));
    put.unwrap();
    assert_eq!(bench.get("b").unwrap(), b"two,TWO,one,");
    assert_eq!(lists(&bench, "b").uncommitted.len(), 0);
}

#[test]
fn ids_have_one_length_and_put_blob_drops_uncommitted_blocks() {
    let bench = Bench::new();
    put(&bench, b"1", b"one,");
    let other = put_block(&bench, "b", b"22", b"two,", AccessConditions::default());
    assert_eq!(denial(other), BlobDenial::InvalidBlobOrBlock);
    bench.put("b", b"whole");
    assert_eq!(lists(&bench, "b").uncommitted.len(), 0);
    put(&bench, b"22", b"two,");
    assert_eq!(bench.get("b").unwrap(), b"whole", "blocks do not show before their list");
    commit(&bench, "b", &[], AccessConditions::default()).unwrap();
    assert_eq!(bench.get("b").unwrap(), b"");
}

#[test]
fn a_long_list_is_committed_like_a_short_one() {
    let bench = Bench::new();
    let id = |n: u32| format!("{n:05}").into_bytes();
    let count = 700;
    for n in 0..count {
        put(&bench, &id(n), &[u8::try_from(n % 251).unwrap()]);
    }
    let ids: Vec<_> = (0..count).rev().map(id).collect();
    let ids: Vec<&[u8]> = ids.iter().map(Vec::as_slice).collect();
    let written = commit(&bench, "b", &ids, if_missing()).unwrap();
    let bytes = bench.get("b").unwrap();
    assert_eq!(bytes.len(), 700);
    let expected: Vec<_> = (0..count).rev().map(|n| u8::try_from(n % 251).unwrap()).collect();
    assert_eq!(bytes, expected);
    let again = denial(commit(&bench, "b", &ids, if_missing()));
    assert_eq!(again, BlobDenial::BlobAlreadyExists);
    commit(&bench, "b", &ids[..600], if_match(written.etag)).unwrap();
    assert_eq!(bench.get("b").unwrap(), &expected[..600]);
}
