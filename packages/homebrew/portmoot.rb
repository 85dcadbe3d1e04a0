# A formula for Homebrew. `packages/release` writes the version and the hashes of its archives.
class Portmoot < Formula
  desc "Gateway for MCP servers and agents"
  homepage "https://example.invalid/portmoot"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "https://example.invalid/portmoot/releases/portmoot-@VERSION@-aarch64-apple-darwin.tar.gz"
      sha256 "@SHA256:aarch64-apple-darwin@"
    end
    on_intel do
      url "https://example.invalid/portmoot/releases/portmoot-@VERSION@-x86_64-apple-darwin.tar.gz"
      sha256 "@SHA256:x86_64-apple-darwin@"
    end
  end

  on_linux do
    on_arm do
      url "https://example.invalid/portmoot/releases/portmoot-@VERSION@-aarch64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256:aarch64-unknown-linux-musl@"
    end
    on_intel do
      url "https://example.invalid/portmoot/releases/portmoot-@VERSION@-x86_64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256:x86_64-unknown-linux-musl@"
    end
  end

  def install
    bin.install "portmoot"
    generate_completions_from_executable(bin/"portmoot", "completions")
    (man1/"portmoot.1").write Utils.safe_popen_read(bin/"portmoot", "man")
  end

  service do
    run [opt_bin/"portmoot", "serve"]
    keep_alive true
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/portmoot --version")
  end
end
