# `pkgs.axe`, built with the nixpkgs that it is put over.
final: _: {
  axe = final.callPackage ./package.nix { };
}
