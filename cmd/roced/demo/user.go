package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/internal/lab"
	"golang.org/x/sys/unix"
)

// insideVariable says to a demo that it runs in a user namespace that another one has made for it.
const insideVariable = "ROCED_DEMO_INSIDE"

// inUserNamespace says that root here is an ordinary user of the machine: it has no XDP, and may have no /run.
func inUserNamespace() bool {
	users, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && !slices.Equal(strings.Fields(string(users)), []string{"0", "0", "4294967295"})
}

// runAsUser is the demo of an ordinary user: this program again, as root of a user namespace of its own, in which it may
// make network namespaces. Where that is refused, hosts are on a network in memory.
func (d *demo) runAsUser(ctx context.Context) error {
	c := d.inside(ctx)
	runtime.LockOSThread() // whose end would end the other
	defer runtime.UnlockOSThread()
	if err := c.Start(); err != nil {
		d.setMemory(refusal(err))
		return d.showAll(ctx)
	}
	err := c.Wait()
	var exited *exec.ExitError
	if errors.As(err, &exited) && exited.Exited() {
		return cli.Ended{Code: exited.ExitCode()}
	}
	return err
}

// inside prepares this program as root of a user namespace. A signal that stops this one is passed on.
func (d *demo) inside(ctx context.Context) *exec.Cmd {
	c := exec.CommandContext(ctx, "/proc/self/exe", "demo", "--network", "udp", "--count", strconv.Itoa(d.messages), "--log-level", cmp.Or(d.level, "warn"))
	c.Env = append(os.Environ(), insideVariable+"=1")
	c.Stdout, c.Stderr = d.out, d.errOut
	c.Cancel = func() error {
		if s, stopped := cli.StoppedBy(context.Cause(ctx)); stopped {
			return c.Process.Signal(s)
		}
		return c.Process.Signal(unix.SIGTERM)
	}
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
		Setpgid:     true, // a terminal's signals come here alone
		Pdeathsig:   unix.SIGKILL,
	}
	return c
}

// refusal says why there is no user namespace.
func refusal(err error) string {
	var call *os.PathError
	if errors.As(err, &call) {
		err = call.Err
	}
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EUSERS):
		return "the kernel gives no user namespace: sysctl user.max_user_namespaces"
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return "user namespaces are not permitted here: " + err.Error()
	}
	return "there is no user namespace: " + err.Error()
}

// runInside is the demo in the user namespace. What it makes goes with its process, whatever happens.
func (d *demo) runInside(ctx context.Context) error {
	if err := tryLab(); err != nil {
		d.setMemory("network namespaces cannot be made here: " + err.Error())
	} else {
		d.preface = "Without root, its hosts are in a user namespace, and use UDP sockets in place of XDP:"
		d.rootAdds = "As root the devices use XDP: round trips are quicker, and completions have the sender's MAC and VLAN."
	}
	return d.showAll(ctx)
}

// setMemory has the hosts be on a network in memory.
func (d *demo) setMemory(why string) {
	d.memory = true
	d.preface = "Without root, its hosts are on a network in memory (" + why + "):"
	d.rootAdds = "As root the hosts are in network namespaces, on a veth pair and a bridge, with XDP, IGMP and MLD."
}

// tryLab makes what a demo needs, once, and removes it. Names of namespaces are below /run, which is the host's: here it
// is replaced.
func tryLab() (err error) {
	if err := unix.Mount("tmpfs", "/run", "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("mount on /run: %w", err)
	}
	bridge, err := lab.NewBridge(labPrefix)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bridge.Close()) }()
	host, err := lab.New(labPrefix)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	port, err := bridge.Port(host, "eth0")
	if err != nil {
		return err
	}
	seen, err := newWatch(bridge.Namespace, port)
	if err != nil {
		return err
	}
	return seen.Close()
}
