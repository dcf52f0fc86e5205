//! Create Permission and Get Permission: JSON both ways (FILEREST section 6).

use serde::{Deserialize, Serialize};

use super::{Answer, Call};
use crate::engine::account::{Permission, PermissionFormat};
use crate::rest::refusal::Refusal;
use crate::rest::reply::Reply;

/// A permission as a body.
#[derive(Serialize, Deserialize)]
struct Document {
    permission: String,
    #[serde(default)]
    format: Option<String>,
}

impl Call<'_> {
    pub(super) fn create_permission(&self) -> Answer {
        let snapshot = self.request.snapshot()?;
        let document: Document = serde_json::from_slice(&self.request.body).map_err(|error| {
            Refusal::bad("InvalidInput", format!("The body is no permission: {error}."))
        })?;
        let permission = match format(document.format.as_deref())? {
            None | Some(PermissionFormat::Sddl) => Permission::Sddl(document.permission),
            Some(PermissionFormat::Binary) => Permission::Binary(document.permission),
        };
        let at = self.share_ref(snapshot.as_ref())?;
        let key = self.engine().create_permission(&at, &permission)?;
        Ok(Reply::created().header("x-ms-file-permission-key", key))
    }

    pub(super) fn permission(&self) -> Answer {
        let key = self.request.required("x-ms-file-permission-key")?;
        let wanted = format(self.request.header("x-ms-file-permission-format")?)?;
        let found = self.engine().permission(&self.share_ref(None)?, key, wanted)?;
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
