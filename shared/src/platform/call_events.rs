//! Receipts of calls, and the events that calls were answered or ended.

use super::{Platform, Result};
use crate::{
    automation::{AnsweredCallQueue, AnsweredCalls, EndedCallQueue, EndedCalls},
    receipts::Receipts,
    store::Calls,
};

impl Platform {
    pub fn receipts(&self) -> Result<Receipts> {
        self.database().map(Receipts::new)
    }

    pub fn ended_call_queue(&self) -> Result<EndedCallQueue> {
        self.scheduled_queue().map(EndedCallQueue::new)
    }

    pub fn answered_call_queue(&self) -> Result<AnsweredCallQueue> {
        self.scheduled_queue().map(AnsweredCallQueue::new)
    }

    pub fn answered_calls(&self) -> Result<AnsweredCalls> {
        Ok(AnsweredCalls::new(Calls::new(self.database()?), self.dispatch()?, self.history()?))
    }

    pub fn ended_calls(&self) -> Result<EndedCalls> {
        Ok(EndedCalls::new(self.receipts()?, self.dispatch()?, self.ended_call_queue()?, self.history()?))
    }
}
