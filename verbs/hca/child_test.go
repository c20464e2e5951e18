// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// childVariable makes the test binary run an entry of children instead of the tests.
const childVariable = "ROCED_HCA_CHILD"

// children run as an unprivileged user, in a host's namespace, with the capabilities that the test sets, and print the result.
var children = map[string]func(){
	"any network":           func() { report(openAndClose()) },
	"any, in namespace":     func() { report(openAndClose(InNamespace("/proc/self/ns/net"))) },
	"UDP":                   func() { report(openAndClose(WithNetwork(NetworkUDP))) },
	"open":                  func() { report(openXDP()) },
	"namespace":             func() { report(openXDP(InNamespace("/proc/self/ns/net"))) },
	"tune":                  func() { report(openAndClose(WithTuning(Tuning{DeferHardIRQs: 2}))) },
	"busy poll":             func() { report(openAndClose(WithTuning(Tuning{BusyPoll: 1000}))) },
	"locked":                func() { report(openLocked(64 << 10)) },
	"locked enough":         func() { report(openLocked(3<<20, WithFrames(512))) },
	"few":                   func() { report(openLocked(64 << 10)) },
	"few in namespace":      func() { report(openLocked(64<<10, InNamespace("/proc/self/ns/net"))) },
	"Q_Key":                 func() { report(activateWire(0x80000001)) },
	"Q_Key without the bit": func() { report(activateWire(0x7FFFFFFF)) },
	"hold":                  hold,
	"send":                  func() { report(sendForever()) },
	"member":                func() { report(memberOnce()) },
}

func openAndClose(options ...Option) error {
	d, err := Open("eth0", options...)
	if err != nil {
		return err
	}
	return d.Close()
}

func openXDP(options ...Option) error {
	return openAndClose(append(options, WithNetwork(NetworkXDP))...)
}

// openLocked opens a card with a limit on locked memory.
func openLocked(bytes uint64, options ...Option) error {
	limit := unix.Rlimit{Cur: bytes, Max: bytes}
	return errors.Join(unix.Setrlimit(unix.RLIMIT_MEMLOCK, &limit), openXDP(options...))
}

// activateWire sets the Q_Key of a queue pair.
func activateWire(qkey verbs.QKey) error {
	a, b, err := OpenPair(addressesA, addressesB)
	if err != nil {
		return err
	}
	defer b.Close()
	ctx, err := verbs.Open(a)
	if err != nil {
		return err
	}
	defer ctx.Close()
	pd, err := ctx.AllocPD()
	if err != nil {
		return err
	}
	cq, err := ctx.CreateCQ(1)
	if err != nil {
		return err
	}
	qp, err := pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: cq, RecvCQ: cq})
	if err != nil {
		return err
	}
	return qp.Activate(qkey)
}

// hold opens the card and keeps it until it is killed.
func hold() {
	if _, err := Open("eth0"); err != nil {
		report(err)
		return
	}
	fmt.Println("open")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func report(err error) { fmt.Printf("%t %v", errors.Is(err, unix.EPERM), err) }

// child prepares a child process in a host's namespace.
func child(name string, capabilities ...uintptr) *exec.Cmd {
	command := exec.Command("/proc/self/exe")
	command.Env = append(os.Environ(), childVariable+"="+name)
	command.SysProcAttr = &syscall.SysProcAttr{
		Credential:  &syscall.Credential{Uid: 65534, Gid: 65534},
		AmbientCaps: capabilities,
	}
	return command
}

func runChild(t *testing.T, host *lab.Namespace, name string, capabilities ...uintptr) string {
	t.Helper()
	var out []byte
	check(t, host.Do(func() (err error) {
		out, err = child(name, capabilities...).CombinedOutput()
		return err
	}))
	return string(out)
}

// enough has the capabilities that Open is documented to need.
var enough = map[string]uintptr{
	"CAP_NET_RAW": unix.CAP_NET_RAW, "CAP_BPF": unix.CAP_BPF, "CAP_NET_ADMIN": unix.CAP_NET_ADMIN,
	"CAP_PERFMON": unix.CAP_PERFMON, "CAP_IPC_LOCK": unix.CAP_IPC_LOCK,
}

func without(missing string) (list []uintptr) {
	for name, capability := range enough {
		if name != missing {
			list = append(list, capability)
		}
	}
	return list
}

const fine = "false <nil>"

// A process that lacks a capability gets an EPERM error that names it.
func TestCapabilities(t *testing.T) {
	host := labtest.Pair(t).A
	everything := append(without(""), unix.CAP_SYS_ADMIN)
	rows := []struct {
		child        string
		name         string
		capabilities []uintptr
		want         []string
	}{
		{"open", "all that is documented", without(""), []string{fine}},
		{"open", "no CAP_NET_RAW", without("CAP_NET_RAW"), []string{"true", "missing CAP_NET_RAW;"}},
		{"open", "no CAP_NET_ADMIN", without("CAP_NET_ADMIN"), []string{"true", "missing CAP_NET_ADMIN;"}},
		{"open", "no CAP_BPF", without("CAP_BPF"), []string{"true", "missing CAP_BPF;"}},
		{"open", "none but CAP_NET_RAW", []uintptr{unix.CAP_NET_RAW}, []string{"true", "missing CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON"}},
		{"few", "none", nil, []string{"true", "missing CAP_NET_RAW, CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON, CAP_IPC_LOCK or 12288 KiB of locked memory (the limit is 64 KiB);",
			"setcap cap_net_raw,cap_bpf,cap_net_admin,cap_perfmon,cap_ipc_lock+ep /", "AmbientCapabilities=CAP_NET_RAW CAP_BPF CAP_NET_ADMIN CAP_PERFMON CAP_IPC_LOCK ", "LimitMEMLOCK=12582912"}},
		{"few in namespace", "none", nil, []string{"true", "missing CAP_NET_RAW, CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON, CAP_SYS_ADMIN", "cap_sys_admin"}},
		{"open", "CAP_SYS_ADMIN for two", []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_RAW, unix.CAP_NET_ADMIN, unix.CAP_IPC_LOCK}, []string{fine}},
		{"locked", "CAP_IPC_LOCK", without(""), []string{fine}},
		{"locked", "no CAP_IPC_LOCK", without("CAP_IPC_LOCK"), []string{"false", "too much locked memory", "missing CAP_IPC_LOCK or 12288 KiB of locked memory (the limit is 64 KiB)", "LimitMEMLOCK="}},
		{"locked enough", "no CAP_IPC_LOCK", without("CAP_IPC_LOCK"), []string{fine}},
		{"namespace", "no CAP_SYS_ADMIN", without(""), []string{"true", "missing CAP_SYS_ADMIN;"}},
		{"namespace", "CAP_SYS_ADMIN", everything, []string{fine}},
		{"tune", "no CAP_SYS_ADMIN", without(""), []string{"true", "missing CAP_SYS_ADMIN;"}},
		{"busy poll", "no CAP_NET_ADMIN", []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_RAW, unix.CAP_IPC_LOCK}, []string{"true", "CAP_NET_ADMIN"}},
		{"busy poll", "all", without(""), []string{fine}},
		{"UDP", "none", nil, []string{fine}},
		{"any network", "none", nil, []string{"the device uses UDP sockets, since XDP is not available", "missing CAP_NET_RAW, CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON", "\n" + fine}},
		{"any, in namespace", "none", nil, []string{"true", "missing CAP_NET_RAW", "over UDP sockets: enter network namespace", "missing CAP_SYS_ADMIN"}},
		{"Q_Key", "none", nil, []string{"true", "0x80000001", "CAP_NET_RAW"}},
		{"Q_Key", "CAP_NET_RAW", []uintptr{unix.CAP_NET_RAW}, []string{fine}},
		{"Q_Key without the bit", "none", nil, []string{fine}},
	}
	for _, row := range rows {
		t.Run(row.child+" with "+row.name, func(t *testing.T) {
			got := runChild(t, host, row.child, row.capabilities...)
			for _, text := range row.want {
				if !strings.Contains(got, text) {
					t.Errorf("got %q, want text %q", got, text)
				}
			}
			if strings.Contains(got, "MEMLOCK may be too low") || strings.Contains(got, "rlimit") {
				t.Errorf("%q suggests the wrong remedy", got)
			}
			if n := attachedProgram(t, host, "eth0"); n != 0 {
				t.Errorf("program %d is still attached", n)
			}
		})
	}
	// Linux 6.18 loads the program without CAP_PERFMON, older kernels refuse it: both results are valid, other errors
	// are not.
	got := runChild(t, host, "open", without("CAP_PERFMON")...)
	if got != fine && !strings.Contains(got, "missing CAP_PERFMON") {
		t.Errorf("without CAP_PERFMON: %q", got)
	}
}

// A killed process leaves nothing that prevents the next one from opening the card.
func TestOpenAfterKill(t *testing.T) {
	t.Parallel()
	host := labtest.Pair(t).A
	for range 3 {
		holder := child("hold", without("")...)
		stdin, err := holder.StdinPipe()
		check(t, err)
		out, err := holder.StdoutPipe()
		check(t, err)
		check(t, host.Do(holder.Start))
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "open\n" {
			t.Fatalf("%q, %v", line, err)
		}
		_, err = Open("eth0", InNamespace(host.Path()))
		refused(t, err, unix.EBUSY, "program id")
		check(t, holder.Process.Kill())
		_ = holder.Wait() // that it was killed
		_ = stdin.Close()
		d, err := Open("eth0", InNamespace(host.Path()))
		check(t, err)
		check(t, d.Close())
	}
}
