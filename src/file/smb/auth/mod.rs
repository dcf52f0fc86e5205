//! Who a client is, and the keys of its session. Decides which tokens are taken; which accounts and
//! keys there are is asked of the caller, and the pause after a wrong one is the caller's too.
//!
//! ```text
//!   spnego    the wrapping that both sides negotiate a mechanism with
//!   ntlm      NTLMv2, the only mechanism
//!   keys      keys of a session, signatures
//!   seal      encryption
//! ```

pub mod keys;
mod ntlm;
pub mod seal;
mod spnego;
#[cfg(test)]
mod tests;

use ntlm::Challenge;
use spnego::{Incoming, State};

pub use keys::{Keys, Preauth};
pub use ntlm::MIC_AT;
pub use spnego::offer;

/// Why a logon is refused. The client is told `LOGON_FAILURE`, or `INVALID_PARAMETER` for the
/// first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LogonError {
    #[error("the token of the logon is malformed, or not expected now")]
    Malformed,
    #[error("the client offers no NTLM, the only mechanism here")]
    NoNtlm,
    #[error("the client has no NTLMv2: NTLMv1, guests and anonymous users are refused")]
    NoNtlmV2,
    #[error("there is no such account, or the key is none of the account's")]
    WrongKey,
    #[error("the logon was changed on its way: its integrity code is wrong")]
    Changed,
}

/// A logon: two tokens of the client, or three if it prefers another mechanism.
#[derive(Debug, Default)]
pub struct Logon {
    stage: Stage,
    /// The mechanisms that the client offered, as it wrote them: what `mechListMIC` protects.
    offered: Vec<u8>,
    /// NTLM was not the client's first choice, so that it must prove its list.
    must_prove: bool,
}

#[derive(Debug, Default)]
enum Stage {
    #[default]
    First,
    Challenged(Box<Challenge>),
    Over,
}

/// What a token led to.
#[derive(Debug)]
pub enum Step {
    /// Send this token, and wait for the next.
    Continue(Vec<u8>),
    Done(Box<Proven>),
}

/// A user who proved to have a key.
#[derive(Debug)]
pub struct Proven {
    /// As the client wrote it.
    pub user: String,
    /// The place of the password among those that were asked for.
    pub matched: usize,
    pub session_key: [u8; 16],
    /// The last token, for the client.
    pub token: Vec<u8>,
}

impl Logon {
    /// Takes a token of the client. `now` is a FILETIME; `passwords` gives those that a user may
    /// have, none for a user who does not exist.
    pub fn step(
        &mut self,
        token: &[u8],
        now: u64,
        passwords: impl FnOnce(&str) -> Vec<String>,
    ) -> Result<Step, LogonError> {
        match (std::mem::replace(&mut self.stage, Stage::Over), spnego::read(token)?) {
            (Stage::First, Incoming::Bare(token)) => self.challenge(token, now, true),
            (Stage::First, Incoming::Init { mechanisms, ntlm, token }) => {
                mechanisms.clone_into(&mut self.offered);
                match (ntlm, token) {
                    (Some(0), Some(token)) => self.challenge(token, now, false),
                    (Some(place), _) => {
                        self.must_prove = place > 0;
                        self.stage = Stage::First;
                        let state = if place > 0 { State::RequestMic } else { State::Incomplete };
                        Ok(Step::Continue(spnego::answer(state, Some(&[]), None)))
                    }
                    (None, _) => Err(LogonError::NoNtlm),
                }
            }
            (Stage::First, Incoming::Next { token: Some(token), .. })
                if !self.offered.is_empty() =>
            {
                self.challenge(token, now, false)
            }
            (Stage::Challenged(challenge), Incoming::Bare(token)) => {
                let found = challenge.check(token, passwords)?;
                Ok(found.proven(Vec::new()))
            }
            (Stage::Challenged(challenge), Incoming::Next { token: Some(token), mic }) => {
                let found = challenge.check(token, passwords)?;
                let token = self.last_token(&found, mic)?;
                Ok(found.proven(token))
            }
            _ => Err(LogonError::Malformed),
        }
    }

    fn challenge(&mut self, token: &[u8], now: u64, bare: bool) -> Result<Step, LogonError> {
        let challenge = Challenge::to(token, now)?;
        let message = challenge.message();
        let answer = if bare {
            message.to_vec()
        } else {
            spnego::answer(State::Incomplete, Some(message), None)
        };
        self.stage = Stage::Challenged(Box::new(challenge));
        Ok(Step::Continue(answer))
    }

    /// Checks the code over the client's list of mechanisms, and gives the server's back.
    fn last_token(&self, found: &ntlm::Found, mic: Option<&[u8]>) -> Result<Vec<u8>, LogonError> {
        let Some(mic) = mic else {
            let missing = self.must_prove;
            return if missing { Err(LogonError::Changed) } else { Ok(spnego::done(None)) };
        };
        if !found.verifies_list(&self.offered, mic) {
            return Err(LogonError::Changed);
        }
        Ok(spnego::done(Some(&found.sign_list(&self.offered))))
    }
}
