//! One request and its client: the account that it means, the shares that it names, and who asks.
//!
//! What a request does is decided in the modules beside this one, one for each subject.

use std::sync::Arc;

use super::address::PrintedFile;
use super::failure::{ApiFailure, RefusalDetail};
use super::serving::{ServedAccount, Serving};
use crate::file::rules::{Denial, SharePath};
use crate::file::service::shares::ListOptions;
use crate::file::service::{FileError, FileService, Share};
use crate::rules::{Caller, Context, Owner, Timestamp};

/// A request under way.
pub struct Session {
    pub serving: Arc<dyn Serving>,
    /// The account that the request means.
    pub account: Arc<dyn ServedAccount>,
    pub owner: Owner,
    /// Whether the owner of the server asks, by the control socket.
    pub is_owner: bool,
}

impl Session {
    /// A request about the account of that name, or about the first.
    pub fn new(
        serving: Arc<dyn Serving>,
        account: Option<&str>,
        owner: Owner,
        is_owner: bool,
    ) -> Result<Self, ApiFailure> {
        let account = match account {
            None => serving.first_account(),
            Some(name) => serving.account(name).ok_or_else(|| {
                let accounts = serving.accounts();
                let names: Vec<_> = accounts.iter().map(|account| &**account.name()).collect();
                let names = names.join(", ");
                ApiFailure::not_found(format!("no account '{name}' is served here, only {names}"))
            })?,
        };
        Ok(Self { serving, account, owner, is_owner })
    }

    /// The context of a request that has no operation of a service; `command` is the command that
    /// sends it.
    pub fn context(&self, command: &'static str) -> Context {
        let owner = self.owner_of(command);
        let mut caller = Caller::local(Arc::new(owner), command);
        caller.user_agent = Some(self.owner.client.name.as_str().into());
        Context::new(self.now(), caller)
    }

    /// The client, with the command as its program where it named none.
    pub fn owner_of(&self, command: &'static str) -> Owner {
        let mut owner = self.owner.clone();
        owner.program.get_or_insert_with(|| format!("latchfs {command}").into());
        owner
    }

    pub fn now(&self) -> Timestamp {
        self.account.clock().now()
    }

    /// The shares of the account.
    pub fn shares(&self) -> Vec<Arc<Share>> {
        shares_of(self.account.file())
    }

    /// The share of that name, or the only one.
    pub fn share(&self, name: Option<&str>) -> Result<Arc<Share>, ApiFailure> {
        let mut shares = self.shares();
        let Some(name) = name else {
            let only = shares.pop().ok_or_else(|| ApiFailure::not_found("no share is served"))?;
            return if shares.is_empty() {
                Ok(only)
            } else {
                Err(ApiFailure::bad("several shares are served: name one, as in NAME:/PATH"))
            };
        };
        if let Some(found) = shares.iter().find(|share| **share.name() == *name) {
            return Ok(Arc::clone(found));
        }
        let there: Vec<_> = shares.iter().map(|share| &**share.name()).collect();
        let there = there.join(", ");
        Err(ApiFailure::not_found(format!("no share '{name}' is served here, only {there}")))
    }

    /// Asks every share of the account, or the one of that name. Of all, a share that is deleted or
    /// replaced meanwhile is left out: it holds nothing any more.
    pub fn ask_shares<T>(
        &self,
        name: Option<&str>,
        path: Option<&SharePath>,
        ask: impl Fn(&Share) -> Result<T, FileError>,
    ) -> Result<Vec<(Arc<Share>, T)>, ApiFailure> {
        let all = name.is_none() && path.is_none();
        let shares = if all { self.shares() } else { vec![self.share(name)?] };
        let mut told = Vec::new();
        for share in shares {
            match ask(&share) {
                Ok(answer) => told.push((share, answer)),
                Err(FileError::Denied(Denial::ShareDeleted | Denial::ShareReplaced)) if all => {}
                Err(error) => {
                    let root = SharePath::root();
                    return Err(self.refused(&share, path.unwrap_or(&root), error));
                }
            }
        }
        Ok(told)
    }

    /// The share and the path that a request names. Without a name of the share, the path may have
    /// it: `SHARE:/PATH` or `file:SHARE/PATH`.
    pub fn place(
        &self,
        name: Option<&str>,
        path: Option<&str>,
    ) -> Result<(Option<String>, Option<SharePath>), ApiFailure> {
        let printed = if name.is_none() { path.and_then(PrintedFile::read) } else { None };
        let Some(printed) = printed else {
            return Ok((name.map(str::to_owned), path.map(share_path).transpose()?));
        };
        if let Some(account) = printed.account.filter(|other| **other != **self.account.name()) {
            let share = &printed.share;
            Err(format!("{account}/{share} is of another account: ask with account={account}"))?;
        }
        Ok((Some(printed.share), Some(share_path(&printed.path)?)))
    }

    /// The share and the file that a request names.
    pub fn target(
        &self,
        name: Option<&str>,
        path: &str,
    ) -> Result<(Arc<Share>, SharePath), ApiFailure> {
        let (name, path) = self.place(name, Some(path))?;
        Ok((self.share(name.as_deref())?, path.unwrap_or_else(SharePath::root)))
    }

    /// The failure of an operation on a file, with the open that is in the way.
    pub fn refused(&self, share: &Share, path: &SharePath, error: FileError) -> ApiFailure {
        match error {
            FileError::Denied(denial) => ApiFailure::refused(RefusalDetail::of_file(
                self.account.name(),
                share,
                path,
                &denial,
            )),
            FileError::Store(error) => ApiFailure::failed(format!("{path}: {error}")),
        }
    }
}

/// The shares of a File service, by name.
pub fn shares_of(file: &FileService) -> Vec<Arc<Share>> {
    let listed = file.every_share(&ListOptions::default()).unwrap_or_default();
    listed.iter().filter_map(|info| file.share(&info.name).ok()).collect()
}

fn share_path(path: &str) -> Result<SharePath, String> {
    SharePath::new(path).map_err(|error| format!("{path}: {error}"))
}
