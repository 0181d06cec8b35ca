//! The tree that programs have made, call by call.

use std::collections::BTreeMap;

use bytes::Bytes;

/// Every path with the content of its file; folders end with `/` and have none.
pub(super) type Seen = BTreeMap<String, Bytes>;

/// What programs have made.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    folders: Vec<String>,
    names: BTreeMap<String, u64>,
    contents: BTreeMap<u64, Bytes>,
    last: u64,
}

impl Model {
    pub(super) fn seen(&self) -> Seen {
        let folders = self.folders.iter();
        let folders = folders.map(|path| (format!("{path}/"), Bytes::new()));
        let files = self.names.iter();
        folders
            .chain(files.map(|(path, id)| (path.clone(), self.contents[id].clone())))
            .collect()
    }

    pub(super) fn has_folder(&self, path: &str) -> bool {
        path.is_empty() || self.folders.iter().any(|folder| folder == path)
    }

    pub(super) fn is_free(&self, path: &str) -> bool {
        !self.has_folder(path) && !self.names.contains_key(path)
    }

    pub(super) fn is_empty(&self, folder: &str) -> bool {
        let begin = format!("{folder}/");
        let mut all = self.folders.iter().chain(self.names.keys());
        !all.any(|path| path.starts_with(&begin))
    }

    pub(super) fn content(&self, path: &str) -> Option<&Bytes> {
        self.contents.get(self.names.get(path)?)
    }

    pub(super) fn are_one(&self, one: &str, other: &str) -> bool {
        self.names.get(one) == self.names.get(other)
    }

    pub(super) fn make_folder(&mut self, path: &str) {
        self.folders.push(path.to_owned());
    }

    pub(super) fn remove_folder(&mut self, path: &str) {
        self.folders.retain(|folder| folder != path);
    }

    pub(super) fn create(&mut self, path: &str) {
        self.last += 1;
        self.names.insert(path.to_owned(), self.last);
        self.contents.insert(self.last, Bytes::new());
    }

    pub(super) fn change(&mut self, path: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let id = self.names[path];
        let mut content = self.contents[&id].to_vec();
        change(&mut content);
        self.contents.insert(id, content.into());
    }

    pub(super) fn link(&mut self, from: &str, to: &str) {
        let id = self.names[from];
        self.names.insert(to.to_owned(), id);
    }

    pub(super) fn unlink(&mut self, path: &str) {
        self.names.remove(path);
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) {
        let id = self.names.remove(from).unwrap();
        self.names.insert(to.to_owned(), id);
    }
}
