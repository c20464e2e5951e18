// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/rc"
)

// idPrograms are the programs, and what roced does at the other end of each.
var idPrograms = []idProgram{
	newRping(10, 64, 0), newRping(10, 10_000, 0), newRping(10, 60_000, jumboMTU), newCmatose(), newRdmaClient(),
	newRstream(100, 0), newRstream(100_000, 0), newRstream(100_000, jumboMTU),
}

// newRping is rping: the client has a region that the server reads, and then writes to another one. Each step is
// told by a message of 16 bytes, and each byte is compared (-V).
func newRping(count, size, mtu int) idProgram {
	arguments := fmt.Sprintf("-a %%v -C %d -S %d -V 2>&1", count, size)
	return idProgram{
		port: 7174, server: "rping -s " + arguments, client: "rping -c " + arguments, mtu: mtu,
		serve: func(ctx context.Context, e *idEnd) error {
			for n := range count {
				if err := e.echoPing(ctx, n, size); err != nil {
					return fmt.Errorf("ping %d: %w", n, err)
				}
			}
			return e.disconnected(ctx)
		},
		ask: func(ctx context.Context, e *idEnd) error {
			for n := range count {
				if err := e.ping(ctx, n, size); err != nil {
					return fmt.Errorf("ping %d: %w", n, err)
				}
			}
			return e.conn.Close()
		},
		shows: fmt.Sprintf("%d READs and WRITEs of %d bytes", count, size),
	}
}

// show sends the peer a part of the end's region: rping's messages are a handle.
func (e *idEnd) show(ctx context.Context, offset, length int) error {
	part, err := e.region.Remote().Slice(offset, length)
	if err != nil {
		return err
	}
	handle, err := part.MarshalBinary()
	if err != nil {
		return err
	}
	return e.conn.Send(ctx, handle)
}

// ping is the client's part of one round.
func (e *idEnd) ping(ctx context.Context, n, size int) error {
	memory := e.region.Bytes()
	source, sink := memory[:size], memory[size:2*size]
	copy(source, bytes.Repeat([]byte("roced writes this! "), size/19+1))
	copy(source, fmt.Sprintf("rdma-ping-%d: ", n))
	source[size-1] = 0 // rping writes back a string
	clear(sink)
	for _, offset := range []int{0, size} {
		if err := e.show(ctx, offset, size); err != nil {
			return err
		}
		if _, err := e.hear(ctx, rc.RemoteRegionLen); err != nil {
			return err
		}
	}
	if !bytes.Equal(source, sink) {
		return fmt.Errorf("came back as %q", sink[:min(size, 40)])
	}
	return nil
}

// echoPing is the server's.
func (e *idEnd) echoPing(ctx context.Context, n, size int) error {
	if err := e.remote(ctx, verbs.WRRDMARead, size); err != nil {
		return err
	}
	if want := fmt.Sprintf("rdma-ping-%d: ", n); !bytes.HasPrefix(e.region.Bytes(), []byte(want)) {
		return fmt.Errorf("%q came, not %q", e.region.Bytes()[:len(want)], want)
	}
	if err := e.conn.Send(ctx, make([]byte, rc.RemoteRegionLen)); err != nil {
		return err
	}
	if err := e.remote(ctx, verbs.WRRDMAWrite, size); err != nil {
		return err
	}
	return e.conn.Send(ctx, make([]byte, rc.RemoteRegionLen))
}

// remote waits for the handle of a region, and reads or writes it.
func (e *idEnd) remote(ctx context.Context, op verbs.Opcode, size int) error {
	info, err := e.hear(ctx, rc.RemoteRegionLen)
	if err != nil {
		return err
	}
	var there rc.RemoteRegion
	if err := there.UnmarshalBinary(info); err != nil {
		return err
	}
	if there.Length != uint32(size) {
		return fmt.Errorf("a region of %d bytes", there.Length)
	}
	return e.conn.Do(ctx, rc.Request{Opcode: op, Region: e.region, Length: size, Remote: there})
}

// newCmatose is ucmatose: the server sends messages, the client as many back; then the server disconnects.
func newCmatose() idProgram {
	const count, size = 10, 5000
	sends := func(ctx context.Context, e *idEnd) (err error) {
		for n := 0; n < count && err == nil; n++ {
			err = e.conn.Send(ctx, make([]byte, size))
		}
		return err
	}
	receives := func(ctx context.Context, e *idEnd) (err error) {
		for n := 0; n < count && err == nil; n++ {
			_, err = e.hear(ctx, size)
		}
		return err
	}
	arguments := fmt.Sprintf("-c 1 -C %d -S %d 2>&1", count, size)
	return idProgram{
		port: 7471, server: "ucmatose -b %v " + arguments, client: "ucmatose -s %v " + arguments,
		serve: inTurn(sends, receives, func(ctx context.Context, e *idEnd) error { return e.conn.Close() }),
		ask:   inTurn(receives, sends, func(ctx context.Context, e *idEnd) error { return e.disconnected(ctx) }),
		says:  "return status 0", shows: fmt.Sprintf("%d messages of %d bytes", count, size),
	}
}

// newRdmaClient is rdma_client and rdma_server: a message each way.
func newRdmaClient() idProgram {
	const size = 16
	says := func(ctx context.Context, e *idEnd) error { return e.conn.Send(ctx, make([]byte, size)) }
	hears := func(ctx context.Context, e *idEnd) error { _, err := e.hear(ctx, size); return err }
	return idProgram{
		port: 7471, server: "rdma_server -s %v 2>&1", client: "rdma_client -s %v 2>&1",
		serve: inTurn(hears, says, func(ctx context.Context, e *idEnd) error { return e.disconnected(ctx) }),
		ask:   inTurn(says, hears, func(ctx context.Context, e *idEnd) error { return e.conn.Close() }),
		says:  "end 0", shows: fmt.Sprintf("messages of %d bytes", size),
	}
}

// inTurn does one thing after another, until one fails.
func inTurn(steps ...func(context.Context, *idEnd) error) func(context.Context, *idEnd) error {
	return func(ctx context.Context, e *idEnd) error {
		for _, step := range steps {
			if err := step(ctx, e); err != nil {
				return err
			}
		}
		return nil
	}
}
