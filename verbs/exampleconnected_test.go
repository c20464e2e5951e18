// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"github.com/roced/roced/verbs"
)

// connected creates a reliable connection between two programs, and a region of the server that the client can access.
// Programs on a network exchange number and key by other means, or use package cm. Errors are ignored.
func connected(client, server program) (qp, peer *verbs.QP, remote *verbs.MR) {
	attr := verbs.QPAttr{
		AccessFlags: verbs.AccessRemoteRead | verbs.AccessRemoteWrite | verbs.AccessRemoteAtomic, MaxRDAtomic: 16, MaxDestRDAtomic: 16,
		MinRNRTimer: verbs.RNRTimerCode(640 * time.Microsecond), Timeout: verbs.TimeoutCode(67 * time.Millisecond), RetryCnt: 7, RNRRetry: 7,
	}
	var ends [2]*verbs.QP
	for i, p := range []program{client, server} {
		ends[i], _ = p.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeRC, SendCQ: p.cq, RecvCQ: p.cq, Cap: verbs.QPCap{MaxSendWR: 16, MaxRecvWR: 16}})
	}
	for i, address := range []string{"10.0.0.2", "10.0.0.1"} {
		attr.DestQPN, attr.AHAttr.GRH.DGID = ends[1-i].Number(), verbs.GIDFromAddr(netip.MustParseAddr(address))
		_ = ends[i].Connect(&attr)
	}
	remote, _ = server.pd.AllocMR(4096, verbs.AccessLocalWrite|verbs.AccessRemoteRead|verbs.AccessRemoteWrite|verbs.AccessRemoteAtomic)
	return ends[0], ends[1], remote
}

// done waits for a completion, and returns it.
func (p *program) done() verbs.WC {
	var wcs [1]verbs.WC
	_, _ = p.cq.Wait(context.Background(), wcs[:])
	return wcs[0]
}

// RDMA WRITE copies bytes of the client into the server's memory. The server's program is not notified, unless
// immediate data is sent with them, which consumes a receive.
func Example_rdmaWrite() {
	left, right := newCards()
	client, server := open(left), open(right)
	defer client.ctx.Close()
	defer server.ctx.Close()
	qp, peer, remote := connected(client, server)

	length := copy(client.mr.Bytes(), "written from afar")
	_ = peer.PostRecv([]verbs.RecvWR{{ID: 7}}) // for the immediate data; it needs no memory
	_ = qp.PostSend([]verbs.SendWR{{
		Opcode: verbs.WRRDMAWriteWithImm, Flags: verbs.SendSignaled, ImmData: uint32(length),
		SGList: []verbs.SGE{client.mr.SGE(0, length)}, RemoteAddr: remote.IOVA() + 100, RKey: remote.RKey(),
	}})
	wc := server.done()
	fmt.Printf("%v, %d bytes: %s\n", wc.Opcode, wc.ImmData, remote.Bytes()[100:][:wc.ImmData])
	fmt.Println(client.done().Opcode)
	// Output:
	// receive RDMA with immediate, 17 bytes: written from afar
	// RDMA write
}

// RDMA READ copies bytes of the server into the client's memory.
func Example_rdmaRead() {
	left, right := newCards()
	client, server := open(left), open(right)
	defer client.ctx.Close()
	defer server.ctx.Close()
	qp, _, remote := connected(client, server)

	copy(remote.Bytes()[8:], "read from afar")
	_ = qp.PostSend([]verbs.SendWR{{
		Opcode: verbs.WRRDMARead, Flags: verbs.SendSignaled,
		SGList: []verbs.SGE{client.mr.SGE(0, 14)}, RemoteAddr: remote.IOVA() + 8, RKey: remote.RKey(),
	}})
	wc := client.done()
	fmt.Printf("%v, %v, %d bytes: %s\n", wc.Opcode, wc.Status, wc.ByteLen, client.mr.Bytes()[:14])

	// An invalid key ends the connection: the queue pair goes to ERR.
	_ = qp.PostSend([]verbs.SendWR{{
		Opcode: verbs.WRRDMARead, SGList: []verbs.SGE{client.mr.SGE(0, 14)}, RemoteAddr: remote.IOVA(), RKey: remote.RKey() + 1,
	}})
	status := client.done().Status
	attr, _, _ := qp.Query()
	fmt.Println(status, attr.State)
	// Output:
	// RDMA read, success, 14 bytes: read from afar
	// remote access error ERR
}

// Atomics change 8 bytes of the server in one step, also with concurrent access, and return the previous value.
// Addresses are multiples of 8; numbers are in native byte order.
func Example_atomics() {
	left, right := newCards()
	client, server := open(left), open(right)
	defer client.ctx.Close()
	defer server.ctx.Close()
	qp, _, remote := connected(client, server)
	counter, was := remote.Bytes(), client.mr.Bytes()
	binary.NativeEndian.PutUint64(counter, 40)

	do := func(opcode verbs.Opcode, compareAdd, swap uint64) {
		_ = qp.PostSend([]verbs.SendWR{{
			Opcode: opcode, Flags: verbs.SendSignaled, SGList: []verbs.SGE{client.mr.SGE(0, 8)},
			RemoteAddr: remote.IOVA(), RKey: remote.RKey(), CompareAdd: compareAdd, Swap: swap,
		}})
		client.done()
		fmt.Printf("was %d, is %d\n", binary.NativeEndian.Uint64(was), binary.NativeEndian.Uint64(counter))
	}
	do(verbs.WRAtomicFetchAndAdd, 2, 0)
	do(verbs.WRAtomicCmpAndSwp, 42, 7) // the value is 42: it is replaced by 7
	do(verbs.WRAtomicCmpAndSwp, 42, 9) // the value is not 42: nothing changes
	// Output:
	// was 40, is 42
	// was 42, is 7
	// was 7, is 7
}
