use super::*;

fn read(pairs: &[(&str, &str)]) -> Result<(Settings, Vec<Warning>), SettingError> {
    Settings::read(pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())))
}

#[test]
fn an_empty_environment_gives_the_defaults_of_the_table() {
    let (settings, warnings) =
        read(&[("PATH", "/bin"), ("LINEWEAVE_ROOT", "/opt")]).expect("nothing to object to");
    assert_eq!(settings, Settings::default());
    assert!(warnings.is_empty());
    assert!(settings.rows.iter().all(|r| r.origin == Origin::Default));
    // The table's text and the values agree, where the text is a value.
    for name in ["LINEWEAVE_WAIT", "LINEWEAVE_TOPOLOGY", "LINEWEAVE_BOX_BYTES", "LINEWEAVE_CHECK"]
        .into_iter()
        .chain(["LINEWEAVE_BIND", "LINEWEAVE_TIMEOUT"])
    {
        let variable = VARIABLES.iter().find(|v| v.name == name).expect("a known name");
        let (given, _) = read(&[(name, variable.default)]).expect("a default is a value");
        assert_eq!(Settings { rows: Settings::default().rows, ..given }, Settings::default(), "{name}");
    }
}

#[test]
fn every_value_is_read_and_its_origin_kept() {
    let (settings, warnings) = read(&[
        ("LINEWEAVE_WAIT", "yield"),
        ("LINEWEAVE_PROFILE", "/tmp/profile.json"),
        ("LINEWEAVE_PROFILE_OPTIONAL", "1"),
        ("LINEWEAVE_TOPOLOGY", "pack:2 core:4"),
        ("LINEWEAVE_BOX_BYTES", "64KiB"),
        ("LINEWEAVE_CHECK", "1"),
        ("LINEWEAVE_KEEP_PLANS", "0"),
        ("LINEWEAVE_CMA", "off"),
        ("LINEWEAVE_REPRODUCIBLE", "1"),
        ("LINEWEAVE_PROGRESS_THREAD", "1"),
        ("LINEWEAVE_BIND", "3,0-1"),
        ("LINEWEAVE_TIMEOUT", "0.5"),
        ("LINEWEAVE_STOP_TIMEOUT", "2s"),
        ("LINEWEAVE_CHOOSE", "within"),
        ("LINEWEAVE_ALGORITHM", "bcast=binomial"),
        ("LINEWEAVE_QUIET", "1"),
        ("LINEWEAVE_OPENMP", "0"),
        ("LINEWEAVE_OPENMP_RACE", "0"),
        ("LINEWEAVE_RANKS_PER_NODE", "2"),
        ("LINEWEAVE_MPI_LEADERS", "2"),
        ("LINEWEAVE_MPI_TRACE_CALLS", "1000"),
        ("LINEWEAVE_MPI_AFTER", "0"),
        ("LINEWEAVE_MPI_FORM", "beside"),
        ("LINEWEAVE_MPI_RACE", "0"),
    ])
    .expect("every value is right");
    assert!(warnings.is_empty());
    assert_eq!(settings.wait, Wait::Yield);
    assert_eq!(settings.profile, Some(PathBuf::from("/tmp/profile.json")));
    assert_eq!(settings.topology, Source::Synthetic("pack:2 core:4".to_owned()));
    assert_eq!(settings.box_bytes, 65_536);
    assert!(
        settings.check
            && settings.reproducible
            && settings.threads.progress
            && !settings.threads.choose
            && settings.run.quiet
            && settings.run.profile_optional
            && !settings.run.openmp
            && !settings.keep_plans
    );
    assert_eq!(settings.bind, Bind::Cpus(vec![3, 0, 1]), "ranks take CPUs in the order given");
    assert_eq!(settings.timeout, Some(Duration::from_millis(500)));
    assert_eq!(settings.stop_timeout, Some(Duration::from_secs(2)));
    assert_eq!(settings.algorithms[0].algorithm, "binomial");
    assert!(settings.rows.iter().all(|r| r.origin == Origin::Environment));
    let row = |name: &str| settings.rows.iter().find(|r| r.name == name).map(|r| r.value.as_str());
    assert_eq!(row("LINEWEAVE_BOX_BYTES"), Some("64KiB"));
}

#[test]
fn sizes_are_written_as_on_the_command_line() {
    for (text, bytes) in [("64k", 64 << 10), ("1.5MiB", 3 << 19), ("64 kB", 64_000), ("65536", 64 << 10)] {
        let (settings, _) = read(&[("LINEWEAVE_BOX_BYTES", text)]).expect(text);
        assert_eq!(settings.box_bytes, bytes, "{text}");
    }
}

#[test]
fn a_malformed_value_is_named_with_what_was_expected() {
    for (name, value, found) in [
        ("LINEWEAVE_WAIT", "busy", "`busy`"),
        ("LINEWEAVE_BOX_BYTES", "4MX", "unit `MX`"),
        ("LINEWEAVE_BOX_BYTES", "4096.5", "no whole number"),
        ("LINEWEAVE_BOX_BYTES", "12", "too small"),
        ("LINEWEAVE_BOX_BYTES", "99999999999GiB", "too large"),
        ("LINEWEAVE_BOX_BYTES", "-1", "unit `-1`"),
        ("LINEWEAVE_CHECK", "yes", "`yes`"),
        ("LINEWEAVE_CMA", "perhaps", "`perhaps`"),
        ("LINEWEAVE_BIND", "0-x", "`0-x`"),
        ("LINEWEAVE_BIND", ",", "no CPU"),
        ("LINEWEAVE_TIMEOUT", "-3", "-3 seconds"),
        ("LINEWEAVE_TIMEOUT", "0", "0 seconds"),
        ("LINEWEAVE_TIMEOUT", "NaN", "NaN seconds"),
        ("LINEWEAVE_ALGORITHM", "bcast", "no `=`"),
        ("LINEWEAVE_ALGORITHM", "gossip=ring", "none of barrier"),
        ("LINEWEAVE_ALGORITHM", "allredcue=ring", "(did you mean `allreduce`?)"),
        ("LINEWEAVE_ALGORITHM", "bcast=pigeon", "pigeon"),
        ("LINEWEAVE_ALGORITHM", "bcast=binomial(feathers=2)", "`feathers`"),
        ("LINEWEAVE_ALGORITHM", "bcast=binomial(", "without its `)`"),
        ("LINEWEAVE_ALGORITHM", "bcast=binomial;bcast=binomial", "two algorithms"),
        ("LINEWEAVE_ALGORITHM", ";", "no algorithm"),
    ] {
        let error = read(&[(name, value)]).expect_err(value);
        assert_eq!((error.name, error.value.as_str()), (name, value));
        assert!(error.found.contains(found), "{error}");
        assert!(error.to_string().contains("expected"), "{error}");
    }
}

#[test]
fn what_has_no_effect_is_warned_about() {
    let (settings, warnings) =
        read(&[("LINEWEAVE_WIAT", "spin"), ("LINEWEAVE_CHECK", " "), ("LINEWEAVE_BOXBYTES", "1")])
            .expect("only warnings");
    assert_eq!(settings, Settings::default());
    assert_eq!(
        warnings,
        vec![
            Warning::Empty { name: "LINEWEAVE_CHECK" },
            Warning::Unknown { name: "LINEWEAVE_BOXBYTES".into(), nearest: "LINEWEAVE_BOX_BYTES" },
            Warning::Unknown { name: "LINEWEAVE_WIAT".into(), nearest: "LINEWEAVE_WAIT" },
        ]
    );
    assert!(warnings[2].to_string().contains("the nearest is LINEWEAVE_WAIT"));
}

#[test]
fn a_value_of_any_length_is_repeated_in_a_few_words() {
    let long = "\u{e4}".repeat(100_000);
    let error = read(&[("LINEWEAVE_WAIT", &long)]).unwrap_err().to_string();
    assert!(error.contains("... (200000 bytes)") && error.len() < 2000, "{error}");
}

#[test]
fn ranks_are_pinned_while_each_has_a_cpu() {
    let usable = [2, 3, 5];
    assert_eq!(Bind::Auto.place(2, &usable, 3), vec![Some(2), Some(3)]);
    let shared = [2, 2, 3, 5].map(Some).to_vec();
    assert_eq!(Bind::Auto.place(4, &[2, 3, 5], 3), shared, "neighbours share a CPU");
    assert_eq!(Bind::Auto.place(3, &usable, 1), vec![None; 3], "more ranks than the quota keeps busy");
    assert_eq!(Bind::Auto.place(1, &usable, 1), vec![Some(2)]);
    assert_eq!(Bind::None.place(1, &usable, 3), vec![None]);
    assert_eq!(Bind::Cpus(vec![7, 1]).place(3, &usable, 3), vec![Some(7), Some(1), Some(7)]);
}
