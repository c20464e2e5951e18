// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/verbs"
)

// connection is a reliable connection between the two hosts. Each end has a region with a slot per outstanding request.
// The left end sends the requests and checks the results.
type connection struct {
	left, right *end
	mtu         verbs.MTU
	recvs       uint64 // posted at the right end
}

// end is one end.
type end struct {
	*host
	pd *verbs.PD
	cq *verbs.CQ
	qp *verbs.QP
	mr *verbs.MR
}

// operation describes one row of the table.
type operation struct {
	name   string
	opcode verbs.Opcode
	size   int // bytes per request
}

var operations = []operation{
	{"SEND", verbs.WRSend, 4096}, {"RDMA WRITE", verbs.WRRDMAWrite, 65536}, {"RDMA READ", verbs.WRRDMARead, 65536},
	{"fetch and add", verbs.WRAtomicFetchAndAdd, 8},
}

const (
	outstanding = 16 // maximum number of outstanding requests
	longest     = 65536
	// rnrTimer is the RNR timer of both ends.
	rnrTimer = 10 * time.Millisecond
	// ackTimeout is longer than networks require: both ends are in this process, which a busy host may suspend.
	ackTimeout = 537 * time.Millisecond // code 17
)

// requestsFor returns the number of requests per operation. It is smaller than that of datagrams because requests have
// many packets or depend on each other.
func (d *demo) requestsFor() int { return max(1, d.messages/10) }

// showConnections connects the two hosts and runs all operations of a connection.
func (d *demo) showConnections(ctx context.Context) (err error) {
	c := &connection{left: &end{host: d.lab.left}, right: &end{host: d.lab.right}}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := errors.Join(c.left.open(), c.right.open()); err != nil {
		return err
	}
	if err := c.connect(); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\nA reliable connection between them, path MTU %d, at most %d requests outstanding:\n\n", c.mtu.Bytes(), outstanding)
	before, err := c.left.Counters()
	if err != nil {
		return err
	}
	if err := d.runOperations(ctx, c); err != nil {
		return err
	}
	if err := c.sendTooSoon(ctx); err != nil {
		return fmt.Errorf("a message sent before its receive was posted: %w", err)
	}
	after, err := c.left.Counters()
	if err != nil {
		return err
	}
	return d.printRetransmissions(card.Since(before, after))
}

// runOperations runs each operation and prints its row if all results are correct.
func (d *demo) runOperations(ctx context.Context, c *connection) error {
	w := tabwriter.NewWriter(d.out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "  OPERATION\tBYTES EACH\tREQUESTS\tMB\tREQUESTS/s\tCHECKED\t")
	for i := range operations {
		o, n := &operations[i], d.requestsFor()
		start := time.Now()
		if err := c.run(ctx, o, n); err != nil {
			return fmt.Errorf("%s of %d bytes: %w", o.name, o.size, err)
		}
		fmt.Fprintf(w, "  %13s\t%d\t%s\t%s\t%s\tok\t\n", o.name, o.size, cli.Grouped(uint64(n)), cli.Megabytes(float64(n*o.size)),
			cli.Grouped(cli.PerSecond(uint64(n), time.Since(start))))
	}
	return w.Flush()
}

// printRetransmissions prints the left card's retransmissions and their causes.
func (d *demo) printRetransmissions(changed []card.Counter) error {
	count := func(name string) uint64 { return card.Count(changed, "engine", name) }
	if count("rnr_naks") == 0 || count("retransmits") == 0 {
		return fmt.Errorf("a message sent before its receive was posted was not retransmitted: %d RNR NAKs", count("rnr_naks"))
	}
	_, err := fmt.Fprintf(d.out, "\n%s packets sent, %s of them retransmitted: %s after a timeout, %s because of a gap, and one message whose\n"+
		"receive was not posted yet, on purpose: %s with a delay of %v.\n",
		cli.Grouped(count("sent")), cli.Grouped(count("retransmits")), cli.Grouped(count("timeouts")), cli.Grouped(count("sequence_naks")),
		cli.Several(count("rnr_naks"), "RNR NAK"), verbs.RNRTimerDuration(verbs.RNRTimerCode(rnrTimer)))
	return err
}

func (e *end) open() (err error) {
	if e.pd, err = e.AllocPD(); err != nil {
		return err
	}
	if e.cq, err = e.CreateCQ(4 * outstanding); err != nil {
		return err
	}
	access := verbs.AccessLocalWrite | verbs.AccessRemoteRead | verbs.AccessRemoteWrite | verbs.AccessRemoteAtomic
	if e.mr, err = e.pd.AllocMR(outstanding*longest, access); err != nil {
		return err
	}
	e.qp, err = e.pd.CreateQP(&verbs.QPInitAttr{
		Type: verbs.QPTypeRC, SendCQ: e.cq, RecvCQ: e.cq, SQSigAll: true, Cap: verbs.QPCap{MaxSendWR: outstanding, MaxRecvWR: 2 * outstanding},
	})
	return err
}

// connect establishes the connection, over IPv6.
func (c *connection) connect() error {
	for _, way := range [][2]*end{{c.left, c.right}, {c.right, c.left}} {
		own, peer := way[0], way[1]
		gid, err := peer.source("IPv6")
		if err != nil {
			return err
		}
		source, err := own.ChooseGID(card.AnyGID, gid.Addr(), gid)
		if err != nil {
			return err
		}
		attr := card.ConnectionAttr(source, gid)
		attr.DestQPN, attr.AccessFlags = peer.qp.Number(), attr.AccessFlags|verbs.AccessRemoteAtomic
		attr.MaxRDAtomic, attr.MaxDestRDAtomic, attr.MinRNRTimer = outstanding, outstanding, verbs.RNRTimerCode(rnrTimer)
		attr.Timeout = verbs.TimeoutCode(ackTimeout)
		if err := own.qp.Connect(&attr); err != nil {
			return err
		}
	}
	attr, _, err := c.left.qp.Query()
	c.mtu = attr.PathMTU
	return err
}

// run executes n requests of an operation, with as many outstanding as allowed.
func (c *connection) run(ctx context.Context, o *operation, n int) error {
	for _, e := range []*end{c.left, c.right} {
		clear(e.mr.Bytes())
	}
	for done := 0; done < n; {
		some := min(outstanding, n-done)
		if err := c.post(o, done, some); err != nil {
			return err
		}
		if err := c.await(ctx, c.left, some); err != nil {
			return err
		}
		if o.opcode == verbs.WRSend {
			if err := c.await(ctx, c.right, some); err != nil {
				return err
			}
		}
		if err := c.check(o, done, some); err != nil {
			return err
		}
		done += some
	}
	return nil
}

// post posts n requests, starting with request first, and prepares the right end for them.
func (c *connection) post(o *operation, first, n int) error {
	var wrs [outstanding]verbs.SendWR
	for i := range n {
		at := i * longest
		from, to := c.left, c.right
		if o.opcode == verbs.WRRDMARead {
			from, to = to, from
		}
		if o.opcode != verbs.WRAtomicFetchAndAdd {
			newPattern(0, uint32(first+i)).fill(from.mr.Bytes()[at:][:o.size])
			clear(to.mr.Bytes()[at:][:o.size])
		}
		wrs[i] = verbs.SendWR{
			ID: uint64(i), Opcode: o.opcode, SGList: []verbs.SGE{c.left.mr.SGE(at, o.size)},
			RemoteAddr: c.right.mr.IOVA() + uint64(at), RKey: c.right.mr.RKey(), CompareAdd: 1,
		}
		if o.opcode == verbs.WRAtomicFetchAndAdd {
			wrs[i].RemoteAddr = c.right.mr.IOVA() // all requests use one counter
		}
		if o.opcode == verbs.WRSend {
			if err := c.receive(at, o.size); err != nil {
				return err
			}
		}
	}
	return c.left.qp.PostSend(wrs[:n])
}

// receive posts a receive at the right end.
func (c *connection) receive(at, size int) error {
	c.recvs++
	return c.right.qp.PostRecv([]verbs.RecvWR{{ID: c.recvs, SGList: []verbs.SGE{c.right.mr.SGE(at, size)}}})
}

// await waits for n completions of an end.
func (c *connection) await(ctx context.Context, e *end, n int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 4*card.StallTimeout, errors.New("requests do not complete"))
	defer cancel()
	for n > 0 {
		var wcs [outstanding]verbs.WC
		got, err := e.Completions(ctx, e.cq, true, wcs[:min(n, outstanding)])
		if err != nil {
			return err
		}
		n -= got
	}
	return nil
}

// check compares the memory that the requests changed with the expected contents.
func (c *connection) check(o *operation, first, n int) error {
	at := c.right
	if o.opcode == verbs.WRRDMARead {
		at = c.left
	}
	for i := range n {
		place := at.mr.Bytes()[i*longest:][:o.size]
		var err error
		if o.opcode == verbs.WRAtomicFetchAndAdd {
			if was := binary.NativeEndian.Uint64(c.left.mr.Bytes()[i*longest:]); was != uint64(first+i) {
				err = fmt.Errorf("got counter %d, want %d", was, first+i)
			}
		} else {
			err = newPattern(0, uint32(first+i)).check(place)
		}
		if err != nil {
			return fmt.Errorf("request %d: %w", first+i, err)
		}
	}
	return nil
}

// sendTooSoon sends a message before its receive is posted.
func (c *connection) sendTooSoon(ctx context.Context) error {
	hello := []byte("too soon")
	copy(c.left.mr.Bytes(), hello)
	before, err := c.left.Counters()
	if err != nil {
		return err
	}
	if err := c.left.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, SGList: []verbs.SGE{c.left.mr.SGE(0, len(hello))}}}); err != nil {
		return err
	}
	refused := func() (bool, error) {
		now, err := c.left.Counters()
		return card.Count(card.Since(before, now), "engine", "rnr_naks") > 0, err
	}
	waiting, cancel := context.WithTimeoutCause(ctx, card.StallTimeout, errors.New("no RNR NAK received"))
	defer cancel()
	if err := poll(waiting, refused); err != nil {
		return err
	}
	if err := c.receive(0, len(hello)); err != nil {
		return err
	}
	if err := errors.Join(c.await(ctx, c.left, 1), c.await(ctx, c.right, 1)); err != nil {
		return err
	}
	if got := c.right.mr.Bytes()[:len(hello)]; !bytes.Equal(got, hello) {
		return fmt.Errorf("got message %q", got)
	}
	return nil
}

func (c *connection) close() (err error) {
	for _, e := range []*end{c.left, c.right} {
		if e.qp != nil {
			err = errors.Join(err, e.qp.Close())
		}
		if e.mr != nil {
			err = errors.Join(err, e.mr.Close())
		}
		if e.cq != nil {
			err = errors.Join(err, e.cq.Close())
		}
		if e.pd != nil {
			err = errors.Join(err, e.pd.Close())
		}
	}
	return err
}
