//! Files that a server writes for others to read: seen whole or not at all.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Writes a file so that it is seen whole or not at all. An error does not name the file.
pub fn write_whole(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    // The temporary file is opened here: an error of the library would name it to the user.
    let open = |path: &Path| OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = tempfile::Builder::new().make_in(folder.unwrap_or(Path::new(".")), open)?;
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_does_not_name_the_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let error = write_whole(&folder.path().join("none/file"), "", 0o600).unwrap_err();
        assert_eq!(error.to_string(), "No such file or directory (os error 2)");
    }
}
