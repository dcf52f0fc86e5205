//! Trees: a session connects to shares and to `IPC$`, and ends that or itself.
//!
//! Decides that the end of a tree or of a session waits for requests under way on it. Which shares
//! there are is asked of the service.

use std::sync::Arc;

use super::connection::{Connection, on_pool};
use super::operations::{Answer, Done};
use super::server::Site;
use super::session::{Session, close_all};
use super::status::Status;
use super::wire::session::{TreeAnswer, parse_tree_connect};

/// Every right: whoever has a key of the account may do everything.
pub const ALL_ACCESS: u32 = 0x1F_01FF;

pub fn connect(session: &Session, message: &[u8]) -> Result<Done, Status> {
    let path = parse_tree_connect(message).map_err(|_| Status::INVALID_PARAMETER)?;
    let name = path.rsplit('\\').next().unwrap_or_default().to_lowercase();
    let share = if name == "ipc$" {
        None
    } else {
        let share = session.files.share(&name).map_err(|_| Status::BAD_NETWORK_NAME)?;
        Some(Arc::clone(share.name()))
    };
    let pipe = share.is_none();
    let tree = session.add_tree(share)?;
    let body = TreeAnswer { pipe, maximal_access: ALL_ACCESS }.write();
    Ok(Done::Now(Answer { tree: Some(tree.id), ..Answer::of(body) }))
}

pub async fn disconnect(site: &Arc<Site>, session: &Arc<Session>, id: u32) -> Result<Done, Status> {
    let tree = session.tree(id)?;
    let opens = session.take_tree(id);
    let _alone = Arc::clone(&tree.turn).write_owned().await;
    let site = Arc::clone(site);
    on_pool(move || close_all(&site, opens)).await?;
    Ok(Done::Now(Answer::done()))
}

pub async fn log_off(connection: &Arc<Connection>, session: &Arc<Session>) -> Result<Done, Status> {
    connection.remove_session(session.id);
    for tree in session.trees() {
        drop(Arc::clone(&tree.turn).write_owned().await);
    }
    let (site, session) = (Arc::clone(&connection.site), Arc::clone(session));
    on_pool(move || session.end(&site)).await?;
    Ok(Done::Now(Answer::done()))
}
