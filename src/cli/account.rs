//! The form of an account on the command line.
//!
//! Decides that a key is never shown: neither in help, which shows the values of variables, nor in
//! the error about a wrong key, although errors repeat other values. Accounts themselves are in
//! `http::auth`.

use std::ffi::OsStr;

use clap::builder::TypedValueParser;
use clap::error::{Error, ErrorKind};
use clap::{Arg, Command};

use crate::http::auth::{Credential, CredentialError};

/// Reads `NAME:KEY`.
#[derive(Debug, Clone, Copy)]
pub struct NameAndKey;

impl TypedValueParser for NameAndKey {
    type Value = Credential;

    fn parse_ref(
        &self,
        cmd: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Credential, Error> {
        let read = value.to_str().ok_or(CredentialError::NoKey).and_then(str::parse);
        read.map_err(|why| {
            let option = arg.map(ToString::to_string).unwrap_or_default();
            let message = format!("invalid value for '{option}': {why}\n");
            Error::raw(ErrorKind::ValueValidation, message).with_cmd(cmd)
        })
    }
}
