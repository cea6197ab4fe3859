package main

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

const minutesToPack = "it builds the collector several times"

// must runs a program in the root of the checkout and returns what it prints.
func must(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = "../.."
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// only returns the one file of a pattern.
func only(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v %v", pattern, found, err)
	}
	return found[0]
}

// served runs a collector until the test stops it, and returns once it is ready.
func served(t *testing.T, cmd *exec.Cmd, addr string) (stop func()) {
	t.Helper()
	var said testkit.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	testkit.OK(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			t.Fatalf("%v\n%s", err, said.String())
		case <-time.After(20 * time.Millisecond):
		}
		if resp, err := http.Get("http://" + addr + "/readyz"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				break
			}
		}
	}
	return func() {
		t.Helper()
		testkit.OK(t, cmd.Process.Signal(syscall.SIGTERM))
		if err := <-ended; err != nil {
			t.Errorf("%v\n%s", err, said.String())
		}
	}
}

// The image is what another reader of OCI layouts takes for one, with the platforms it
// names. Its program runs with nothing else of a system there, and not as root.
func TestImage(t *testing.T) {
	testkit.Nightly(t, testkit.Engines, minutesToPack)
	skopeo := testkit.Program(t, "skopeo")
	testkit.Program(t, "umoci")
	if os.Geteuid() != 0 {
		testkit.Missing(t, "root, for a chroot")
	}
	dir := t.TempDir()
	must(t, "scripts/package", "-o", dir, "-v", "1.2.3~test", "oci")
	archive := only(t, dir+"/*.oci.tar")
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		out := filepath.Join(dir, arch)
		// It compares each digest and size on its way.
		must(t, skopeo, "--insecure-policy", "copy", "-q", "--override-arch", arch, "oci-archive:"+archive, "dir:"+out)
		var manifest struct {
			Config struct{ Digest string }
			Layers []struct{ Digest string }
		}
		text, err := os.ReadFile(out + "/manifest.json")
		testkit.OK(t, err)
		testkit.OK(t, json.Unmarshal(text, &manifest))
		blob := func(digest string) string { return out + "/" + strings.TrimPrefix(digest, "sha256:") }
		var image struct {
			Architecture, OS string
			Config           struct {
				User, StopSignal string
				Entrypoint, Cmd  []string
			}
		}
		text, err = os.ReadFile(blob(manifest.Config.Digest))
		testkit.OK(t, err)
		testkit.OK(t, json.Unmarshal(text, &image))
		if c := image.Config; image.Architecture != arch || image.OS != "linux" || c.User != "65532:65532" || c.StopSignal != "SIGTERM" || len(manifest.Layers) != 1 {
			t.Errorf("%s: %+v, %+v", arch, image, manifest)
		}
		root := filepath.Join(out, "root")
		testkit.OK(t, os.Mkdir(root, 0o755))
		must(t, "tar", "-C", root, "-xzf", blob(manifest.Layers[0].Digest))
		program, err := elf.Open(filepath.Join(root, "rollway"))
		testkit.OK(t, err)
		if libraries, err := program.ImportedLibraries(); err != nil || len(libraries) > 0 || program.Machine != machine {
			t.Errorf("%s: %v %v, for %v", arch, libraries, err, program.Machine)
		}
		program.Close()
		if arch != runtime.GOARCH {
			continue
		}
		addr, err := testkit.FreeAddr()
		testkit.OK(t, err)
		line := append(image.Config.Entrypoint, image.Config.Cmd...)
		line[slices.Index(line, "-listen")+1] = addr
		cmd := &exec.Cmd{Path: line[0], Args: line, Dir: "/", Env: []string{}, SysProcAttr: &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}}
		served(t, cmd, addr)()
	}

	// The reader does compare: a layout with a byte changed is refused.
	text, err := os.ReadFile(archive)
	testkit.OK(t, err)
	text[len(text)/2] ^= 1
	testkit.OK(t, os.WriteFile(archive, text, 0o600))
	if out, err := exec.Command(skopeo, "--insecure-policy", "copy", "-q", "--all", "oci-archive:"+archive, "dir:"+dir+"/changed").CombinedOutput(); err == nil {
		t.Errorf("taken with a byte changed\n%s", out)
	}
}

// oldRelease is what the package is upgraded from, as 0.1.0.
const oldRelease = "4f79d22"

// debianRoot unpacks a Debian with nothing but what every Debian has.
func debianRoot(t *testing.T) string {
	t.Helper()
	program := testkit.Program(t, "mmdebstrap")
	var sources []string
	for _, pattern := range []string{"/etc/apt/sources.list", "/etc/apt/sources.list.d/*"} {
		found, err := filepath.Glob(pattern)
		testkit.OK(t, err)
		sources = append(sources, found...)
	}
	cache := testkit.Fetched(t, "debian", []string{"bookworm", "minbase", "adduser"}, func(dir string) *exec.Cmd {
		return exec.Command(program, append([]string{"--variant=minbase", "--include=adduser", "--quiet",
			"--setup-hook=mkdir -p \"$1\"/etc/apt/apt.conf.d && cp -a /etc/apt/apt.conf.d/. \"$1\"/etc/apt/apt.conf.d",
			"bookworm", filepath.Join(dir, "root.tar")}, sources...)...)
	})
	root := filepath.Join(t.TempDir(), "root")
	testkit.OK(t, os.Mkdir(root, 0o755))
	must(t, "tar", "-C", root, "--exclude=./dev/*", "-xf", filepath.Join(cache, "root.tar"))
	testkit.OK(t, os.WriteFile(filepath.Join(root, "dev/null"), nil, 0o666))
	return root
}

// The package is installed, upgraded and removed in a clean Debian: the collector runs as a
// user of its own, refuses data that it cannot read, and keeps its data over a purge.
func TestDebian(t *testing.T) {
	testkit.Nightly(t, testkit.Engines, minutesToPack)
	if os.Geteuid() != 0 {
		testkit.Missing(t, "root, for a chroot")
	}
	root := debianRoot(t)
	debs := filepath.Join(root, "debs")
	old := filepath.Join(t.TempDir(), "old")
	must(t, "git", "worktree", "add", "-q", "--detach", old, oldRelease)
	defer must(t, "git", "worktree", "remove", "--force", old)
	bin := filepath.Join(t.TempDir(), runtime.GOARCH)
	build := exec.Command("go", "build", "-o", bin+"/rollway", "./cmd/rollway")
	build.Dir, build.Env = filepath.Join(old, "collector"), append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	must(t, "scripts/package", "-o", debs, "-v", "0.1.0", "-a", runtime.GOARCH, "-b", filepath.Dir(bin), "deb")
	must(t, "scripts/package", "-o", debs, "-v", "0.2.0", "-a", runtime.GOARCH, "deb")
	inside := func(args ...string) *exec.Cmd {
		cmd := exec.Command("chroot", append([]string{root}, args...)...)
		cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive"}
		return cmd
	}
	run := func(args ...string) string {
		t.Helper()
		out, err := inside(args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	in := func(path string) string { return filepath.Join(root, path) }
	gone := func(path string, want bool) {
		t.Helper()
		if _, err := os.Lstat(in(path)); os.IsNotExist(err) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	addr, err := testkit.FreeAddr()
	testkit.OK(t, err)
	serve := func() (stop func()) {
		t.Helper()
		return served(t, inside("setpriv", "--reuid=rollway", "--regid=rollway", "--clear-groups", "rollway", "serve", "-config", "/etc/rollway/rollway.yaml", "-listen", addr), addr)
	}

	run("dpkg", "-i", "/debs/rollway_0.1.0_"+runtime.GOARCH+".deb")
	if said := run("stat", "-c", "%U:%G %a", "/var/lib/rollway"); said != "rollway:rollway 700\n" {
		t.Errorf("the data folder is %s", said)
	}
	if said := run("dpkg-query", "-W", "-f", "${Conffiles}", "rollway"); !strings.Contains(said, " /etc/rollway/rollway.yaml ") {
		t.Errorf("files of configuration: %s", said)
	}
	stop := serve()
	const lines = 1000
	var body bytes.Buffer
	for i := range lines {
		fmt.Fprintf(&body, "{\"msg\":\"line %d\"}\n", i)
	}
	resp, err := http.Post("http://"+addr+"/api/logs", "", &body)
	testkit.OK(t, err)
	resp.Body.Close()
	stop()

	testkit.OK(t, os.WriteFile(in("/etc/rollway/rollway.yaml"), []byte("data: /var/lib/rollway\n# mine\n"), 0o644))
	// What 0.1.0 stored is refused with a sentence, and 0.1.0 still has it.
	upgrade := []string{"dpkg", "-i", "/debs/rollway_0.2.0_" + runtime.GOARCH + ".deb"}
	if out, err := inside(upgrade...).CombinedOutput(); err == nil || !strings.Contains(string(out), "cannot read the journal that 0.1.0 wrote") {
		t.Errorf("the upgrade is not refused: %v\n%s", err, out)
	}
	stop = serve()
	resp, err = http.Get("http://" + addr + "/api/query?q=line")
	testkit.OK(t, err)
	found, err := io.ReadAll(resp.Body)
	testkit.OK(t, err)
	resp.Body.Close()
	stop()
	if n := strings.Count(string(found), "\n"); n != lines {
		t.Errorf("after an upgrade that was refused %d of %d lines are found", n, lines)
	}
	testkit.OK(t, os.Rename(in("/var/lib/rollway/journal"), in("/var/lib/rollway/journal-0.1.0")))
	run(upgrade...)
	if text, err := os.ReadFile(in("/etc/rollway/rollway.yaml")); err != nil || !strings.Contains(string(text), "# mine") {
		t.Errorf("the configuration was replaced: %s %v", text, err)
	}
	serve()()

	run("dpkg", "-r", "rollway")
	gone("/usr/bin/rollway", true)
	gone("/etc/rollway/rollway.yaml", false)
	if said := run("dpkg", "-P", "rollway"); !strings.Contains(said, "the logs in /var/lib/rollway are kept") {
		t.Errorf("purge says %s", said)
	}
	gone("/etc/rollway", true)
	gone("/var/lib/rollway/journal", false)
	run("dpkg", "-i", "/debs/rollway_0.2.0_"+runtime.GOARCH+".deb")
	run("env", "ROLLWAY_PURGE=data", "dpkg", "-P", "rollway")
	gone("/var/lib/rollway", true)
}
