//! The end of the driver, however it comes about, is the end of its processes.

use std::io;
use std::process;
use std::thread;

/// Ends this process when its input ends: the other end is with the driver.
pub(crate) fn hold() {
    thread::spawn(|| {
        // An input that cannot be read has ended, too.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        process::exit(0);
    });
}
