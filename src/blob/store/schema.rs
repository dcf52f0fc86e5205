//! The tables of the blob database. What the rows mean is decided in the modules that use them.

use crate::db::Schema;

/// The table of [`super::unsynced`], which a database of 0.2 gets when it is opened.
macro_rules! unsynced {
    () => {
        "
-- Content that may not be on the disk. place: its file and offset, 8 bytes each. crc: CRC-64/NVME.
CREATE TABLE IF NOT EXISTS unsynced (
    id INTEGER PRIMARY KEY, place BLOB NOT NULL, length INTEGER NOT NULL, crc INTEGER NOT NULL
);
"
    };
}

pub(super) const UNSYNCED: &str = unsynced!();

/// Gives blobs a slash for each backslash, but for those whose name another blob has already.
pub(super) const SLASHES: &str = "
UPDATE blob SET name = CAST(replace(CAST(name AS TEXT), '\\', '/') AS BLOB)
    WHERE instr(name, x'5c') AND NOT EXISTS (
        SELECT 1 FROM blob other WHERE other.container = blob.container
            AND other.name = CAST(replace(CAST(blob.name AS TEXT), '\\', '/') AS BLOB));
UPDATE tag SET name = (SELECT name FROM blob WHERE id = state) WHERE instr(name, x'5c');
UPDATE OR IGNORE upload SET name = CAST(replace(CAST(name AS TEXT), '\\', '/') AS BLOB)
    WHERE instr(name, x'5c');
";

/// Names are BLOBs, so that order, prefix and marker compare the same bytes: those of UTF-8.
pub(super) const SCHEMA: Schema = Schema {
    version: 1,
    statements: concat!(
        "
-- Numbers of the store itself: 'counter' is at least the highest counter given out.
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE setting (name TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;

-- version: '' for a container in use, else that of a deleted container that is kept.
CREATE TABLE container (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name BLOB NOT NULL,
    version TEXT NOT NULL DEFAULT '',
    deleted INTEGER,
    until INTEGER,
    record BLOB NOT NULL
);
CREATE UNIQUE INDEX container_name ON container (name, version);
CREATE INDEX container_until ON container (until) WHERE until IS NOT NULL;

-- One row for each state of a blob. rank and time: which state. generation rises when the content
-- is replaced, so a row never has the same one twice. tagged: the row has entries in tag. data: the
-- first bytes, up to 16 KiB; the last column, so that it costs nothing where it is not asked for.
CREATE TABLE blob (
    id INTEGER PRIMARY KEY,
    container INTEGER NOT NULL,
    name BLOB NOT NULL,
    rank INTEGER NOT NULL,
    time INTEGER NOT NULL,
    deleted INTEGER,
    until INTEGER,
    generation INTEGER NOT NULL,
    tagged INTEGER NOT NULL DEFAULT 0,
    length INTEGER NOT NULL,
    record BLOB NOT NULL,
    data BLOB
);
CREATE UNIQUE INDEX blob_key ON blob (container, name, rank, time);
CREATE INDEX blob_until ON blob (until) WHERE until IS NOT NULL;

-- Up to 512 extents a row, first: the offset of the first of them. ids: the block of each extent,
-- for block blobs made of blocks.
CREATE TABLE extents (
    state INTEGER NOT NULL,
    first INTEGER NOT NULL,
    packed BLOB NOT NULL,
    ids BLOB,
    PRIMARY KEY (state, first)
) WITHOUT ROWID;

-- Which states and uploads have bytes in which content file, and how many these are.
CREATE TABLE uses (
    owner INTEGER NOT NULL, file INTEGER NOT NULL, PRIMARY KEY (owner, file)
) WITHOUT ROWID;
CREATE TABLE file (id INTEGER PRIMARY KEY, refs INTEGER NOT NULL);
CREATE INDEX file_unused ON file (id) WHERE refs = 0;

-- Blocks that are not committed. changes counts the changes of the upload.
CREATE TABLE upload (
    id INTEGER PRIMARY KEY,
    container INTEGER NOT NULL,
    name BLOB NOT NULL,
    changes INTEGER NOT NULL,
    blocks INTEGER NOT NULL,
    id_length INTEGER NOT NULL,
    touched INTEGER NOT NULL
);
CREATE UNIQUE INDEX upload_key ON upload (container, name);
CREATE TABLE block (
    upload INTEGER NOT NULL,
    id BLOB NOT NULL,
    file INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    length INTEGER NOT NULL,
    PRIMARY KEY (upload, id)
) WITHOUT ROWID;

CREATE TABLE tag (
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    container INTEGER NOT NULL,
    name BLOB NOT NULL,
    state INTEGER NOT NULL,
    PRIMARY KEY (key, value, container, name)
) WITHOUT ROWID;
CREATE INDEX tag_state ON tag (state);
-- The values of one tag in the order of names, which a search by a range of values is shown in.
CREATE INDEX tag_name ON tag (key, container, name);

-- What nobody refers to any more and is removed later, in slices. kind 0: the extents or blocks
-- of a state or upload; 1: the blobs of a container.
CREATE TABLE doomed (
    kind INTEGER NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (kind, id)
) WITHOUT ROWID;
",
        unsynced!()
    ),
};
