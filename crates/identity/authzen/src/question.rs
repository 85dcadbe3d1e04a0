//! Questions to a PDP, and the bodies of requests about them.

use json::{Object, edited, object};

use crate::answer::RequestableDenial;
use crate::task::AccessApproval;

/// Who wants to do what: subject, action, resource and context of an evaluation. Every body about it
/// has the same bytes of these, so that an approval covers what is evaluated again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessQuestion {
    /// The subject, a JSON object with `type` and `id`.
    pub subject: Vec<u8>,
    /// The name of the action.
    pub action: String,
    /// The resource, a JSON object with `type` and `id`.
    pub resource: Vec<u8>,
    /// The context, a JSON object.
    pub context: Vec<u8>,
}

impl AccessQuestion {
    /// Body of an evaluation, with the approval that a request has got, as it came.
    #[must_use]
    pub fn evaluation(&self, approval: Option<&AccessApproval>) -> Vec<u8> {
        let with_approval = approval.and_then(|approval| {
            edited(
                &self.context,
                &[("approval", Some(approval.raw.as_slice()))],
            )
            .ok()
        });
        let context = with_approval.as_deref().unwrap_or(&self.context);
        object(|body| self.write(body, context))
    }

    /// Body of an access request for what was denied.
    #[must_use]
    pub fn access_request(&self, denial: &RequestableDenial) -> Vec<u8> {
        object(|body| {
            self.write(body, &self.context);
            body.object("client", |client| {
                client.text("id", "portmoot");
            });
            body.object("denial", |bound| {
                bound
                    .optional_text("evaluation_id", denial.evaluation_id.as_deref())
                    .optional_text("evaluated_at", denial.evaluated_at.as_deref())
                    .text("expires_at", &denial.expires_at)
                    .optional_text("reason", denial.reason.as_deref())
                    .optional_text("binding_token", denial.binding_token.as_deref())
                    .optional_text("template", denial.template.as_deref());
            });
        })
    }

    fn write(&self, body: &mut Object<'_>, context: &[u8]) {
        body.raw("subject", &self.subject)
            .object("action", |action| {
                action.text("name", &self.action);
            })
            .raw("resource", &self.resource)
            .raw("context", context);
    }
}
