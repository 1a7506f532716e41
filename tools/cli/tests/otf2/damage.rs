//! Archives that are damaged, cut, or left by a command that was killed: none is accepted
//! silently.

use super::*;

/// Returns the number of cases: all of them in a long run.
fn cases(all: usize) -> usize {
    if std::env::var_os("DOWNBEAT_LONG").is_some() {
        all
    } else {
        all / 50
    }
}

/// Asserts that `check` refuses an archive, or tells that it was changed. Returns the reason of a
/// refusal.
fn is_noticed(folder: &ArchiveFolder, anchor: &str, damage: &str) -> Option<String> {
    let output = folder.call(&format!("check {anchor}"));
    let said = String::from_utf8_lossy(&output.stderr);
    let is_told = match output.status.code() {
        // Damage may also be a violation.
        Some(1) => String::from_utf8_lossy(&output.stdout).contains("its checksum is wrong"),
        code => code == Some(2),
    };
    assert!(
        is_told && said.lines().count() == 1,
        "{damage}: {} {said}",
        output.status
    );
    (output.status.code() == Some(2)).then(|| said.into_owned())
}

#[test]
fn no_flipped_bit_is_accepted_silently() {
    let folder = ArchiveFolder::new("flips");
    folder.says("generate -o a --nodes 2 --processes 2 --events 300 --truth truth");
    let files = contents(&folder.path("truth"));
    let all: usize = files.iter().map(|(_, content)| content.len()).sum();
    let mut rng = fastrand::Rng::with_seed(3_000);
    for _ in 0..cases(3_000) {
        let mut at = rng.usize(..all);
        let file = files.iter().find(|(_, content)| {
            let is_here = at < content.len();
            at -= if is_here { 0 } else { content.len() };
            is_here
        });
        let (path, content) = file.unwrap();
        let bit = rng.u8(..8);
        let mut damaged = content.clone();
        damaged[at] ^= 1 << bit;
        fs::write(path, damaged).unwrap();
        let damage = format!("bit {bit} of byte {at} of {}", path.display());
        let refused = is_noticed(&folder, "truth/traces.otf2", &damage);
        // Nothing can be known of an anchor file that states no checksums any more.
        if let Some(why) = refused.filter(|_| !path.ends_with("traces.otf2")) {
            assert!(why.contains("; the checksum of "), "{damage}: {why}");
        }
        fs::write(path, content).unwrap();
    }
    folder.says("check truth/traces.otf2");
}

#[test]
fn damage_of_a_second_archive_is_told() {
    let folder = ArchiveFolder::new("second");
    folder.says("generate -o a --nodes 2 --events 300 --truth truth");
    let (path, content) = contents(&folder.path("truth")).pop().unwrap();
    // The first bit that leaves an archive with other content.
    let is_changed = (0..content.len()).any(|at| {
        let mut damaged = content.clone();
        damaged[at] ^= 1;
        fs::write(&path, damaged).unwrap();
        folder.call("check truth").status.code() == Some(1)
    });
    assert!(is_changed);
    let file = format!(
        "{}: its checksum is wrong",
        path.file_name().unwrap().display()
    );
    let output = folder.call("correct a -o b --truth truth");
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains(&file));
    folder.says("correct a -o c");
    fs::remove_dir_all(folder.path("a")).unwrap();
    fs::rename(folder.path("truth"), folder.path("a")).unwrap();
    let output = folder.call("check c --against a");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains(&file));
}

#[test]
fn an_unreadable_archive_is_explained_by_its_damage() {
    let folder = ArchiveFolder::new("unreadable");
    folder.says("generate -o a --nodes 2 --events 300");
    let events = folder.path("a/traces/1.evt");
    let content = fs::read(&events).unwrap();
    fs::write(&events, &content[..content.len() - 9]).unwrap();
    for command in ["check a", "correct a -o b", "waits a", "convert a c.dbt"] {
        let output = folder.call(command);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command}: {said}");
        let end = "; the checksum of a/traces/1.evt is wrong\n";
        assert!(said.ends_with(end), "{command}: {said}");
    }
    // A file that is missing is told once.
    fs::write(&events, content).unwrap();
    fs::remove_file(folder.path("a/traces/0.evt")).unwrap();
    for command in ["check a", "waits a"] {
        let output = folder.call(command);
        let said = String::from_utf8_lossy(&output.stderr);
        let line = "downbeat: a/traces/0.evt: No such file or directory (os error 2)\n";
        assert_eq!(said, line, "{command}");
    }
}

/// Archives of ours, and of OTF2's library, which have no checksums.
#[test]
fn no_cut_or_longer_archive_is_accepted_silently() {
    let folder = ArchiveFolder::new("cuts")
        .with_archive("plain", 1_000_000_000, 3)
        .with_archive("requests", 1_000_000_000, 3);
    folder.says("generate -o a --nodes 2 --events 300 --truth truth");
    // Not damaged, they are accepted; those of the library have violations.
    for (name, code) in [("truth", 0), ("plain", 1), ("requests", 1)] {
        let output = folder.call(&format!("check {name}/traces.otf2"));
        assert_eq!(output.status.code(), Some(code), "{name}");
    }
    let mut rng = fastrand::Rng::with_seed(500);
    for case in 0..cases(500) {
        let name = ["truth", "plain", "requests"][case % 3];
        let mut files = contents(&folder.path(name));
        files.retain(|(_, content)| !content.is_empty());
        let (path, content) = &files[rng.usize(..files.len())];
        let kind = rng.u8(..4);
        match kind {
            0 => fs::write(path, &content[..rng.usize(..content.len() - 1)]).unwrap(),
            1 => fs::write(path, &content[..content.len() - 1]).unwrap(),
            2 => {
                let more = vec![rng.u8(..); rng.usize(1..40)];
                fs::write(path, [content.as_slice(), &more].concat()).unwrap();
            }
            _ => fs::remove_file(path).unwrap(),
        }
        let damage = format!("kind {kind}, {}", path.display());
        is_noticed(&folder, &format!("{name}/traces.otf2"), &damage);
        fs::write(path, content).unwrap();
    }
}

/// Kills commands at any moment: they leave no archive, or the whole one.
#[test]
fn a_killed_command_leaves_no_archive_that_is_not_whole() {
    let folder = ArchiveFolder::new("killed");
    folder.says("generate -o a --nodes 2 --processes 2 --events 4000");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../measure/recording/tests/golden/version-1");
    fs::create_dir(folder.path("run")).unwrap();
    for rank in ["rank-0.dbrank", "rank-1.dbrank"] {
        fs::copy(golden.join(rank), folder.path("run").join(rank)).unwrap();
    }
    let mut rng = fastrand::Rng::with_seed(9);
    for arguments in ["merge run -o out", "correct a -o out"] {
        let begin = Instant::now();
        folder.says(arguments);
        let whole = begin.elapsed();
        let expected = contents(&folder.path("out"));
        fs::remove_dir_all(folder.path("out")).unwrap();
        for _ in 0..cases(100).max(5) {
            let moment = whole.mul_f64(1.2 * rng.f64());
            let mut child = folder.command(arguments).stdout(Stdio::null()).spawn();
            let child = child.as_mut().unwrap();
            thread::sleep(moment);
            child.kill().unwrap();
            child.wait().unwrap();
            let out = folder.path("out");
            let is_whole = !out.exists() || contents(&out) == expected;
            assert!(is_whole, "{arguments}, killed after {moment:?}");
            for entry in fs::read_dir(&folder.0).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                if name == "a" || name == "run" {
                    continue;
                }
                if path.is_dir() {
                    fs::remove_dir_all(path).unwrap();
                } else {
                    fs::remove_file(path).unwrap();
                }
            }
        }
    }
}
