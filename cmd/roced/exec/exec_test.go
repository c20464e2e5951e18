// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/cmd/roced/internal/libraries"
	"github.com/roced/roced/internal/needs"
	"golang.org/x/sys/unix"
)

// newLibraries returns a folder with files that have the names of the libraries.
func newLibraries(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // for the unprivileged user
		t.Fatal(err)
	}
	for _, name := range libraries.Names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(mark), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// newMuslToo returns a folder that also has the libraries for musl.
func newMuslToo(t *testing.T) string {
	t.Helper()
	dir := newLibraries(t)
	if err := os.Rename(newLibraries(t), libraries.Musl(dir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// newForeignLibraries returns a folder with libraries of the same names that are not roced's.
func newForeignLibraries(t *testing.T) string {
	t.Helper()
	dir := newLibraries(t)
	if err := os.WriteFile(filepath.Join(dir, libraries.Names[1]), []byte("ELF"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// ran is the result of a command line of exec.
type ran struct {
	code        int
	out, errOut string
}

// run runs roced exec in its own process, without a service unless the environment names one.
func run(t *testing.T, environment []string, args ...string) ran {
	t.Helper()
	return runChild(cmdtest.Command(t, append([]string{"exec"}, args...)...), t.TempDir(), environment)
}

// runAsNobody is run as the user nobody.
func runAsNobody(t *testing.T, args ...string) ran {
	t.Helper()
	child := cmdtest.Command(t, append([]string{"exec"}, args...)...)
	child.AsNobody(t)
	dir := cmdtest.NobodysDir(t)
	return runChild(child, dir, []string{"TMPDIR=" + dir})
}

func runChild(child *cmdtest.Child, runtimeDir string, environment []string) ran {
	var out bytes.Buffer
	child.Stdout = &out
	child.Env = append(child.Env, "ROCED_SOCKET=", "ROCED_LIBRARIES=", "XDG_RUNTIME_DIR="+runtimeDir)
	child.Env = append(child.Env, environment...)
	_ = child.Cmd.Run()
	return ran{child.ProcessState.ExitCode(), out.String(), child.Said()}
}

// TestHardLimitOfFileSizes: the command reports at its start a limit of file sizes that it cannot raise.
func TestHardLimitOfFileSizes(t *testing.T) {
	t.Parallel()
	libraries := newLibraries(t)
	for limit, want := range map[string]string{"4000000": "roced: programs cannot open a device: memfd of 140737488355328 bytes: file too large: the limit of file sizes is ", "unlimited": ""} {
		c := cmdtest.Command(t)
		c.Path, c.Args = "/bin/sh", []string{"sh", "-c", "ulimit -f " + limit + ` && exec "$0" "$@"`, os.Args[0], "exec", "--network", "loopback", "--libraries", libraries, "true"}
		c.StartWithout(t, unix.CAP_SYS_RESOURCE)
		code, _ := c.End(t)
		if said := c.Said(); code != 0 || !strings.HasPrefix(said, want) || want == "" && said != "" || strings.Count(said, "\n") > 1 {
			t.Errorf("%s: exit code %d, %q", limit, code, said)
		}
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("not a program"), 0o644); err != nil {
		t.Fatal(err)
	}
	rows := map[string]struct {
		args []string
		code int
		said string
	}{
		"it succeeds":           {[]string{"true"}, 0, ""},
		"it fails":              {[]string{"sh", "-c", "exit 17"}, 17, ""},
		"a signal ends it":      {[]string{"sh", "-c", "kill -KILL $$"}, 137, ""},
		"a broken pipe ends it": {[]string{"sh", "-c", "kill -PIPE $$"}, 141, ""},
		"it is not found":       {[]string{"no-such-program"}, exitMissing, "no-such-program: executable file not found"},
		"its path is not found": {[]string{"/no/such/program"}, exitMissing, "no such file"},
		"it is not executable":  {[]string{plain}, exitCannot, "permission denied"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, nil, append([]string{"--libraries", newLibraries(t), "--"}, row.args...)...)
			if got.code != row.code || !strings.Contains(got.errOut, row.said) || row.said == "" && got.errOut != "" {
				t.Errorf("exit code %d, %q; want %d, %q", got.code, got.errOut, row.code, row.said)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		args []string
		code int
		said string
	}{
		"no program":          {nil, 2, "no program given"},
		"no libraries":        {[]string{"--libraries", "/nowhere", "true"}, exitFailed, "make clib"},
		"rdma-core's":         {[]string{"--libraries", newForeignLibraries(t), "true"}, exitFailed, "not roced's"},
		"empty socket":        {[]string{"--socket", "", "true"}, 2, "must be the path of a socket"},
		"unknown network":     {[]string{"--network", "tcp", "true"}, 2, "--network must be loopback, udp or xdp"},
		"no interface":        {[]string{"--network", "udp", "-d", "eth9", "--libraries", newLibraries(t), "true"}, exitFailed, "eth9"},
		"device in memory":    {[]string{"-d", "eth9", "true"}, 2, "--device requires"},
		"hosts over UDP":      {[]string{"--hosts", "2", "--network", "udp", "true"}, 2, "--hosts requires"},
		"hosts":               {[]string{"--hosts", "-1", "true"}, 2, "--hosts must be from 0 to 1000: -1"},
		"delay":               {[]string{"--network", "loopback", "--delay", "-5ms", "true"}, 2, "--delay must not be negative: -5ms"},
		"mark without a rate": {[]string{"--network", "loopback", "--mark", "1ms", "true"}, 2, "requires --rate"},
		"no schedule":         {[]string{"--network", "loopback", "--schedule", "/nowhere", "true"}, 2, "--schedule"},
		"network and service": {[]string{"--network", "loopback", "--socket", "/nowhere", "true"}, 2, "cannot be combined with --socket"},
		"no service":          {[]string{"--libraries", newLibraries(t), "--socket", "/nowhere", "true"}, exitFailed, "reach the service at /nowhere"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := run(t, nil, row.args...); got.code != row.code || !strings.Contains(got.errOut, row.said) {
				t.Errorf("exit code %d, %q; want %d, %q", got.code, got.errOut, row.code, row.said)
			}
		})
	}
}

// TestEnvironment: roced's libraries precede the loader's other directories.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	dir, both := newLibraries(t), newMuslToo(t)
	preload := []string{"--preload"} // the loader reports that the files are not libraries
	rows := map[string]struct {
		dir   string
		flags []string
		shows string
		want  string
	}{
		"path":          {dir, nil, "$LD_LIBRARY_PATH", dir + ":/before"},
		"path, musl":    {both, nil, "$LD_LIBRARY_PATH", both + ";" + both + ":" + both + "/musl:/before"},
		"preload":       {dir, preload, "$LD_PRELOAD", ""},
		"preload, musl": {both, preload, "$LD_PRELOAD", ""},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"--libraries", row.dir}, row.flags...)
			got := run(t, []string{"LD_LIBRARY_PATH=/before"}, append(args, "sh", "-c", "echo "+row.shows)...)
			want := row.want
			if want == "" {
				want = filepath.Join(row.dir, libraries.Names[0]) + ":" + filepath.Join(row.dir, libraries.Names[1])
			}
			if got.code != 0 || strings.TrimSpace(got.out) != want {
				t.Errorf("exit code %d, %q, %q; want %q", got.code, got.out, got.errOut, want)
			}
		})
	}
}

// TestOwnService: a nested command uses the outer one's service, which is removed at the end with its folder.
func TestOwnService(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	dir := newLibraries(t)
	got := run(t, []string{"TMPDIR=" + folder}, "--libraries", dir, "--", os.Args[0], "exec", "--libraries", dir, "sh", "-c", "echo $ROCED_SOCKET; ls "+folder)
	lines := strings.Fields(got.out)
	if got.code != 0 || len(lines) != 2 || filepath.Join(folder, lines[1], "roced.sock") != lines[0] {
		t.Errorf("exit code %d, %q, %q", got.code, got.out, got.errOut)
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestTemporaryFolder: an unusable folder for temporary files is reported by name.
func TestTemporaryFolder(t *testing.T) {
	t.Parallel()
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 90))
	if err := os.Mkdir(long, 0o755); err != nil {
		t.Fatal(err)
	}
	rows := map[string]struct{ dir, said string }{
		"missing":   {"/no/such/folder", "no such file"},
		"no folder": {"/dev/null", "not a directory"},
		"too long":  {long, "the limit of a socket path is 107"},
		"no place":  {"/proc", "no such file"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, []string{"TMPDIR=" + row.dir}, "--network", "loopback", "--libraries", newLibraries(t), "true")
			if got.code != exitFailed || !strings.Contains(got.errOut, row.said) || !strings.Contains(got.errOut, "TMPDIR") {
				t.Errorf("exit code %d, %q", got.code, got.errOut)
			}
		})
	}
	if left, err := os.ReadDir(long); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestSysfs: the program sees the service's devices, and the host's other device classes unchanged; the host does not
// see the devices. For an unprivileged user the command also creates a user namespace.
func TestSysfs(t *testing.T) {
	t.Parallel()
	script := `cd /sys/class && cat infiniband/loop/node_type infiniband/loop/ports/1/state infiniband/loop/ports/1/gids/1 infiniband/loop/ports/1/gid_attrs/types/1 infiniband_verbs/uverbs0/ibdev net/lo/operstate && ` +
		`test -c /dev/infiniband/uverbs0 && test -c /dev/infiniband/rdma_cm && echo x >/dev/null`
	// A folder and a symbolic link in /dev, if the host has them: a plain devtmpfs has no links.
	for name, is := range map[string]string{"shm": "-d", "fd": "-L"} {
		if _, err := os.Lstat("/dev/" + name); err == nil {
			script += " && test " + is + " /dev/" + name
		}
	}
	script += " && id -u"
	want := "1: CA\n4: ACTIVE\n0000:0000:0000:0000:0000:ffff:0a58:0001\nRoCE v2\nloop\nunknown\n"
	args := []string{"--sysfs", "--libraries", newLibraries(t), "sh", "-c", script}
	t.Run("self", func(t *testing.T) {
		user := os.Geteuid()
		if user == 0 {
			needs.Root(t)
		} else {
			needs.UserNamespace(t)
		}
		if got := run(t, nil, args...); got.code != 0 || got.out != fmt.Sprintf("%s%d\n", want, user) {
			t.Errorf("user %d: exit code %d, %q, %q; want %q", user, got.code, got.out, got.errOut, want)
		}
	})
	t.Run("nobody", func(t *testing.T) {
		needs.UserNamespace(t)
		if got := runAsNobody(t, args...); got.code != 0 || got.out != want+"65534\n" {
			t.Errorf("nobody: exit code %d, %q, %q; want %q", got.code, got.out, got.errOut, want)
		}
	})
	if _, err := os.Stat("/sys/class/infiniband/loop"); err == nil {
		t.Error("the host has the device too")
	}
}

// TestSysfsInAChroot: --sysfs works if / is not a mount point.
func TestSysfsInAChroot(t *testing.T) {
	t.Parallel()
	child := cmdtest.Command(t, "exec", "--network", "loopback", "--sysfs", "--libraries", newLibraries(t), "cat", "/sys/class/infiniband/loop/node_type")
	child.StartInAChroot(t)
	if code, out := child.End(t); code != 0 || out != "1: CA\n" {
		t.Errorf("exit code %d, %q, %q", code, out, child.Said())
	}
}

// TestSysfsAddsNoPrivileges: --sysfs does not add privileges to the program.
func TestSysfsAddsNoPrivileges(t *testing.T) {
	t.Parallel()
	needs.UserNamespace(t)
	got := runAsNobody(t, "--sysfs", "--libraries", newLibraries(t), "grep", "-E", "^Cap(Prm|Eff|Inh|Amb)", "/proc/self/status")
	if got.code != 0 || strings.Count(got.out, "0000000000000000") != 4 {
		t.Errorf("exit code %d, %q, %q", got.code, got.out, got.errOut)
	}
}

// TestForeignService: a service of another user, at the place of the user's own service, is not used.
func TestForeignService(t *testing.T) {
	t.Parallel()
	needs.Root(t)
	folder := cmdtest.NobodysDir(t)
	o := &options{}
	s, err := o.openService()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := os.Symlink(s.folder.socket(), filepath.Join(folder, "roced.sock")); err != nil {
		t.Fatal(err)
	}
	got := run(t, []string{"XDG_RUNTIME_DIR=" + folder}, "--libraries", newLibraries(t), "sh", "-c", "echo $ROCED_SOCKET")
	if got.code != 0 || strings.HasPrefix(got.out, folder) {
		t.Errorf("exit code %d, %q, %q", got.code, got.out, got.errOut)
	}
}

// TestInstalledService: the installed service, which runs as its own user in a folder of that user, is used.
func TestInstalledService(t *testing.T) {
	needs.Root(t)
	t.Setenv("ROCED_SOCKET", "")
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	s, err := (&options{}).openService()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	o := &options{installed: filepath.Join(cmdtest.NobodysDir(t), "roced.sock")}
	if err := os.Symlink(s.folder.socket(), o.installed); err != nil {
		t.Fatal(err)
	}
	if found, err := o.findService(); err != nil || found != o.installed {
		t.Errorf("%q, %v", found, err)
	}
}

// TestRelativeSocket: a program that changes its directory still finds the service.
func TestRelativeSocket(t *testing.T) {
	t.Parallel()
	s, err := (&options{}).openService()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	child := cmdtest.Command(t, "exec", "--libraries", newLibraries(t), "--socket", "./roced.sock", "sh", "-c", "cd /; echo $ROCED_SOCKET")
	child.Dir = s.folder.path
	if got := runChild(child, t.TempDir(), nil); got.code != 0 || strings.TrimSpace(got.out) != s.folder.socket() {
		t.Errorf("exit code %d, %q, %q; want %s", got.code, got.out, got.errOut, s.folder.socket())
	}
}

// TestSignals: signals are forwarded to the program.
func TestSignals(t *testing.T) {
	t.Parallel()
	for _, signal := range []string{"HUP", "INT", "QUIT", "TERM", "USR1", "USR2", "ALRM", "TSTP", "CONT"} {
		t.Run(signal, func(t *testing.T) {
			t.Parallel()
			script := "trap 'echo got; exit 3' " + signal + "; kill -" + signal + " $PPID; while :; do sleep 0.01; done"
			if got := run(t, nil, "--libraries", newLibraries(t), "sh", "-c", script); got.code != 3 || got.out != "got\n" {
				t.Errorf("exit code %d, %q, %q", got.code, got.out, got.errOut)
			}
		})
	}
}

// TestStoppedJob: if the terminal stops the program, the shell sees a stopped job, which it can continue.
func TestStoppedJob(t *testing.T) {
	t.Parallel()
	needs.Tools(t, "script", "bash")
	const job = `; echo "stopped $?"; fg; echo "ended $?"`
	program := os.Args[0] + " exec --network loopback --libraries " + newLibraries(t) + ` -- sh -c 'kill -TSTP $$; echo on; exit 5'`
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte(program+job), 0o644); err != nil {
		t.Fatal(err)
	}
	child := cmdtest.Command(t)
	child.Path, child.Args = needs.Command(t, "script").Path, []string{"script", "-qec", "bash -m " + script, "/dev/null"}
	got := runChild(child, t.TempDir(), nil)
	if !strings.Contains(got.out, "stopped 147") || !strings.Contains(got.out, "on\r\nended 5") {
		t.Errorf("exit code %d, %q, %q", got.code, got.out, got.errOut)
	}
}
