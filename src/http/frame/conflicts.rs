//! Notes refusals of the Blob, Queue and Table services in the journal.
//!
//! Decides what the journal is told of such a refusal. Which refusals are conflicts is decided in
//! the rules; the File service notes its refusals in the engine, which knows who holds a file.

use super::call::Call;
use super::documented;
use super::refusal::Refusal;
use super::service::Answer;
use crate::journal::Event;
use crate::journal::row::RefusedRequest;
use crate::rules::{Cause, Spelled};

impl Call<'_> {
    /// Notes the answer if it is a refusal by a conflict.
    pub fn note(&self, answer: &Answer) {
        if let Err(refusal) = answer {
            self.note_refusal(refusal, || match &refusal.object {
                Some(object) => object.0.clone(),
                None => (self.site.service.object)(self.request),
            });
        }
    }

    /// Notes a refusal on `object`, which is named as the command line names it, without the
    /// service.
    pub fn note_refusal(&self, refusal: &Refusal, object: impl FnOnce() -> String) {
        let Some(conflict) = refusal.conflict else { return };
        let code = refusal.code.spelled(self.site.options.error_names);
        let spelled = Spelled { code, status: refusal.status.as_u16(), errno: "" };
        let message = refusal.message.clone().into_owned();
        self.account.journal().push(Event::Refused(RefusedRequest {
            service: self.site.service.kind,
            object: object(),
            who: self.context.owner().clone(),
            operation: documented::name_of(self.site.service.kind, self.context.caller.operation),
            cause: Cause { kind: conflict.into(), spelled, message, holder: None },
        }));
    }
}
