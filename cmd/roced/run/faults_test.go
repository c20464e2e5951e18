// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/ud"
	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// faulty consists of two hosts, each with a service and a program. Both programs are members of a group.
type faulty struct {
	*labtest.PairLab
	left, right *serviceRig
	a, b        *program
}

var faultGroup = netip.MustParseAddr("239.8.8.8")

func newFaulty(t *testing.T, options ...lab.VethOption) *faulty {
	t.Helper()
	f := &faulty{PairLab: labtest.Pair(t, options...), left: newRig(t, oneDevice), right: newRig(t, oneDevice)}
	f.left.startIn(t, f.A)
	f.right.startIn(t, f.B)
	f.left.await(t, "READY=1")
	f.right.await(t, "READY=1")
	f.a, f.b = connect(t, f.left.path("roced.sock"), "eth0"), connect(t, f.right.path("roced.sock"), "eth0")
	for _, p := range []*program{f.a, f.b} {
		if err := p.Join(faultGroup); err != nil {
			t.Fatal(err)
		}
	}
	f.checkAll(t)
	return f
}

// checkAll checks that messages arrive in both directions and in the group.
func (f *faulty) checkAll(t *testing.T) {
	t.Helper()
	checkSend(t, f.a, f.b.LocalAddr(), f.b)
	checkSend(t, f.b, f.a.LocalAddr(), f.a)
	checkSend(t, f.a, ud.Group(faultGroup), f.a, f.b)
	checkSend(t, f.b, ud.Group(faultGroup), f.a, f.b)
}

// sendUntil sends until all receivers have received a message.
func sendUntil(t *testing.T, from *program, to ud.Addr, receivers ...*program) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i := 0; ctx.Err() == nil; i++ {
		text := fmt.Sprint("attempt ", i)
		if err := from.Send(ctx, to, []byte(text)); err != nil {
			t.Fatal(err)
		}
		all := true
		for _, r := range receivers {
			all = r.receives(ctx, text) && all
		}
		if all {
			return
		}
	}
	t.Fatalf("no message from %v arrives at %v", from.LocalAddr(), to)
}

// receives reports whether a message arrives within a short time.
func (p *program) receives(ctx context.Context, text string) bool {
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	for {
		m, err := p.Recv(ctx)
		if err != nil {
			return false
		}
		is := string(m.Data) == text
		m.Release()
		if is {
			return true
		}
	}
}

// awaitEvent reads events up to one of type want.
func (p *program) awaitEvent(t *testing.T, want verbs.EventType) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		event, err := p.GetAsyncEvent(ctx)
		if err != nil {
			t.Fatalf("event %v does not arrive: %v", want, err)
		}
		if event.Type == want {
			return
		}
	}
}

// TestProgramsWhenTheLinkIsDown: programs receive an event when the link goes down or up. Their objects, handles and
// memberships remain and work again.
func TestProgramsWhenTheLinkIsDown(t *testing.T) {
	t.Parallel()
	f := newFaulty(t)
	link := cmdtest.Eth0(t, f.A)
	for range 3 {
		if err := f.A.Netlink().LinkSetDown(link); err != nil {
			t.Fatal(err)
		}
		f.a.awaitEvent(t, verbs.EventPortErr)
		f.b.awaitEvent(t, verbs.EventPortErr) // the other end of the wire
		if err := f.A.Netlink().LinkSetUp(link); err != nil {
			t.Fatal(err)
		}
		f.a.awaitEvent(t, verbs.EventPortActive)
		f.b.awaitEvent(t, verbs.EventPortActive)
		f.checkAll(t)
	}
	f.left.terminate(t)
	f.right.terminate(t)
}

// TestProgramsWhenTheAddressChanges: programs receive an event; queue pairs and memberships remain. Package ud selects
// another source within a second; until then the card drops and counts sent packets.
func TestProgramsWhenTheAddressChanges(t *testing.T) {
	t.Parallel()
	f := newFaulty(t)
	before := f.a.LocalAddr()
	cmdtest.RemoveAddress(t, f.A, "10.77.0.1/24")
	f.a.awaitEvent(t, verbs.EventGIDChange)
	if err := f.A.AddAddress("eth0", "10.77.0.99/24"); err != nil {
		t.Fatal(err)
	}
	for f.a.LocalAddr().IP() != netip.MustParseAddr("10.77.0.99") {
		f.a.awaitEvent(t, verbs.EventGIDChange)
	}
	if after := f.a.LocalAddr(); after.QPN != before.QPN {
		t.Errorf("the address changed from %v to %v", before, after)
	}
	sendUntil(t, f.a, f.b.LocalAddr(), f.b)
	sendUntil(t, f.a, ud.Group(faultGroup), f.a, f.b)
	f.checkAll(t)
	f.left.terminate(t)
	f.right.terminate(t)
}

// TestProgramsWhenQueuesChange: messages arrive on queues added by ethtool -L; the kernel does not remove
// a queue that has a socket.
func TestProgramsWhenQueuesChange(t *testing.T) {
	t.Parallel()
	const most = 4
	f := newFaulty(t, lab.WithQueues(most))
	for _, count := range []uint32{1, 2, most, 3} {
		err := f.B.Do(func() error {
			tool, err := ethtool.NewEthtool()
			if err != nil {
				return err
			}
			defer tool.Close()
			_, err = tool.SetChannels("eth0", ethtool.Channels{RxCount: count, TxCount: count})
			return err
		})
		if err != nil && !errors.Is(err, unix.EINVAL) {
			t.Fatal(err)
		}
		for range 20 {
			f.checkAll(t)
		}
	}
	f.left.terminate(t)
	f.right.terminate(t)
}

// TestServiceIsStopped: while the service is stopped (SIGSTOP), commands block and messages wait in the sockets.
func TestServiceIsStopped(t *testing.T) {
	t.Parallel()
	f := newFaulty(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stopped := f.a.LocalAddr()
	f.left.stop(t)
	answered := make(chan error, 1)
	go func() {
		defer close(answered)
		_, err := f.a.QueryPort(1)
		answered <- err
	}()
	if err := f.b.Send(ctx, stopped, []byte("kept")); err != nil {
		t.Error(err)
	}
	if err := f.b.Flush(ctx); err != nil {
		t.Error(err)
	}
	select {
	case err := <-answered:
		t.Errorf("a stopped service responds: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	f.left.signal(t, unix.SIGCONT)
	if err := <-answered; err != nil {
		t.Error(err)
	}
	m, err := f.a.Recv(ctx)
	if err != nil || string(m.Data) != "kept" {
		t.Errorf("%q, %v", m.Data, err)
	}
	m.Release()
	f.checkAll(t)
	f.left.terminate(t)
	f.right.terminate(t)
}

// TestServiceIsKilled: the service's programs are notified at once; those of the other host are not
// affected. The next service removes leftovers, and programs reconnect.
func TestServiceIsKilled(t *testing.T) {
	t.Parallel()
	f := newFaulty(t)
	f.left.signal(t, unix.SIGKILL)
	f.a.awaitEvent(t, verbs.EventDeviceFatal)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := f.a.Recv(ctx); !errors.Is(err, verbs.ErrDeviceFatal) {
		t.Errorf("a wait for messages: %v", err)
	}
	_, _ = f.left.End(t) // until then its socket may accept connections
	if _, err := client.Dial(f.left.path("roced.sock"), "eth0"); !errors.Is(err, verbs.ErrHost) || !strings.Contains(err.Error(), "check that it is running") {
		t.Errorf("dial: %v", err)
	}
	f.a.close()
	checkSend(t, f.b, f.b.LocalAddr(), f.b)
	if link := cmdtest.Eth0(t, f.A); link.Attrs().Xdp != nil && link.Attrs().Xdp.Attached {
		t.Error("the XDP program is left")
	}
	f.left.Child = cmdtest.Command(t, "run", "--config", f.left.path("roced.toml"))
	f.left.Env = append(f.left.Env, "NOTIFY_SOCKET="+f.left.path("notify"))
	f.left.startIn(t, f.A)
	f.left.await(t, "READY=1", "eth0 active")
	if groups := multicastAddresses(t, f.A); groups != 0 {
		t.Errorf("%d groups of the killed service are left", groups)
	}
	f.a = connect(t, f.left.path("roced.sock"), "eth0")
	if err := f.a.Join(faultGroup); err != nil {
		t.Fatal(err)
	}
	f.checkAll(t)
	f.left.terminate(t)
	f.right.terminate(t)
}

func multicastAddresses(t *testing.T, ns *lab.Namespace) (n int) {
	t.Helper()
	list, err := ns.Netlink().AddrList(cmdtest.Eth0(t, ns), netlink.FAMILY_V4)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		if a.IP.IsMulticast() {
			n++
		}
	}
	return n
}
