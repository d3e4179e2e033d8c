# What nix/package.nix asks of nixpkgs' builder, with the stand-in for lib.
let
  lib = import ./lib.nix // {
    fileset = {
      unions = builtins.concatMap (one: if builtins.isList one then one else [ one ]);
      difference = from: _: [ from ];
      toSource = { fileset, ... }: map toString fileset;
    };
    licenses = {
      mit = "mit";
      asl20 = "asl20";
    };
    platforms = {
      linux = [ "linux" ];
      darwin = [ "darwin" ];
    };
  };
  function = import ../../nix/package.nix;
  names = builtins.attrNames (builtins.functionArgs function);
in
{
  package = function (
    lib.genAttrs names (name: name)
    // {
      inherit lib;
      stdenv = {
        buildPlatform.canExecute = _: true;
        hostPlatform.isLinux = true;
      };
      rustPlatform.buildRustPackage =
        make:
        let
          package = make (package // { finalPackage = "this package"; });
        in
        package;
      testers.testVersion = test: test;
    }
  );
}
