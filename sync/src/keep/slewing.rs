//! Clock of a rank that slews to the lines of sessions.

use downbeat_clock_core::{ErrorBound, Global, ModelError, SlewedModel, Ticks};

use super::KeptSession;
use crate::Synchronized;

/// Model of a kept clock that neither jumps nor runs backward, for readers on one thread; others read a
/// [`ModelClock`](downbeat_clock_core::ModelClock).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlewingClock {
    /// Model that the clock shows.
    pub model: SlewedModel<Global>,
    /// Largest difference of what it shows from the clock of rank 0.
    pub bound: ErrorBound<Global>,
}

impl SlewingClock {
    /// Creates the clock of a synchronization.
    pub fn new(synchronized: &Synchronized) -> Self {
        Self {
            model: synchronized.model.into(),
            bound: synchronized.bound,
        }
    }

    /// Begins to slew to the line of a session. A clock that slews still, because the period is short, goes on to its line instead, and the
    /// next session corrects it.
    ///
    /// # Errors
    /// If the lines are too far apart.
    pub fn follow(&mut self, session: &KeptSession, now: Ticks) -> Result<(), ModelError> {
        if let Some(model) = self.model.toward(session.model, now, session.slew)? {
            self.model = model;
            self.bound = model.bound(session.bound);
        }
        Ok(())
    }
}
