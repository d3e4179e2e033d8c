//! Where a page goes. It holds all that an agent has learned, so it is the user's alone, and lands in no repository by accident.

use crate::base::cli::Context;
use crate::base::error::{Error, Result, reason};
use crate::base::file;
use crate::program::page::document::Page;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// How every page begins.
const MARK: &[u8] = b"<!doctype html>\n<!-- A page of the axe toolkit -->\n";

/// What the top of a working copy has in it.
const REPOSITORIES: [&str; 3] = [".git", ".hg", ".jj"];

/// A place that was looked at before the work begins.
#[derive(Debug)]
pub enum PageTarget {
    Stdout,
    File(PathBuf),
}

impl PageTarget {
    /// `None` and `-` are stdout. `flag` names the file. `is_forced`: also in a repository, or in the place of another file.
    ///
    /// # Errors
    /// `Usage`: it goes to a terminal, into `store`, into a repository, or would replace another file. `Io`: what is there is no
    /// regular file.
    pub fn of(
        path: Option<&Path>,
        flag: &str,
        is_forced: bool,
        store: &Path,
        cx: &Context,
    ) -> Result<PageTarget> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            if cx.stdout.is_terminal() {
                let hint = format!("name a file: {} {flag} page.html", cx.program);
                return Err(Error::usage("a page is not for a terminal").hint(hint));
            }
            return Ok(PageTarget::Stdout);
        };
        let shown = path.display();
        // A link leads to the file that is replaced.
        let real = path.canonicalize().or_else(|_| real_name(path)).map_err(|why| {
            Error::io(format!("\"{shown}\" cannot be written: {}", reason(&why)))
                .hint("name a file in a directory that exists")
        })?;
        let dir = real.parent().unwrap_or(&real);
        if store.canonicalize().is_ok_and(|store| dir.starts_with(store)) {
            return Err(Error::usage(format!("\"{shown}\" is in the store of the notes"))
                .hint("write the page somewhere else"));
        }
        // Whatever is in it: what looks like a repository may become one.
        let is_top = |top: &&Path| REPOSITORIES.iter().any(|name| top.join(name).symlink_metadata().is_ok());
        if let Some(top) = dir.ancestors().find(is_top).filter(|_| !is_forced) {
            let top = top.display();
            return Err(Error::usage(format!(
                "\"{shown}\" is in the repository \"{top}\", and may be committed"
            ))
            .hint("write the page somewhere else, or add --force"));
        }
        // Only a regular file is replaced, not a link that leads nowhere either.
        let is_there = file::if_exists(real.symlink_metadata())?.is_some();
        if is_there && !is_page(&real)? && !is_forced {
            return Err(Error::usage(format!("\"{shown}\" is not a page that axe wrote"))
                .hint("give another name, or add --force"));
        }
        Ok(PageTarget::File(real))
    }

    /// Writes the page, and prints the path of a file.
    pub fn write(&self, page: &Page, cx: &mut Context) -> Result<()> {
        let html = page.html()?;
        match self {
            PageTarget::Stdout => cx.stdout.text(&html),
            PageTarget::File(path) => {
                file::sweep_aged(path, |left| left.starts_with(MARK) || left.is_empty());
                file::install(path, html.as_bytes(), 0o600)?;
                cx.stdout.line(&path.display().to_string())
            }
        }
    }
}

/// Of a file that does not exist yet.
fn real_name(path: &Path) -> io::Result<PathBuf> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(dir.canonicalize()?.join(path.file_name().unwrap_or_default()))
}

fn is_page(path: &Path) -> Result<bool> {
    let (file, _) = file::open_regular(path)?;
    let mut start = Vec::new();
    file.take(MARK.len() as u64).read_to_end(&mut start)?;
    Ok(start == MARK)
}
