//! A connection for one piece of upkeep.

use sqlx::Pool;
use sqlx::pool::PoolConnection;

use crate::store::Store;

/// Gives the connection back when the piece is done. Cut off, it closes it where
/// the next statement on it could go wrong.
#[derive(Debug)]
pub(crate) struct Session<DB: Store> {
    conn: PoolConnection<DB>,
    is_done: bool,
}

impl<DB: Store> Session<DB> {
    pub(crate) async fn acquire(pool: &Pool<DB>) -> Result<Self, sqlx::Error> {
        let conn = pool.acquire().await?;
        Ok(Self {
            conn,
            is_done: false,
        })
    }

    pub(crate) fn conn(&mut self) -> &mut DB::Connection {
        &mut self.conn
    }

    /// Lets the result pass.
    pub(crate) fn done<T>(mut self, result: Result<T, sqlx::Error>) -> Result<T, sqlx::Error> {
        self.is_done = result.is_ok();
        result
    }
}

impl<DB: Store> Drop for Session<DB> {
    fn drop(&mut self) {
        if DB::CLOSE_IF_CUT && !self.is_done {
            self.conn.close_on_drop();
        }
    }
}
