// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/server/peer"
	"golang.org/x/sys/unix"
)

// A client that punches holes into all of its memory, again and again, while the card uses it and makes more: it reads zeros
// until its session ends, and no other client notices.
func TestHolesAllTheTime(t *testing.T) {
	t.Parallel()
	r := newRig(t, anyone)
	stillWell := neighbours(t, r)
	bad := r.a.whole(t)
	stop := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := unix.Fallocate(bad.memory, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, int64(bad.opened.Size)); err != nil {
				t.Error(err)
				return
			}
			bad.wake()
		}
	})
	alive := true
	for give := guard(t); alive; stillWell() {
		check(t, give.Err())
		alive = attempt(bad.raw, proto.AllocMR, &provider.AllocMRRequest{PD: bad.pd, Length: 1 << 20}) &&
			attempt(bad.raw, proto.ResizeCQ, &provider.ResizeCQRequest{CQ: bad.cq, Entries: 500}) &&
			attempt(bad.raw, proto.ModifyQP, &provider.ModifyQPRequest{QP: bad.qp, Attr: verbs.QPAttr{State: verbs.QPStateErr}, Mask: verbs.QPAttrState}) &&
			attempt(bad.raw, proto.ModifyQP, &provider.ModifyQPRequest{QP: bad.qp, Attr: verbs.QPAttr{State: verbs.QPStateReset}, Mask: verbs.QPAttrState}) &&
			attempt(bad.raw, proto.ModifyQP, bad.init(bad.qp))
	}
	close(stop)
	all.Wait()
	check(t, bad.socket.Close())
	r.a.alone(t, 1)
	stillWell()
}

// attempt carries out a command; false if the session has ended. Then the message that reports this may come first.
func attempt[Q, G any](r *raw, command proto.Command[Q, G], request *Q) bool {
	r.Helper()
	packet, err := command.EncodeRequest(1, request)
	check(r, err)
	err = r.Send(packet)
	if errors.Is(err, unix.EPIPE) { // the service has hung up after its last message
		return false
	}
	check(r, err)
	m, _, err := r.Receive()
	if errors.Is(err, io.EOF) {
		return false
	}
	check(r, err)
	if m.Kind == proto.Failure {
		cause, err := proto.DecodeFailure(m.Body)
		if check(r, err); !errors.Is(cause, verbs.ErrDeviceFatal) {
			r.Fatalf("%s: %v", command.Name, cause)
		}
	}
	return m.Kind == proto.Reply
}

// A client's changes of its end of a completion channel, which it never reads, affect only itself: the
// card goes on to notify, and does not wait.
func TestChannelGames(t *testing.T) {
	r := newRig(t, anyone)
	stillWell := neighbours(t, r)
	before := r.a.usage()
	for name, play := range map[string]func(t *testing.T, end int){
		"nothing":       func(*testing.T, int) {},
		"make it block": func(t *testing.T, end int) { check(t, unix.SetNonblock(end, false)) },
		"fill it": func(t *testing.T, end int) {
			var err error
			for err == nil {
				err = unix.Sendto(end, make([]byte, 1000), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil)
			}
			if !errors.Is(err, unix.EPIPE) { // it is for the card to send
				t.Error(err)
			}
		},
		"shrink its buffer": func(t *testing.T, end int) { check(t, unix.SetsockoptInt(end, unix.SOL_SOCKET, unix.SO_RCVBUF, 1)) },
		"shut it":           func(t *testing.T, end int) { check(t, unix.Shutdown(end, unix.SHUT_RDWR)) },
		"put another descriptor in its place": func(t *testing.T, end int) {
			nothing, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
			check(t, err)
			check(t, unix.Dup3(nothing, end, unix.O_CLOEXEC))
			check(t, unix.Close(nothing))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := client.Dial(r.a.path, "")
			check(t, err)
			p := newProgram(t, c)
			channel, err := p.ctx.CreateCompChannel()
			check(t, err)
			p.cq, err = p.ctx.CreateCQEx(&verbs.CQInitAttr{Entries: 256, Channel: channel})
			check(t, err)
			p.qp = p.newQP()
			raw, err := channel.SyscallConn()
			check(t, err)
			check(t, raw.Control(func(end uintptr) { play(t, int(end)) }))
			self := p.ah(addressesA[0])
			for range 1000 { // more notifications than the socket has room for
				_, err := p.cq.ReqNotify(verbs.CQNextComp)
				check(t, err)
				p.exchangeAlone(self)
			}
			stillWell()
			check(t, p.ctx.Close())
			eventually(t, "all of the client is gone", func() bool { return r.a.usage() == before })
		})
	}
	stillWell()
}

// exchangeAlone sends a message to p itself, and takes both completions.
func (p *program) exchangeAlone(ah *verbs.AH) {
	p.Helper()
	check(p, p.qp.PostRecv([]verbs.RecvWR{{ID: 2, SGList: []verbs.SGE{p.mr.SGE(1024, 1024)}}}))
	check(p, p.qp.PostSend([]verbs.SendWR{{ID: 1, Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: []verbs.SGE{p.mr.SGE(0, 10)}, AH: ah, RemoteQPN: p.qp.Number(), RemoteQKey: testQKey}}))
	p.completion()
	p.completion()
}

// A client that holds its memory's lock when its connection ends: its pages count until it lets go, and
// neither its neighbours nor the end of the daemon wait for it.
func TestMemoryIsHeldOnTo(t *testing.T) {
	t.Parallel()
	r := newRig(t, anyone)
	stillWell := neighbours(t, r)
	bad := r.a.whole(t)
	page, awaitReader, present := absentPage(t)
	written := make(chan error, 1)
	go func() {
		_, err := unix.Pwrite(bad.memory, page, 0)
		written <- err
	}()
	awaitReader() // now it holds the lock
	check(t, bad.socket.Close())
	stillWell()
	if r.a.usage().Memory == 0 {
		t.Error("pages that are still there do not count")
	}
	check(t, r.a.Close())
	present()
	check(t, <-written)
	eventually(t, "the memory is given back", func() bool { return r.a.usage() == peer.Limits{} })
}
