//! Files that are cut and full, and a server that fails.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use vere_units::{ByteSize, Secret};

use super::*;

fn lines(from: u32, to: u32) -> Vec<Bytes> {
    (from..to)
        .map(|number| Bytes::from(format!("{{\"n\":{number}}}")))
        .collect()
}

fn file(folder: &tempfile::TempDir) -> FileOptions {
    FileOptions {
        path: folder.path().join("f.jsonl"),
        size_max: ByteSize::new(40),
    }
}

#[tokio::test]
async fn lines_are_appended_and_full_files_set_aside() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = file(&folder);
    let mut sink = FileSink::new(options.clone());
    for batch in 0..5 {
        sink.take(&lines(batch * 3, batch * 3 + 3))
            .await
            .expect("taken");
    }
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    assert_eq!(read("f.jsonl"), "{\"n\":12}\n{\"n\":13}\n{\"n\":14}\n");
    let listed = fs::read_dir(folder.path()).expect("listed");
    let mut names: Vec<_> = listed
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    names.sort();
    let aside: String = names[1..]
        .iter()
        .map(|name| read(name.to_str().expect("text")))
        .collect();
    let expected: String = (0..12)
        .map(|number| format!("{{\"n\":{number}}}\n"))
        .collect();
    assert_eq!((names.len(), aside), (5, expected));
    // While this one has it, nobody else writes it.
    let mut second = FileSink::new(options.clone());
    let error = second.take(&lines(0, 1)).await.expect_err("locked");
    assert!(error.to_string().contains("another process"), "{error}");
    drop(sink);
    // A process of its own goes on where this one ended.
    let mut next = FileSink::new(FileOptions {
        size_max: ByteSize::kib(1),
        ..options
    });
    next.take(&lines(15, 16)).await.expect("taken");
    assert!(read("f.jsonl").ends_with("{\"n\":14}\n{\"n\":15}\n"));
}

#[tokio::test]
async fn a_file_that_somebody_else_set_aside_is_followed_by_a_new_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = file(&folder);
    let mut sink = FileSink::new(options.clone());
    sink.take(&lines(0, 1)).await.expect("taken");
    fs::rename(&options.path, folder.path().join("aside")).expect("renamed");
    sink.take(&lines(1, 2)).await.expect("taken");
    fs::remove_file(&options.path).expect("removed");
    sink.take(&lines(2, 3)).await.expect("taken");
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).expect("read");
    assert_eq!(read("aside"), "{\"n\":0}\n");
    assert_eq!(read("f.jsonl"), "{\"n\":2}\n");
}

#[tokio::test]
async fn an_unfinished_line_of_a_crash_is_cut() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = FileOptions {
        size_max: ByteSize::mib(1),
        ..file(&folder)
    };
    for (before, kept) in [
        ("{\"n\":0}\n{\"n\"", "{\"n\":0}\n"),
        ("{\"half", ""),
        ("", ""),
    ] {
        fs::write(&options.path, before).expect("written");
        FileSink::new(options.clone())
            .take(&lines(1, 2))
            .await
            .expect("taken");
        let text = fs::read_to_string(&options.path).expect("read");
        assert_eq!(text, format!("{kept}{{\"n\":1}}\n"), "{before:?}");
    }
}

#[tokio::test]
async fn what_cannot_be_written_is_offered_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path: PathBuf = folder.path().join("later/f.jsonl");
    let mut sink = FileSink::new(FileOptions {
        path: path.clone(),
        ..file(&folder)
    });
    let error = sink.take(&lines(0, 1)).await.expect_err("no folder");
    assert!(error.to_string().contains("later/f.jsonl: "), "{error}");
    fs::create_dir(path.parent().expect("a folder")).expect("made");
    sink.take(&lines(0, 1)).await.expect("taken");
    assert_eq!(fs::read_to_string(path).expect("read"), "{\"n\":0}\n");
}

/// Answers posts in turn with these statuses, and gives what was posted: signature and body.
fn server(
    answers: &'static [&'static str],
) -> (String, std::thread::JoinHandle<Vec<(String, String)>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/hook", listener.local_addr().expect("bound"));
    let serve = move || {
        let mut posted = Vec::new();
        for answer in answers {
            let (stream, _) = listener.accept().expect("a client");
            let mut reader = BufReader::new(stream);
            let (mut signature, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).expect("a line");
                let line = line.trim_end();
                if line.is_empty() {
                    break;
                }
                let (name, value) = line.split_once(": ").unwrap_or((line, ""));
                match name {
                    "vere-signature" => signature = value.to_owned(),
                    "content-length" => length = value.parse().expect("a number"),
                    _ => {}
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).expect("the body");
            posted.push((signature, String::from_utf8(body).expect("text")));
            let head =
                format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            reader
                .get_mut()
                .write_all(head.as_bytes())
                .expect("answered");
        }
        posted
    };
    (url, std::thread::spawn(serve))
}

#[tokio::test]
async fn posts_are_signed_and_failures_told() {
    let (url, server) = server(&["500 No", "204 Yes"]);
    let mut sink = WebhookSink::new(WebhookOptions {
        url,
        ca: None,
        key: Secret::new("key".to_owned()),
        timeout: Duration::from_secs(60),
    })
    .expect("a sink");
    let error = sink.take(&lines(0, 2)).await.expect_err("refused");
    assert!(error.to_string().contains("500"), "{error}");
    sink.take(&lines(0, 2)).await.expect("taken");
    for (given, body) in server.join().expect("served") {
        assert_eq!(body, "{\"n\":0}\n{\"n\":1}\n");
        let seconds = given
            .strip_prefix("t=")
            .and_then(|rest| rest.split_once(','));
        let seconds = seconds.expect("a time").0.parse().expect("a number");
        assert_eq!(given, signature("key", seconds, body.as_bytes()));
        assert_ne!(given, signature("other", seconds, body.as_bytes()));
    }
    // Nobody listens any more.
    assert!(sink.take(&lines(0, 1)).await.is_err());
}

#[test]
fn a_file_without_authorities_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ca.pem");
    let sink = || {
        WebhookSink::new(WebhookOptions {
            url: "https://hook.example.net/".to_owned(),
            ca: Some(path.clone()),
            key: Secret::new("key".to_owned()),
            timeout: Duration::from_secs(60),
        })
    };
    let problem = || sink().expect_err("no authority").to_string();
    assert!(problem().contains("ca.pem: "), "{}", problem());
    fs::write(&path, "nothing of the kind").expect("written");
    assert!(problem().contains("holds no certificate"), "{}", problem());
    fs::write(
        &path,
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    )
    .expect("written");
    assert!(problem().contains("ca.pem: "), "{}", problem());
}

#[test]
fn a_signature_is_hmac_sha_256() {
    // As `printf 5.x | openssl dgst -sha256 -hmac key` has it.
    let expected = "t=5,v1=2c7695aa0c0479a630582c4c5bc8d12a781525723e11738d8cc5347468f81d9a";
    assert_eq!(signature("key", 5, b"x"), expected);
}
