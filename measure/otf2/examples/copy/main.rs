//! Copies an archive record by record, in either byte order.
//!
//! `cargo run -p downbeat-otf2 --example copy traces.otf2 FOLDER little|big`

#![expect(clippy::print_stdout, reason = "the program prints its result")]

mod archive;

use std::path::Path;

use archive::copy;
use downbeat_otf2::Error;
use downbeat_otf2::raw::Order;

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (from, folder, order) = match &arguments[..] {
        [from, folder, order] if order == "little" => (from, folder, Order::Little),
        [from, folder, order] if order == "big" => (from, folder, Order::Big),
        _ => {
            println!("usage: copy ARCHIVE.otf2 FOLDER little|big");
            return Ok(());
        }
    };
    let events = copy(Path::new(from), Path::new(folder), order)?;
    println!("{events} events copied to {folder}");
    Ok(())
}
