//! The tables of `queue.db`.
//!
//! Decides what is kept where, so that each message operation touches few pages. What the rows
//! mean is decided in `core::queue`; how tables become a file is `store::db`'s.

use crate::db::Schema;

/// The schema of `queue.db`.
///
/// - `queue`: by name, hence in the order of listings. `qid` is the identity of its messages: a
///   queue that is cleared gets a new one and the old one goes to `gone`, in constant time.
/// - `message_count`: apart from `queue`, so that a Put does not rewrite metadata.
/// - `message`: `seq` rises with insertion. Rows are small; Get and Update rewrite them.
/// - `due`: Get and Peek read the head of a queue here. Hidden messages lie behind the present
///   moment and are never touched. An index ends with the row's `seq`, which breaks ties.
/// - `expiry`: what the sweeper removes next. Messages that never expire are not in it.
/// - `text`: apart from `message`, so that Get rewrites no text.
/// - `counters`: the latest change, also of messages that are gone. It outlives all other rows.
pub(super) const SCHEMA: Schema = Schema {
    version: 1,
    statements: "
        CREATE TABLE queue (
            name TEXT NOT NULL PRIMARY KEY,
            qid INTEGER NOT NULL,
            created INTEGER NOT NULL,
            metadata TEXT NOT NULL,
            policies TEXT NOT NULL
        ) WITHOUT ROWID;
        CREATE TABLE message_count (
            qid INTEGER NOT NULL PRIMARY KEY,
            messages INTEGER NOT NULL
        );
        CREATE TABLE message (
            seq INTEGER NOT NULL PRIMARY KEY,
            qid INTEGER NOT NULL,
            id BLOB NOT NULL,
            inserted INTEGER NOT NULL,
            expires INTEGER,
            visible_at INTEGER NOT NULL,
            changed INTEGER NOT NULL,
            dequeue_count INTEGER NOT NULL,
            operation TEXT,
            request TEXT,
            agent TEXT,
            address TEXT
        );
        CREATE INDEX due ON message (qid, visible_at);
        CREATE INDEX expiry ON message (expires, qid) WHERE expires IS NOT NULL;
        CREATE TABLE text (
            seq INTEGER NOT NULL PRIMARY KEY,
            text TEXT NOT NULL
        );
        CREATE TABLE gone (
            qid INTEGER NOT NULL PRIMARY KEY
        );
        CREATE TABLE counters (
            name TEXT NOT NULL PRIMARY KEY,
            value INTEGER NOT NULL
        ) WITHOUT ROWID;
    ",
};
