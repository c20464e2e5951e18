// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/memnet"
	"golang.org/x/sys/unix"
)

// childVariable makes the test binary run one of children instead of the tests.
const childVariable = "ROCED_SERVER_CHILD"

// children are other processes. Each gets the path of a socket, and prints "ready".
var children = map[string]func(path string) error{
	"busy client":      busyClient,
	"registrar":        registrar,
	"idle client":      idleClient,
	"connected client": connectedClient,
	"daemon":           childDaemon,
}

// childProgram opens the objects of a program.
func childProgram(path string) (qp *verbs.QP, cq *verbs.CQ, ah *verbs.AH, err error) {
	c, err := client.Dial(path, "")
	if err != nil {
		return nil, nil, nil, err
	}
	ctx, err := verbs.Open(c)
	if err != nil {
		return nil, nil, nil, err
	}
	pd, err := ctx.AllocPD()
	if err != nil {
		return nil, nil, nil, err
	}
	if cq, err = ctx.CreateCQ(256); err != nil {
		return nil, nil, nil, err
	}
	cap := verbs.QPCap{MaxSendWR: 64, MaxRecvWR: 64, MaxInlineData: 64}
	if qp, err = pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: cq, RecvCQ: cq, Cap: cap}); err != nil {
		return nil, nil, nil, err
	}
	if err := qp.Activate(testQKey); err != nil {
		return nil, nil, nil, err
	}
	ah, err = pd.CreateAH(context.Background(), &verbs.AHAttr{Port: 1, GRH: verbs.GlobalRoute{DGID: verbs.GIDFromAddr(addressesA[0])}})
	return qp, cq, ah, err
}

// busyClient sends messages to itself, and makes and destroys objects meanwhile, until it is killed.
func busyClient(path string) error {
	qp, cq, ah, err := childProgram(path)
	if err != nil {
		return err
	}
	go churn(path)
	fmt.Println("ready")
	var wcs [16]verbs.WC
	for {
		err := qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendSignaled | verbs.SendInline, InlineData: []byte("hello"), AH: ah, RemoteQPN: qp.Number(), RemoteQKey: testQKey}})
		if err != nil && !errors.Is(err, verbs.ErrQueueFull) {
			return err
		}
		if _, err := cq.Wait(context.Background(), wcs[:]); err != nil {
			return err
		}
	}
}

func churn(path string) {
	for {
		if qp, cq, ah, err := childProgram(path); err == nil {
			_, _, _ = qp.Close(), cq.Close(), ah.Close()
		}
	}
}

// idleClient has everything, and waits.
func idleClient(path string) error {
	_, cq, _, err := childProgram(path)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	var wcs [1]verbs.WC
	_, err = cq.Wait(context.Background(), wcs[:])
	return err
}

// childDaemon serves a device of its own.
func childDaemon(path string) error {
	host, err := memnet.New(0).AddHost("a", addressesA...)
	if err != nil {
		return err
	}
	card, err := hca.New(host, hca.WithoutInline())
	if err != nil {
		return err
	}
	s, err := New(Config{Devices: []Source{card}, PrivilegedGroup: -1})
	if err != nil {
		return err
	}
	listener, err := net.Listen("unixpacket", path)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return s.Serve(listener)
}

// startChild starts a child, as another user if the test is root, and waits until it is ready.
func startChild(t testing.TB, name, path string) *exec.Cmd {
	t.Helper()
	command := exec.Command("/proc/self/exe", path)
	command.Env = append(os.Environ(), childVariable+"="+name)
	out, err := command.StdoutPipe()
	check(t, err)
	if unix.Geteuid() == 0 && name != "daemon" {
		const nobody = 65534
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		check(t, os.Chmod(path, 0o666))
		check(t, os.Chmod(path[:strings.LastIndexByte(path, '/')], 0o755))
	}
	check(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "ready\n" {
		t.Fatalf("child %s: %q, %v", name, line, err)
	}
	return command
}

// A client that is killed, at any moment, leaves nothing, and its neighbours notice nothing.
func TestClientKilled(t *testing.T) {
	r := newRig(t, anyone)
	stillWell := neighbours(t, r)
	for i := range 15 {
		child := startChild(t, "busy client", r.a.path)
		time.Sleep(time.Duration(i) * time.Millisecond)
		check(t, child.Process.Kill())
		_ = child.Wait()
		r.a.alone(t, 1)
		stillWell()
	}
	if users := r.a.Users(); len(users) != 1 {
		t.Errorf("users %+v", users)
	}
}

// A client that is stopped affects no other client, and continues when it is resumed.
func TestClientStopped(t *testing.T) {
	r := newRig(t, anyone)
	stillWell := neighbours(t, r)
	for _, name := range []string{"busy client", "idle client"} {
		child := startChild(t, name, r.a.path)
		check(t, child.Process.Signal(unix.SIGSTOP))
		for range 50 {
			stillWell()
		}
		check(t, child.Process.Signal(unix.SIGCONT))
		stillWell()
		check(t, child.Process.Kill())
		_ = child.Wait()
	}
	r.a.alone(t, 1)
}

// When the daemon is killed, its clients get the event and errors at once, also those in a command.
func TestDaemonKilled(t *testing.T) {
	folder, err := os.MkdirTemp("", "roced")
	check(t, err)
	t.Cleanup(func() { check(t, os.RemoveAll(folder)) })
	path := folder + "/s"
	child := startChild(t, "daemon", path)
	c, err := client.Dial(path, "")
	check(t, err)
	p := newProgram(t, c)
	ended := make(chan error, 3)
	go func() { var wcs [1]verbs.WC; _, err := p.cq.Wait(guard(t), wcs[:]); ended <- err }()
	go func() {
		for {
			if _, err := p.ctx.QueryPort(1); err != nil {
				ended <- err
				return
			}
		}
	}()
	go func() {
		event, err := p.ctx.GetAsyncEvent(guard(t))
		if err == nil && event.Type == verbs.EventDeviceFatal {
			_, err = p.ctx.GetAsyncEvent(guard(t))
		}
		ended <- err
	}()
	check(t, child.Process.Kill())
	for range 3 {
		if err := <-ended; !errors.Is(err, verbs.ErrDeviceFatal) {
			t.Errorf("ended with %v", err)
		}
	}
	check(t, p.ctx.Close())
	check(t, os.Remove(path))
	startChild(t, "daemon", path)
	again, err := client.Dial(path, "")
	check(t, err)
	newProgram(t, again)
	check(t, again.Close())
}
