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
