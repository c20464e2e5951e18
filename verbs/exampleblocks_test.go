// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"encoding/binary"
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/kernel"
)

// A block server, as in storage protocols. The client registers the memory of each request by a work request, and sends
// a command with the key. The server reads or writes that memory, and its response invalidates the key:
//
//	client  WRRegMR, WRSend: command ──────────────────────────────► server
//	        ◄────────────── WRRDMARead or WRRDMAWrite of the blocks
//	        ◄────────────── WRSendWithInv: response; the key is invalid
//
// Errors are ignored.

// blockCommand is a command of the client.
type blockCommand struct {
	Write  bool
	Block  uint32 // first block
	Length uint32 // bytes
	Key    verbs.RKey
	Addr   uint64
}

// blockServer has a disk in a region. block is the size of a block with its field in bytes.
type blockServer struct {
	program
	qp    *verbs.QP
	block int
}

// serve receives a command and executes it.
func (s *blockServer) serve() {
	s.done() // completion of the receive
	var c blockCommand
	_, _ = binary.Decode(s.mr.Bytes()[:32], binary.LittleEndian, &c)
	move := verbs.SendWR{
		Opcode: verbs.WRRDMAWrite, RemoteAddr: c.Addr, RKey: c.Key,
		SGList: []verbs.SGE{s.mr.SGE(32+int(c.Block)*s.block, int(c.Length))},
	}
	if c.Write {
		move.Opcode = verbs.WRRDMARead
	}
	_ = s.qp.PostSend([]verbs.SendWR{move, {Opcode: verbs.WRSendWithInv, Flags: verbs.SendSignaled | verbs.SendFence, InvalidateRKey: c.Key}})
	s.done()
	_ = s.qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{s.mr.SGE(0, 32)}}})
}

// blockClient has a fast region, which gives the server access to its memory.
type blockClient struct {
	program
	qp   *verbs.QP
	fast *verbs.MR
}

// ask posts the registration and sends a command, whose length is that on the wire.
func (c *blockClient) ask(command blockCommand, reg verbs.SendWR) {
	kernel.UpdateFastRegKey(c.fast, uint8(verbs.IncRKey(c.fast.RKey()))) // each request has its own key
	reg.Reg.MR, reg.Reg.Key, reg.Reg.Access = c.fast, c.fast.RKey(), verbs.AccessLocalWrite|verbs.AccessRemoteRead|verbs.AccessRemoteWrite
	command.Key, command.Addr = c.fast.RKey(), c.fast.IOVA()
	_ = c.qp.PostRecv([]verbs.RecvWR{{}}) // for the response
	message, _ := binary.Append(nil, binary.LittleEndian, command)
	_ = c.qp.PostSend([]verbs.SendWR{reg, {Opcode: verbs.WRSend, Flags: verbs.SendInline, InlineData: message}})
}

// answered waits for the server's response.
func (c *blockClient) answered() {
	wc := c.done()
	fmt.Println(wc.Status, "- the key is invalidated:", wc.InvalidatedRKey() == c.fast.RKey())
}

func newBlocks(block int) (*blockClient, *blockServer) {
	left, right := newCards()
	client, server := open(left), open(right)
	qp, peer, _ := connected(client, server)
	s := &blockServer{server, peer, block}
	_ = peer.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{s.mr.SGE(0, 32)}}})
	return &blockClient{program: client, qp: qp}, s
}

// Fast registration: a work request registers the memory of each command, and the response invalidates it.
func Example_blockServer() {
	client, server := newBlocks(512)
	defer client.ctx.Close()
	defer server.ctx.Close()
	client.fast, _ = kernel.AllocFastMR(client.pd, kernel.MRTypeSGGaps, 16)

	memory := client.mr.Bytes()
	list := []kernel.SG{{Memory: memory[100:400]}, {Memory: memory[700:912]}} // one block, in two pieces
	kernel.DMAMapSG(client.ctx, list, kernel.DMABidirectional)
	_, _, _ = kernel.MapSG(client.fast, list, 0, 0)
	copy(memory[100:], "a block")
	reg := verbs.SendWR{Opcode: verbs.WRRegMR, Reg: &verbs.RegMR{}}
	for _, write := range []bool{true, false} {
		client.ask(blockCommand{Write: write, Block: 1, Length: 512}, reg)
		server.serve()
		client.answered()
		fmt.Printf("on the disk: %s, in memory: %s\n", server.mr.Bytes()[32+512:][:7], memory[100:107])
		copy(memory[100:], "nothing") // until it is read back
	}
	// Output:
	// success - the key is invalidated: true
	// on the disk: a block, in memory: a block
	// success - the key is invalidated: true
	// on the disk: a block, in memory: a block
}

// Signatures: on the wire and on the disk each block has a T10-DIF field. The client's card inserts the fields when it
// writes, and checks and removes them when it reads, so that the client detects corruption anywhere in between.
func Example_t10DIF() {
	client, server := newBlocks(512 + 8)
	defer client.ctx.Close()
	defer server.ctx.Close()
	client.fast, _ = kernel.AllocIntegrityMR(client.pd, 1, 1)

	memory := client.mr.Bytes()[:2*512]
	list := []kernel.SG{{Memory: memory}}
	kernel.DMAMapSG(client.ctx, list, kernel.DMABidirectional)
	_, _, _ = kernel.MapSGPI(client.fast, list, 0, nil, 0)
	copy(memory[512:], "the second block")
	sig := &kernel.SigAttrs{CheckMask: 0xFF, Wire: kernel.SigDomain{
		Type: kernel.SigTypeT10DIF, DIF: kernel.T10DIFDomain{BGType: kernel.T10DIFCRC, PIInterval: 512, RefTag: 3, RefRemap: true},
	}}
	reg := verbs.SendWR{Opcode: verbs.WRRegMRIntegrity, Reg: &verbs.RegMR{Sig: sig}}
	disk := server.mr.Bytes()[32:]
	check := func() {
		status, _ := kernel.CheckMRStatus(client.fast, kernel.MRCheckSigStatus)
		if status.FailStatus == 0 {
			fmt.Println("all is well")
			return
		}
		fmt.Println("a wrong guard:", status.SigErr.Type == kernel.SigBadGuard, "at", status.SigErr.Offset)
	}

	client.ask(blockCommand{Write: true, Block: 3, Length: uint32(sig.Wire.Length(len(memory)))}, reg)
	server.serve()
	client.answered()
	fmt.Printf("% x\n", disk[5*520-8:][:8]) // guard, application tag, reference tag of block 4

	clear(memory)
	for _, flip := range []byte{0, 1} {
		disk[4*520+3] ^= flip
		client.ask(blockCommand{Block: 3, Length: uint32(sig.Wire.Length(len(memory)))}, reg)
		server.serve()
		client.answered()
		fmt.Printf("%s: ", memory[512:][:16])
		check()
	}
	// Output:
	// success - the key is invalidated: true
	// 8b 19 00 00 00 00 00 04
	// success - the key is invalidated: true
	// the second block: all is well
	// success - the key is invalidated: true
	// the!second block: a wrong guard: true at 1032
}
