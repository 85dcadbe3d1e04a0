//! The place of a proposal in a plan.

use std::sync::Arc;

use model::OperationId;

/// The place of a proposal in a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanPlace {
    /// The plan: the id of its first step, which is decided about.
    pub plan: OperationId,
    /// The ids of all steps, in their order.
    pub steps: Arc<[OperationId]>,
    /// The place of the step among them; the first is 0.
    pub at: usize,
}
