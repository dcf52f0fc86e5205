//! CLOSE: the end of an open. Decides that it waits for requests under way on the open.

use std::sync::Arc;

use tokio::sync::OwnedRwLockReadGuard;

use super::create::facts;
use super::{Answer, Call};
use crate::file::smb::connection::on_pool;
use crate::file::smb::session::OpenKind;
use crate::file::smb::status::Status;
use crate::file::smb::wire::create::{CloseRequest, close_answer};

pub async fn close(call: Call, turn: OwnedRwLockReadGuard<()>) -> Result<Answer, Status> {
    let request = CloseRequest::parse(&call.message)?;
    let open = Arc::clone(call.open()?);
    if !call.session.take_open(&open) {
        return Err(Status::FILE_CLOSED);
    }
    let site = Arc::clone(&call.connection.site);
    let alone = Arc::clone(&open.turn).write_owned().await;
    let closed = on_pool(move || {
        let last = match &open.kind {
            OpenKind::File(file) if request.wants_facts => {
                let info = file.share.handle_info(&file.handle).ok();
                info.map(|info| facts(&info.stat, &info.smb))
            }
            _ => None,
        };
        let closed = open.close(&site);
        drop((alone, turn));
        closed.map(|()| last)
    });
    Ok(Answer::of(close_answer(closed.await??.as_ref())))
}
