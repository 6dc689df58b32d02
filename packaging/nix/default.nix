# nix-build -E 'with import <nixpkgs> { }; callPackage ./packaging/nix { }'
{ lib, rustPlatform, rustc }:

let
  workspace = (lib.importTOML ../../Cargo.toml).workspace.package;
in
assert lib.assertMsg (lib.versionAtLeast rustc.version workspace.rust-version)
  "lineweave needs Rust ${workspace.rust-version} or later, and this nixpkgs has ${rustc.version}";

rustPlatform.buildRustPackage {
  pname = "lineweave";
  inherit (workspace) version;

  src = lib.cleanSource ../..;
  # All crates are fetched beforehand, by the hashes of this file: the build has no network.
  cargoLock.lockFile = ../../Cargo.lock;

  # A sandbox has no /usr/bin/env.
  postPatch = ''
    patchShebangs mpi/build openmp/build scripts
  '';

  # Steps of `make install`, in place of those of buildRustPackage, which build for a folder of another name. `-o setup` leaves
  # out the check for missing distribution packages.
  buildPhase = ''
    runHook preBuild
    make -o setup mpi
    runHook postBuild
  '';
  installPhase = ''
    runHook preInstall
    scripts/install "$out"
    runHook postInstall
  '';

  # Tests take half an hour; `make test` runs them.
  doCheck = false;
  doInstallCheck = true;
  installCheckPhase = ''
    runHook preInstallCheck
    XDG_CACHE_HOME=$PWD/.cargo/no-cache $out/bin/lineweave verify bcast/binomial --max-ranks 8
    runHook postInstallCheck
  '';

  meta = {
    description = "Collective operations among the threads or processes of one machine, chosen for that machine";
    homepage = workspace.repository;
    license = with lib.licenses; [ mit asl20 ];
    mainProgram = "lineweave";
    platforms = [ "x86_64-linux" "aarch64-linux" ];
  };
}
