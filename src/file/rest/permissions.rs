//! Create Permission and Get Permission: JSON both ways. What passes for a permission, and its key,
//! is decided by the engine.

use serde::{Deserialize, Serialize};

use super::FileCall;
use crate::file::service::shares::{PermissionFormat, SecurityDescriptor};
use crate::http::auth::Permission::Delete;
use crate::http::auth::{AuthError, GrantedBy, SasScope};
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::reply::Reply;

/// A permission as a body.
#[derive(Serialize, Deserialize)]
struct Document {
    permission: String,
    #[serde(default)]
    format: Option<String>,
}

impl FileCall<'_> {
    pub(super) fn create_permission(&self) -> Answer {
        self.check_may_delete_too()?;
        let snapshot = self.snapshot()?;
        let document: Document = serde_json::from_slice(&self.request.body).map_err(|error| {
            Refusal::bad("InvalidInput", format!("The body is not a permission: {error}."))
        })?;
        let permission = match format(document.format.as_deref())? {
            None | Some(PermissionFormat::Sddl) => SecurityDescriptor::Sddl(document.permission),
            Some(PermissionFormat::Binary) => SecurityDescriptor::Binary(document.permission),
        };
        let at = self.share_ref(snapshot.as_ref())?;
        let key = self.engine()?.create_permission(&at, &permission)?;
        Ok(Reply::created().header("x-ms-file-permission-key", key))
    }

    /// A SAS of the share needs write and delete to create a permission; the table asks for write.
    fn check_may_delete_too(&self) -> Result<(), Refusal> {
        match &self.grant.by {
            GrantedBy::Sas { scope: SasScope::Container | SasScope::Object, permissions }
                if !permissions.contains(Delete) =>
            {
                let (granted, needed) = (permissions.letters(), vec![Delete]);
                Err(AuthError::PermissionMismatch { granted, needed }.into())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn permission(&self) -> Answer {
        let key = self.request.required("x-ms-file-permission-key")?;
        let wanted = format(self.request.header("x-ms-file-permission-format")?)?;
        let found = self.engine()?.permission(&self.share_ref(None)?, key, wanted)?;
        let format = match found.format() {
            PermissionFormat::Sddl => "Sddl",
            PermissionFormat::Binary => "Binary",
        };
        let document =
            Document { permission: found.text().to_owned(), format: Some(format.to_owned()) };
        let json = serde_json::to_vec(&document).expect("two texts are always JSON");
        Ok(Reply::ok().bytes("application/json", json))
    }
}

fn format(text: Option<&str>) -> Result<Option<PermissionFormat>, Refusal> {
    match text {
        None => Ok(None),
        Some(text) if text.eq_ignore_ascii_case("sddl") => Ok(Some(PermissionFormat::Sddl)),
        Some(text) if text.eq_ignore_ascii_case("binary") => Ok(Some(PermissionFormat::Binary)),
        Some(text) => {
            Err(Refusal::header("x-ms-file-permission-format", text, "it must be Sddl or Binary"))
        }
    }
}
