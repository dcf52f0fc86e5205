//! Opens: what a request to open asks for, and whether the file is opened, created or overwritten.
//!
//! Decides dispositions, options and the order of the answers that need no table of opens:
//! bad options, then the name, then its type. The share check comes last, in [`super::file`].
//!
//! The rules are those of docs/semantics.md, "Creating and overwriting".

use super::{Access, Attributes, Denial, Rights, ShareMode};

/// The action for a name that exists, and for a name that does not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Disposition {
    /// Open; refuse an absent name.
    Open,
    /// Create; refuse a taken name.
    Create,
    OpenIf,
    /// Open and empty; refuse an absent name.
    Overwrite,
    /// Open and empty, or create.
    OverwriteIf,
    /// Replace in place, or create.
    Supersede,
}

/// The action that was taken on the name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum CreateAction {
    /// It existed and was opened.
    Opened,
    Created,
    /// It existed, was emptied, and its attributes replaced.
    Overwritten,
    /// It existed and was replaced in place: same file, emptied (di08).
    Superseded,
}

/// Options of an open.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Mark the link when this open closes; needs DELETE.
    pub delete_on_close: bool,
    /// Only a directory will do; a missing name becomes one.
    pub directory: bool,
    /// Only a file will do.
    pub non_directory: bool,
}

/// An open as an SMB client can ask for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenRequest {
    /// The rights that the open asks for.
    pub rights: Rights,
    /// The access that it shares with other opens.
    pub share: ShareMode,
    /// Existing and absent names.
    pub disposition: Disposition,
    pub options: Options,
    /// Attributes of a file that is made or overwritten.
    pub attributes: Attributes,
}

/// The file that has the name now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExistingFile {
    /// A directory, not a file.
    pub directory: bool,
    pub attributes: Attributes,
}

impl OpenRequest {
    /// A plain open of an existing file with that access and share mode.
    pub fn plain(access: Access, share: ShareMode) -> Self {
        Self {
            rights: access.into(),
            share,
            disposition: Disposition::Open,
            options: Options::default(),
            attributes: Attributes::default(),
        }
    }

    /// The access that the share check is made with: overwriting implies write, superseding
    /// write and delete.
    pub fn checked_access(&self, action: CreateAction) -> Access {
        let implied = match action {
            CreateAction::Opened | CreateAction::Created => Access::NONE,
            CreateAction::Overwritten => Access::W,
            CreateAction::Superseded => Access::W | Access::D,
        };
        self.rights.access() | implied
    }

    /// Options that contradict each other, refused before anything is looked up (dp04, dr11).
    pub fn check_options(&self) -> Result<(), Denial> {
        let Options { delete_on_close, directory, non_directory } = self.options;
        if delete_on_close && !self.rights.contains(Rights::DELETE) {
            return Err(Denial::InvalidParameter("delete-on-close needs DELETE access"));
        }
        if directory && non_directory {
            return Err(Denial::InvalidParameter("both a directory and no directory asked for"));
        }
        if directory && self.disposition.empties() {
            return Err(Denial::InvalidParameter("a directory cannot be overwritten"));
        }
        Ok(())
    }

    /// The name does not exist: made, or refused.
    pub fn on_absent(&self) -> Result<CreateAction, Denial> {
        if matches!(self.disposition, Disposition::Open | Disposition::Overwrite) {
            return Err(Denial::NotFound);
        }
        if self.options.delete_on_close && self.attributes.contains(Attributes::READ_ONLY) {
            return Err(Denial::CannotDelete); // dp25
        }
        Ok(CreateAction::Created)
    }

    /// The name exists: what will be done to it, if its opens allow (di11, di42, dr11).
    pub fn on_existing(&self, target: &ExistingFile) -> Result<CreateAction, Denial> {
        if self.disposition == Disposition::Create {
            return Err(Denial::NameTaken);
        }
        if target.directory && self.options.non_directory {
            return Err(Denial::IsDirectory);
        }
        if !target.directory && self.options.directory {
            return Err(Denial::NotDirectory);
        }
        if target.directory && self.disposition.empties() {
            return Err(Denial::InvalidParameter("a directory cannot be overwritten"));
        }
        Ok(match self.disposition {
            Disposition::Open | Disposition::OpenIf | Disposition::Create => CreateAction::Opened,
            Disposition::Overwrite | Disposition::OverwriteIf => CreateAction::Overwritten,
            Disposition::Supersede => CreateAction::Superseded,
        })
    }

    /// True if [`Self::check_attributes`] can refuse: reading them costs a trip to the disk that
    /// an ordinary open for reading need not make.
    pub fn wants_attributes(&self, action: CreateAction) -> bool {
        self.checked_access(action).contains(Access::W) || self.options.delete_on_close
    }

    /// Refuses an action that the attributes of an existing file forbid.
    pub fn check_attributes(
        &self,
        action: CreateAction,
        target: &ExistingFile,
    ) -> Result<(), Denial> {
        let has = |attribute| target.attributes.contains(attribute);
        if has(Attributes::READ_ONLY) {
            if !target.directory && self.checked_access(action).contains(Access::W) {
                return Err(Denial::ReadOnly);
            }
            if self.options.delete_on_close {
                return Err(Denial::CannotDelete);
            }
        }
        // di13: overwriting keeps nobody's secret by accident; superseding replaces it outright.
        let forgotten = |attribute| has(attribute) && !self.attributes.contains(attribute);
        if action == CreateAction::Overwritten
            && (forgotten(Attributes::HIDDEN) || forgotten(Attributes::SYSTEM))
        {
            return Err(Denial::HiddenMismatch);
        }
        Ok(())
    }
}

impl Disposition {
    pub const ALL: [Self; 6] = [
        Self::Open,
        Self::Create,
        Self::OpenIf,
        Self::Overwrite,
        Self::OverwriteIf,
        Self::Supersede,
    ];

    /// An existing file loses its bytes.
    pub fn empties(self) -> bool {
        matches!(self, Self::Overwrite | Self::OverwriteIf | Self::Supersede)
    }
}
