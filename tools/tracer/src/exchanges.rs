//! Messages with neighbors of requests that are under way.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use downbeat_recording::Envelope;
use rustc_hash::FxHashMap;

/// Messages of one operation.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    pub(crate) sent: Vec<Envelope>,
    pub(crate) received: Vec<Envelope>,
}

/// Operation of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExchangeKey {
    key: u64,
    /// Number of messages that it receives.
    pub(crate) receives: u32,
}

static TABLE: LazyLock<Mutex<FxHashMap<u64, Arc<Exchange>>>> = LazyLock::new(Mutex::default);

impl ExchangeKey {
    /// Keeps the messages of a request.
    pub(crate) fn keep(exchange: Exchange) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let key = NEXT.fetch_add(1, Ordering::Relaxed);
        let receives = exchange.received.len() as u32;
        let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
        table.insert(key, Arc::new(exchange));
        Self { key, receives }
    }

    pub(crate) fn ids(self, first: u64) -> impl Iterator<Item = u64> {
        (0..u64::from(self.receives)).map(move |index| first + index)
    }

    pub(crate) fn find(self) -> Option<Arc<Exchange>> {
        let table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
        table.get(&self.key).cloned()
    }

    pub(crate) fn remove(self) {
        let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
        table.remove(&self.key);
    }
}
