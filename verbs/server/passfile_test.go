// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// as is a program of another user's.
func (d *daemon) as(t *testing.T, uid int) *verbs.Context {
	t.Helper()
	var c *client.Client
	asUser(t, uid, func() (err error) {
		c, err = client.Dial(d.path, "")
		return err
	})
	if c == nil {
		t.FailNow()
	}
	ctx, err := verbs.Open(c)
	check(t, err)
	t.Cleanup(func() { _ = ctx.Close() })
	return ctx
}

// TestOthersXRCDomains: a domain is shared by programs of one user. Another user's has the inode's own one, though the
// file is the same, and its queue pairs are none of the first's.
func TestOthersXRCDomains(t *testing.T) {
	r := newRig(t, anyone)
	r.a.open(t)
	file, err := os.Create(filepath.Join(t.TempDir(), "domain"))
	check(t, err)
	defer file.Close()
	open := func(ctx *verbs.Context, flags int) (*verbs.XRCD, error) {
		return ctx.OpenXRCD(&verbs.XRCDInitAttr{File: file, OFlags: flags})
	}
	one, same, other := r.a.as(t, 4711), r.a.as(t, 4711), r.a.as(t, 4712)
	domain, err := open(one, os.O_CREATE|os.O_EXCL)
	check(t, err)
	target, err := domain.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeXRCRecv})
	check(t, err)
	shared, err := open(same, 0)
	check(t, err)
	if _, err := shared.OpenQP(&verbs.QPOpenAttr{Number: target.Number()}); err != nil {
		t.Errorf("the same user: %v", err)
	}
	if _, err := open(other, 0); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("another user finds the domain: %v", err)
	}
	apart, err := open(other, os.O_CREATE|os.O_EXCL)
	check(t, err)
	if _, err := apart.OpenQP(&verbs.QPOpenAttr{Number: target.Number()}); !errors.Is(err, verbs.ErrInvalid) {
		t.Errorf("another user opens the queue pair: %v", err)
	}
}

// passing gives the client's end of a socket for files.
func (r *raw) passing() int {
	r.Helper()
	_, ends := ask(r, proto.PassFile, &proto.None{})
	r.Cleanup(func() { proto.CloseAll(ends) })
	return ends[0]
}

// refused gives a command that fails, and its cause.
func refused[Q, G any](r *raw, command proto.Command[Q, G], request *Q) error {
	r.Helper()
	packet, err := command.EncodeRequest(1, request)
	check(r, err)
	check(r, r.Send(packet))
	m, ends, err := r.Receive()
	check(r, err)
	proto.CloseAll(ends)
	if m.Kind != proto.Failure {
		r.Fatalf("%s: kind %d", command.Name, m.Kind)
	}
	cause, err := proto.DecodeFailure(m.Body)
	check(r, err)
	return cause
}

// TestPassedFiles: a domain by a file is one whose file was passed, once. What else comes by that socket names nothing.
func TestPassedFiles(t *testing.T) {
	r := newRig(t, anyone)
	file, err := os.Create(filepath.Join(t.TempDir(), "domain"))
	check(t, err)
	defer file.Close()
	path, err := os.OpenFile(file.Name(), unix.O_PATH, 0)
	check(t, err)
	defer path.Close()
	want := &proto.OpenXRCDRequest{HasFile: true, Create: true}
	bad := r.a.opened(t)
	for name, pass := range map[string]func(){
		"without a socket": func() {},
		"nothing":          func() { bad.passing() },
		"bytes":            func() { check(t, unix.Sendmsg(bad.passing(), []byte("7"), nil, nil, 0)) },
		"a path":           func() { check(t, unix.Sendmsg(bad.passing(), []byte{0}, unix.UnixRights(int(path.Fd())), nil, 0)) },
		"by an older one": func() {
			old := bad.passing()
			bad.passing()
			_ = unix.Sendmsg(old, []byte{0}, unix.UnixRights(int(file.Fd())), nil, unix.MSG_NOSIGNAL)
		},
		"to a closed one":   func() { bad.passing(); ask(bad, proto.OpenXRCD, &proto.OpenXRCDRequest{}); bad.passing() },
		"the other's end":   func() { end := bad.passing(); check(t, unix.Shutdown(end, unix.SHUT_RDWR)) },
		"more than is read": func() { end := bad.passing(); check(t, unix.Sendmsg(end, make([]byte, 4096), nil, nil, 0)) },
	} {
		pass()
		if err := refused(bad, proto.OpenXRCD, want); !errors.Is(err, verbs.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for range 3 { // of several files the first counts, and none is kept
		end := bad.passing()
		check(t, unix.Sendmsg(end, []byte{0}, unix.UnixRights(int(file.Fd()), int(path.Fd())), nil, 0))
		grant, _ := ask(bad, proto.OpenXRCD, want)
		ask(bad, proto.CloseXRCD, &provider.CloseXRCDRequest{XRCD: grant.XRCD})
		if err := refused(bad, proto.OpenXRCD, want); !errors.Is(err, verbs.ErrInvalid) {
			t.Errorf("once more: %v", err)
		}
	}
	var before unix.Stat_t
	check(t, unix.Fstat(int(file.Fd()), &before))
	eventually(t, "the service has closed all", func() bool { return openTimes(t, before.Ino) == 2 })
}

// openTimes is how many descriptors of this process are of an inode.
func openTimes(t *testing.T, inode uint64) (n int) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	check(t, err)
	for _, entry := range list {
		var s unix.Stat_t
		if unix.Stat("/proc/self/fd/"+entry.Name(), &s) == nil && s.Ino == inode {
			n++
		}
	}
	return n
}
