//! Loading a certificate, or making one.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};

use super::Certificate;
use crate::cli::serve::listen::{Listen, Secured};
use crate::cli::serve::ready::write_whole;
use crate::rest::auth::Account;
use crate::rest::tls::{Authority, Tls, TlsError};

/// The file that clients are to trust.
const CA_FILE: &str = "ca.pem";
const CA_KEY_FILE: &str = "ca-key.pem";

impl Certificate {
    /// Loads or makes what is needed to serve; `state` is where things are kept.
    pub fn load(&self, state: &Path, accounts: &[Account], listen: &Listen) -> Result<Secured> {
        match self {
            Self::Own => own(&state.join("tls"), names(accounts, listen)),
            Self::Files(chain, key) => Ok(Secured { tls: from_files(chain, key)?, ca_file: None }),
        }
    }
}

fn own(folder: &Path, names: Vec<String>) -> Result<Secured> {
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let (key_file, ca_file) = (folder.join(CA_KEY_FILE), folder.join(CA_FILE));
    let authority = authority(&key_file)?;
    if !ca_file.exists() {
        write(&ca_file, &authority.certificate_pem()?, 0o644)?;
    }
    let tls = authority.issue(names, SystemTime::now())?;
    Ok(Secured { tls, ca_file: Some(ca_file) })
}

/// The authority of the last time, or a new one.
fn authority(key_file: &Path) -> Result<Authority> {
    if key_file.exists() {
        let pem = read(key_file)?;
        let pem = String::from_utf8_lossy(&pem);
        return Authority::from_key_pem(&pem).with_context(|| {
            let folder = key_file.parent().unwrap_or(key_file);
            let (file, folder) = (key_file.display(), folder.display());
            format!("--tls self: {file} is damaged; remove {folder} to have a new authority")
        });
    }
    // One that is there is of an authority whose key is gone.
    match fs::remove_file(key_file.with_file_name(CA_FILE)) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let authority = Authority::new()?;
    write(key_file, &authority.key_pem(), 0o600)?;
    Ok(authority)
}

/// What clients call the server: by address, by name, and by account in host style.
fn names(accounts: &[Account], listen: &Listen) -> Vec<String> {
    let ip = listen.address.ip().to_string();
    let always = ["localhost", "*.file.localhost", "host.docker.internal", "127.0.0.1", "::1"];
    let mut names: Vec<_> = always.map(str::to_owned).into();
    names.extend(accounts.iter().map(|account| format!("{}.file.localhost", account.name())));
    for name in std::iter::once(&ip).chain(&listen.hosts) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

fn from_files(chain: &Path, key: &Path) -> Result<Tls> {
    let (chain_pem, key_pem) = (read(chain)?, read(key)?);
    match Tls::from_pem(&chain_pem, &key_pem) {
        Ok(tls) => Ok(tls),
        Err(error @ TlsError::NoKey(_)) => bail!("--tls: {}: {error}", key.display()),
        Err(TlsError::Mismatch) => bail!(
            "--tls: the key in {} is not that of the first certificate in {}: give the pair \
             that was made together",
            key.display(),
            chain.display()
        ),
        Err(error) => bail!("--tls: {}: {error}", chain.display()),
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("--tls: reading {}", path.display()))
}

fn write(path: &Path, text: &str, mode: u32) -> Result<()> {
    write_whole(path, text, mode).with_context(|| format!("writing {}", path.display()))
}
