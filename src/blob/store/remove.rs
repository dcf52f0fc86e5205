//! Removes states, uploads and their content: small ones at once, long ones later and in slices,
//! so that no transaction is long. The slices are cut in [`super::janitor`].

use rusqlite::{Connection, OptionalExtension};

use super::janitor::Chore;
use super::tx::Effects;
use super::types::{ContainerId, StateId};
use super::{extents, references};
use crate::db::DbError;

/// With more rows of extents than this, content is removed later.
const ROWS_AT_ONCE: u32 = 16;
/// With more blocks than this, an upload is removed later.
const BLOCKS_AT_ONCE: i64 = 256;

/// Something that is removed later.
#[derive(Clone, Copy)]
pub(super) enum Doomed {
    /// Extents of a state, or blocks of an upload.
    Rows(i64),
    /// The blobs of a container.
    Container(ContainerId),
}

impl Doomed {
    fn columns(self) -> (i64, i64) {
        match self {
            Self::Rows(owner) => (0, owner),
            Self::Container(container) => (1, container.0),
        }
    }

    fn chore(self) -> Chore {
        match self {
            Self::Rows(owner) => Chore::Drop(owner),
            Self::Container(container) => Chore::DropContainer(container),
        }
    }
}

/// Notes what has to be removed: it survives a restart.
pub(super) fn doom(conn: &Connection, effects: &mut Effects, what: Doomed) -> Result<(), DbError> {
    note(conn, what)?;
    effects.chores.push(what.chore());
    Ok(())
}

/// Notes it for the next start only.
pub(super) fn note(conn: &Connection, what: Doomed) -> Result<(), DbError> {
    conn.prepare_cached("INSERT OR IGNORE INTO doomed (kind, id) VALUES (?1, ?2)")?
        .execute(what.columns())?;
    Ok(())
}

/// Takes it back, or says that it is done.
pub(super) fn pardon(conn: &Connection, what: Doomed) -> Result<(), DbError> {
    conn.prepare_cached("DELETE FROM doomed WHERE kind = ?1 AND id = ?2")?
        .execute(what.columns())?;
    Ok(())
}

/// True if it is still to be removed: a restored state may need it again.
pub(super) fn is_doomed(conn: &Connection, what: Doomed) -> Result<bool, DbError> {
    conn.prepare_cached("SELECT 1 FROM doomed WHERE kind = ?1 AND id = ?2")?
        .exists(what.columns())
        .map_err(Into::into)
}

/// What an earlier process did not get to.
pub(super) fn left_over(conn: &Connection) -> Result<Vec<Chore>, DbError> {
    let mut select = conn.prepare_cached("SELECT kind, id FROM doomed")?;
    let rows = select.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)))?;
    rows.map(|row| {
        Ok(match row? {
            (0, owner) => Doomed::Rows(owner).chore(),
            (_, container) => Doomed::Container(ContainerId(container)).chore(),
        })
    })
    .collect()
}

/// Removes the extents and references of a state. True if that was done at once; else the number
/// of the state is spent, and the row needs a new one.
pub(super) fn content(
    conn: &Connection,
    effects: &mut Effects,
    state: StateId,
) -> Result<bool, DbError> {
    if extents::are_more_than(conn, state, ROWS_AT_ONCE)? {
        doom(conn, effects, Doomed::Rows(state.0))?;
        return Ok(false);
    }
    extents::remove(conn, state, ROWS_AT_ONCE)?;
    references::drop_all(conn, state.0)?;
    Ok(true)
}

/// Removes a state with all that belongs to it.
pub(super) fn state(
    conn: &Connection,
    effects: &mut Effects,
    state: StateId,
) -> Result<(), DbError> {
    let found = conn
        .prepare_cached("DELETE FROM blob WHERE id = ?1 RETURNING tagged, length")?
        .query_row([state.0], |row| Ok((row.get::<_, bool>(0)?, row.get::<_, i64>(1)?)))
        .optional()?;
    let Some((tagged, length)) = found else { return Ok(()) };
    if tagged {
        tags(conn, state)?;
    }
    content(conn, effects, state)?;
    effects.dropped += length.cast_unsigned();
    Ok(())
}

pub(super) fn tags(conn: &Connection, state: StateId) -> Result<(), DbError> {
    conn.prepare_cached("DELETE FROM tag WHERE state = ?1")?.execute([state.0])?;
    Ok(())
}

/// Removes an upload with its blocks.
pub(super) fn upload(conn: &Connection, effects: &mut Effects, id: i64) -> Result<(), DbError> {
    let blocks: Option<i64> = conn
        .prepare_cached("DELETE FROM upload WHERE id = ?1 RETURNING blocks")?
        .query_row([id], |row| row.get(0))
        .optional()?;
    match blocks {
        None => Ok(()),
        Some(blocks) if blocks > BLOCKS_AT_ONCE => doom(conn, effects, Doomed::Rows(id)),
        Some(_) => {
            conn.prepare_cached("DELETE FROM block WHERE upload = ?1")?.execute([id])?;
            references::drop_all(conn, id)
        }
    }
}
