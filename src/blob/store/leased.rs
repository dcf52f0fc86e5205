//! Blobs and containers that have a lease, for reports.
//!
//! Decides how much is searched: there is no index of leases, so the newest rows are looked
//! through.
//! Whether a lease is still in force is decided by the engine.

use rusqlite::params;
use serde::de::DeserializeOwned;

use super::states::blob_row;
use super::tx::BlobTx;
use super::types::{ContainerRow, StateRow, signed, text, unsigned};
use crate::db::DbError;

/// The most blobs that are searched for leases: the newest.
pub const SEARCHED_MAX: u64 = 100_000;

/// How a record that has a lease tells it: a record without one has a text there. A quote in a
/// value is written with a backslash, so nothing else in a record reads like this.
const LEASE: &[u8] = b"\"lease\":{";

/// Blobs that have a lease.
pub struct LeasedBlobs<R> {
    /// With the names of their containers, in order.
    pub blobs: Vec<(String, StateRow<R>)>,
    /// How many rows of blobs were not searched.
    pub unsearched: u64,
}

impl BlobTx<'_> {
    /// The current states of blobs whose records have a lease.
    pub fn leased_blobs<R: DeserializeOwned>(&self) -> Result<LeasedBlobs<R>, DbError> {
        let mut select = self.conn.prepare_cached(
            "SELECT b.id, b.name, b.rank, b.time, b.deleted, b.until, b.length, b.record, c.name
             FROM (SELECT id, container, name, rank, time, deleted, until, length, record
                   FROM blob ORDER BY id DESC LIMIT ?1) b
             JOIN container c ON c.id = b.container AND c.version = ''
             WHERE b.rank = 3 AND b.deleted IS NULL AND instr(b.record, ?2) > 0
             ORDER BY c.name, b.name",
        )?;
        let mut rows = select.query(params![signed(SEARCHED_MAX), LEASE])?;
        let mut blobs = Vec::new();
        while let Some(row) = rows.next()? {
            blobs.push((text(row.get(8)?)?, blob_row(row)?));
        }
        let count = "SELECT count(*) FROM blob";
        let count: i64 = self.conn.prepare_cached(count)?.query_row([], |row| row.get(0))?;
        Ok(LeasedBlobs { blobs, unsearched: unsigned(count)?.saturating_sub(SEARCHED_MAX) })
    }

    /// The containers whose records have a lease, in order.
    pub fn leased_containers<C: DeserializeOwned>(&self) -> Result<Vec<ContainerRow<C>>, DbError> {
        let mut select = self.conn.prepare_cached(
            "SELECT id, name, version, deleted, until, record FROM container
             WHERE version = '' AND instr(record, ?1) > 0 ORDER BY name",
        )?;
        let mut rows = select.query(params![LEASE])?;
        let mut containers = Vec::new();
        while let Some(row) = rows.next()? {
            containers.push(super::containers::container_row(row)?);
        }
        Ok(containers)
    }
}
