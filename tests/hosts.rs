//! What a host in Rust relies on: its own storage does for all that files do.

#[path = "../examples/storage.rs"]
mod storage;

#[test]
fn the_storage_of_the_example_conforms() {
    axe::conformance(storage::Memory::default).unwrap();
}

#[test]
fn a_storage_that_loses_what_it_is_given_does_not() {
    use axe::notes::{Broken, Persistence, Revision};
    struct Lossy(storage::Memory);
    impl Persistence for Lossy {
        type Lock = storage::Held;

        fn lock(&self) -> axe::Result<storage::Held> {
            self.0.lock()
        }

        fn names(&self, dir: &str, end: &str) -> axe::Result<Vec<std::ffi::OsString>> {
            self.0.names(dir, end)
        }

        fn bytes(&self, path: &std::path::Path) -> Result<Option<Vec<u8>>, Broken> {
            self.0.bytes(path)
        }

        /// One by one, so a change that fails is half made.
        fn write(&self, lock: &storage::Held, change: &[Revision]) -> axe::Result<()> {
            change.iter().try_for_each(|revision| self.0.write(lock, std::slice::from_ref(revision)))
        }
    }
    let error = axe::conformance(|| Lossy(storage::Memory::default())).unwrap_err();
    assert!(error.message().contains("a change that fails has done nothing"), "{}", error.message());
}
