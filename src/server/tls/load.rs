//! Loading a certificate, or making one.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::SystemTime;

use super::{Certificate, Secured};
use crate::http::tls::{Authority, Tls, TlsError};
use crate::server::error::StartError;
use crate::server::files::write_whole;
use crate::server::kinds;
use crate::server::listeners::ListenOptions;

/// The file that clients are to trust.
const CA_FILE: &str = "ca.pem";
const CA_KEY_FILE: &str = "ca-key.pem";

impl Certificate {
    /// Loads or makes what is needed to serve; `state` is where keys are kept.
    pub fn load(&self, state: &Path, listen: &ListenOptions) -> Result<Secured, StartError> {
        let loaded = match self {
            Self::Own => own(&state.join("tls"), names(listen)),
            Self::Files(chain, key) => {
                from_files(chain, key).map(|tls| Secured { tls, ca_file: None })
            }
        };
        loaded.map_err(StartError::Certificate)
    }
}

fn own(folder: &Path, names: Vec<String>) -> Result<Secured, String> {
    fs::create_dir_all(folder)
        .map_err(|why| format!("--tls: making {}: {why}", folder.display()))?;
    let (key_file, ca_file) = (folder.join(CA_KEY_FILE), folder.join(CA_FILE));
    let authority = authority(&key_file)?;
    if !ca_file.exists() {
        let pem = authority.certificate_pem().map_err(|why| why.to_string())?;
        write(&ca_file, &pem, 0o644)?;
    }
    let tls = authority.issue(names, SystemTime::now()).map_err(|why| why.to_string())?;
    Ok(Secured { tls, ca_file: Some(ca_file) })
}

/// The authority of the last start, or a new one.
fn authority(key_file: &Path) -> Result<Authority, String> {
    if key_file.exists() {
        let pem = read(key_file)?;
        let pem = String::from_utf8_lossy(&pem);
        return Authority::from_key_pem(&pem).map_err(|why| {
            let folder = key_file.parent().unwrap_or(key_file);
            let (file, folder) = (key_file.display(), folder.display());
            format!("--tls self: {file} is damaged; remove {folder} to have a new authority: {why}")
        });
    }
    // A certificate without its key is that of an authority that is gone.
    let old = key_file.with_file_name(CA_FILE);
    match fs::remove_file(&old) {
        Err(why) if why.kind() != ErrorKind::NotFound => {
            return Err(format!("--tls: removing {}: {why}", old.display()));
        }
        _ => {}
    }
    let authority = Authority::new().map_err(|why| why.to_string())?;
    write(key_file, &authority.key_pem(), 0o600)?;
    Ok(authority)
}

/// The names that clients may call the server by: addresses, host names, and each account in the
/// host style of each service.
fn names(listen: &ListenOptions) -> Vec<String> {
    let always = ["localhost", "host.docker.internal", "127.0.0.1", "::1"];
    let mut names: Vec<_> = always.map(str::to_owned).into();
    for kind in kinds() {
        let label = kind.label();
        names.push(format!("*.{label}.localhost"));
        let accounts = listen.credentials.iter();
        names.extend(accounts.map(|account| format!("{}.{label}.localhost", account.name())));
    }
    names.extend(listen.addresses().iter().map(|(_, address)| address.ip().to_string()));
    names.extend(listen.hosts.iter().cloned());
    let mut known = std::collections::BTreeSet::new();
    names.retain(|name| known.insert(name.clone()));
    names
}

fn from_files(chain: &Path, key: &Path) -> Result<Tls, String> {
    let (chain_pem, key_pem) = (read(chain)?, read(key)?);
    match Tls::from_pem(&chain_pem, &key_pem) {
        Ok(tls) => Ok(tls),
        Err(error @ TlsError::NoKey(_)) => Err(format!("--tls: {}: {error}", key.display())),
        Err(TlsError::Mismatch) => Err(format!(
            "--tls: the key in {} is not that of the first certificate in {}: give the pair that \
             was made together",
            key.display(),
            chain.display()
        )),
        Err(error) => Err(format!("--tls: {}: {error}", chain.display())),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let read = fs::read(path);
    read.map_err(|why| format!("--tls: reading {}: {why}", path.display()))
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), String> {
    let written = write_whole(path, text, mode);
    written.map_err(|why| format!("--tls: writing {}: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::auth::Credential;

    #[test]
    fn a_certificate_is_for_every_account_in_the_host_style_of_every_service() {
        let second: Credential = "second:a2V5".parse().unwrap();
        let credentials = vec![Credential::development(), second];
        let hosts = vec!["nas".to_owned(), "localhost".to_owned()];
        let names = names(&ListenOptions { credentials, hosts, ..ListenOptions::default() });
        for kind in kinds() {
            for account in ["*", "devstoreaccount1", "second"] {
                let name = format!("{account}.{kind}.localhost");
                assert!(names.contains(&name), "{name} is not in {names:?}");
            }
        }
        assert!(names.contains(&"nas".to_owned()));
        assert_eq!(names.iter().filter(|name| *name == "localhost").count(), 1);
    }
}
