// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
)

// An XRC server: two workers, which may be processes of one user, share a domain by a file, and one connection to each
// client. Each worker has its own shared receive queue, and a client selects the worker by the number of that queue.
// Without XRC each client would need a connection to each worker.
func Example_xrcServer() {
	left, right := newCards()
	beside, _ := right.NewSession(hca.SessionConfig{}) // for the second worker, as client.Dial returns for another process
	client, first, second := open(left), open(right), open(beside)
	defer client.ctx.Close()
	defer first.ctx.Close()
	defer second.ctx.Close()

	file, _ := os.CreateTemp("", "workers")
	defer os.Remove(file.Name())
	defer file.Close()
	domain, _ := first.ctx.OpenXRCD(&verbs.XRCDInitAttr{File: file, OFlags: os.O_CREATE})
	same, _ := second.ctx.OpenXRCD(&verbs.XRCDInitAttr{File: file})

	// The first worker creates the connection's end, and the second opens it: it exists until both have closed it.
	target, _ := domain.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeXRCRecv})
	initiator, _ := client.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeXRCSend, SendCQ: client.cq, Cap: verbs.QPCap{MaxSendWR: 16}})
	_ = target.Connect(toPeer("10.0.0.1", initiator.Number()))
	_ = initiator.Connect(toPeer("10.0.0.2", target.Number()))
	opened, _ := same.OpenQP(&verbs.QPOpenAttr{Number: target.Number()})
	fmt.Println("one queue pair:", opened.Number() == target.Number())

	workers := []*worker{first.serve(domain), second.serve(same)}
	for i, w := range workers {
		length := copy(client.mr.Bytes(), fmt.Sprintf("a request for worker %d", i))
		_ = initiator.PostSend([]verbs.SendWR{{
			Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: []verbs.SGE{client.mr.SGE(0, length)}, RemoteSRQN: w.srq.Number(),
		}})
		client.done()
		fmt.Println(w.next())
	}
	// Output:
	// one queue pair: true
	// a request for worker 0
	// a request for worker 1
}

// worker is the receiving part of a worker of the server.
type worker struct {
	program
	srq *verbs.SRQ
}

// serve creates a worker's queue in a domain.
func (p program) serve(domain *verbs.XRCD) *worker {
	srq, _ := p.pd.CreateSRQ(&verbs.SRQInitAttr{MaxWR: 64, Type: verbs.SRQTypeXRC, XRCD: domain, CQ: p.cq})
	_ = srq.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{p.mr.SGE(0, 4096)}}})
	return &worker{p, srq}
}

// next waits for a request.
func (w *worker) next() string {
	wc := w.done()
	return string(w.mr.Bytes()[:wc.ByteLen])
}

// toPeer returns the attributes of a connection. Programs on a network exchange the numbers.
func toPeer(address string, number verbs.QPN) *verbs.QPAttr {
	attr := verbs.QPAttr{
		DestQPN: number, MaxRDAtomic: 16, MaxDestRDAtomic: 16, MinRNRTimer: verbs.RNRTimerCode(640 * time.Microsecond),
		Timeout: verbs.TimeoutCode(67 * time.Millisecond), RetryCnt: 7, RNRRetry: 7,
	}
	attr.AHAttr.GRH.DGID = verbs.GIDFromAddr(netip.MustParseAddr(address))
	return &attr
}

// A domain of a single program needs no file.
func ExampleContext_AllocXRCD() {
	card, _ := newCards()
	p := open(card)
	defer p.ctx.Close()
	domain, _ := p.ctx.AllocXRCD()
	w := p.serve(domain)
	fmt.Println(domain.Close()) // its SRQ exists
	_ = w.srq.Close()
	fmt.Println(domain.Close())
	// Output:
	// close XRC domain: still in use: the XRC domain has 1 SRQs and queue pairs; close them first
	// <nil>
}
