// SPDX-License-Identifier: Apache-2.0

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

// insideVariable is set for a demo that runs in a user namespace created by another demo.
const insideVariable = "ROCED_DEMO_INSIDE"

// inUserNamespace reports whether the process is in a user namespace. Root in it is an unprivileged user of the host,
// without XDP and perhaps without access to /run.
func inUserNamespace() bool {
	users, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && !slices.Equal(strings.Fields(string(users)), []string{"0", "0", "4294967295"})
}

// runAsUser runs the demo for an unprivileged user. It executes this program again as root of a new user namespace,
// where network namespaces can be created. If the kernel does not allow that, hosts are on an in-memory network.
func (d *demo) runAsUser(ctx context.Context) error {
	c := d.inside(ctx)
	runtime.LockOSThread() // the child ends with this thread (Pdeathsig)
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

// inside prepares this program to run as root of a user namespace. Signals that stop this process are forwarded.
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
		Setpgid:     true, // signals of the terminal reach only this process
		Pdeathsig:   unix.SIGKILL,
	}
	return c
}

// refusal returns the reason why no user namespace was created.
func refusal(err error) string {
	var call *os.PathError
	if errors.As(err, &call) {
		err = call.Err
	}
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EUSERS):
		return "the kernel allows no further user namespace (sysctl user.max_user_namespaces)"
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return "user namespaces are not permitted here: " + err.Error()
	}
	return "cannot create a user namespace: " + err.Error()
}

// runInside runs the demo in the user namespace. The kernel removes everything when the process ends.
func (d *demo) runInside(ctx context.Context) error {
	if err := tryLab(); err != nil {
		d.setMemory("cannot create network namespaces: " + err.Error())
	} else {
		d.preface = "Without root, its hosts are in a user namespace, and use UDP sockets instead of XDP:"
		d.rootAdds = "As root the devices use XDP: round trips are faster, and completions have the sender's MAC and VLAN."
	}
	return d.showAll(ctx)
}

// setMemory selects an in-memory network for the hosts.
func (d *demo) setMemory(why string) {
	d.memory = true
	d.preface = "Without root, its hosts are on an in-memory network (" + why + "):"
	d.rootAdds = "As root the hosts are in network namespaces, on a veth pair and a bridge, with XDP, IGMP and MLD."
}

// tryLab creates and removes one of each object that a demo needs. Namespaces have names in /run, which belongs to the
// host, so tryLab mounts a tmpfs over /run.
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
