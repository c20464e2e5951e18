package verbs_test

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
)

// program is the objects that a program in these examples has on a card.
type program struct {
	ctx *verbs.Context
	pd  *verbs.PD
	mr  *verbs.MR
	cq  *verbs.CQ
	qp  *verbs.QP
}

// open makes one of each object. Errors are left out here: each call gives one that says what to do.
func open(card verbs.Provider) (p program) {
	p.ctx, _ = verbs.Open(card)
	p.pd, _ = p.ctx.AllocPD()
	p.mr, _ = p.pd.AllocMR(64<<10, verbs.AccessLocalWrite)
	p.cq, _ = p.ctx.CreateCQ(64)
	p.qp, _ = p.pd.CreateQP(&verbs.QPInitAttr{
		Type: verbs.QPTypeUD, SendCQ: p.cq, RecvCQ: p.cq,
		Cap: verbs.QPCap{MaxSendWR: 16, MaxRecvWR: 16},
	})
	_ = p.qp.Activate(0x11111111)
	return p
}

// A datagram to another host, and the answer to its sender. The cards are on a wire in memory;
// hca.Open("eth0") gives one on an interface.
func Example() {
	left, right, _ := hca.OpenWire([]netip.Addr{netip.MustParseAddr("10.0.0.1")}, []netip.Addr{netip.MustParseAddr("10.0.0.2")})
	client, server := open(left), open(right)
	defer client.ctx.Close()
	defer server.ctx.Close()

	// A receiver posts buffers before messages come.
	_ = server.qp.PostRecv([]verbs.RecvWR{{ID: 1, SGList: []verbs.SGE{server.mr.SGE(0, 2048)}}})
	_ = client.qp.PostRecv([]verbs.RecvWR{{ID: 2, SGList: []verbs.SGE{client.mr.SGE(0, 2048)}}})

	ctx := context.Background()
	ah, _ := client.pd.CreateAH(ctx, &verbs.AHAttr{Port: 1, GRH: verbs.GlobalRoute{DGID: verbs.GIDFromAddr(netip.MustParseAddr("10.0.0.2"))}})
	length := copy(client.mr.Bytes()[4096:], "hello")
	_ = client.qp.PostSend([]verbs.SendWR{{
		ID: 3, Opcode: verbs.WRSend, SGList: []verbs.SGE{client.mr.SGE(4096, length)},
		AH: ah, RemoteQPN: server.qp.Number(), RemoteQKey: 0x11111111,
	}})

	var wcs [1]verbs.WC
	_, _ = server.cq.Wait(ctx, wcs[:])
	grh, payload := wcs[0].Payload(server.mr.Bytes()[:2048]) // a receive buffer starts with 40 bytes of GRH
	fmt.Printf("%s from %v\n", payload, grh.SGID().Addr())

	back, _ := server.pd.CreateAHFromWC(&wcs[0], grh, 1)
	length = copy(server.mr.Bytes()[4096:], "hello yourself")
	_ = server.qp.PostSend([]verbs.SendWR{{
		ID: 4, Opcode: verbs.WRSend, SGList: []verbs.SGE{server.mr.SGE(4096, length)},
		AH: back, RemoteQPN: wcs[0].SrcQP, RemoteQKey: 0x11111111,
	}})
	_, _ = client.cq.Wait(ctx, wcs[:])
	_, payload = wcs[0].Payload(client.mr.Bytes()[:2048])
	fmt.Printf("%s\n", payload)
	// Output:
	// hello from 10.0.0.1
	// hello yourself
}

// To receive a group's messages takes two steps: the join makes the host a member, so that switches
// send the group's packets here; the attach delivers them to the queue pair.
func ExampleQP_AttachMcast() {
	left, right, _ := hca.OpenWire([]netip.Addr{netip.MustParseAddr("10.0.0.1")}, []netip.Addr{netip.MustParseAddr("10.0.0.2")})
	sender, member := open(left), open(right)
	defer sender.ctx.Close()
	defer member.ctx.Close()
	group := netip.MustParseAddr("239.1.2.3")

	membership, _ := member.ctx.JoinMulticast(group, verbs.JoinFullMember)
	defer membership.Close()
	_ = member.qp.AttachMcast(membership.MGID(), membership.MLID())
	_ = member.qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{member.mr.SGE(0, 2048)}}})

	ctx := context.Background()
	sends, _ := sender.ctx.JoinMulticast(group, verbs.JoinSendOnlyFullMember)
	defer sends.Close()
	attr, _ := sends.AHAttr()
	ah, _ := sender.pd.CreateAH(ctx, &attr)
	length := copy(sender.mr.Bytes(), "to all of you")
	_ = sender.qp.PostSend([]verbs.SendWR{{
		Opcode: verbs.WRSend, SGList: []verbs.SGE{sender.mr.SGE(0, length)},
		AH: ah, RemoteQPN: verbs.MulticastQPN, RemoteQKey: 0x11111111,
	}})

	var wcs [1]verbs.WC
	_, _ = member.cq.Wait(ctx, wcs[:])
	grh, payload := wcs[0].Payload(member.mr.Bytes()[:2048])
	fmt.Printf("%s, sent to %v\n", payload, grh.DGID().Addr())
	// Output: to all of you, sent to 239.1.2.3
}
