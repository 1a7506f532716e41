//! Options of commands that write their results as a page instead of text.

use std::path::PathBuf;

use clap::Args;

use super::Page;
use crate::{Failure, Outputs};

/// Options of commands that can write one page.
#[derive(Args, Debug)]
pub struct PageOptions {
    /// Write one HTML page with plots to this file instead, or to standard output for -
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["json", "format"])]
    output: Option<PathBuf>,
    /// Folder for a separate SVG file of every plot
    #[arg(long, value_name = "DIR", requires = "output")]
    svg: Option<PathBuf>,
}

impl PageOptions {
    /// Returns true if a page is wanted.
    pub fn is_wanted(&self) -> bool {
        self.output.is_some()
    }

    /// Adds the page and the folder of its pictures to the outputs of a command, before its work begins.
    ///
    /// # Errors
    /// If it cannot be written, or is an input or another output.
    pub fn add_to(&self, outputs: &mut Outputs) -> Result<(), Failure> {
        match &self.output {
            Some(page) => outputs.page(OPTION, page, self.svg.as_deref()),
            None => Ok(()),
        }
    }

    /// Writes a page if it is wanted, and otherwise prints.
    ///
    /// # Errors
    /// If a file cannot be written, or printing fails.
    pub fn write_or(
        &self,
        title: &str,
        page: impl FnOnce() -> Page,
        print: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        match &self.output {
            Some(file) => page().write(title, OPTION, file, self.svg.as_deref()),
            None => print(),
        }
    }
}

const OPTION: &str = "-o";
