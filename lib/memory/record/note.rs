//! The texts of a note that are compared with what was said.

/// What a note says.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NoteText<'a> {
    pub(crate) title: &'a str,
    pub(crate) summary: &'a str,
    pub(crate) tags: &'a [String],
    pub(crate) body: &'a str,
}

impl<'a> NoteText<'a> {
    pub(super) fn fields(&self) -> impl Iterator<Item = &'a str> {
        let tags = self.tags.iter().map(|tag| tag.split_once("__").map_or(tag.as_str(), |(_, name)| name));
        self.texts().into_iter().chain(tags)
    }

    /// The texts that are made of sentences.
    pub(crate) fn texts(&self) -> [&'a str; 3] {
        [self.title, self.summary, self.body]
    }
}
