// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/rc"
)

// idPrograms contains the programs with roced's side of each.
var idPrograms = []idProgram{
	newRping(10, 64, 0), newRping(10, 10_000, 0), newRping(10, 60_000, jumboMTU), newCmatose(), newRdmaClient(),
	newRstream(100, 0), newRstream(100_000, 0), newRstream(100_000, jumboMTU),
}

// newRping returns rping: the server reads a region of the client, and writes to another one. A message of 16 bytes
// announces each step, and all bytes are compared (-V).
func newRping(count, size, mtu int) idProgram {
	arguments := fmt.Sprintf("-a %%v -C %d -S %d -V 2>&1", count, size)
	return idProgram{
		port: 7174, server: "rping -s " + arguments, client: "rping -c " + arguments, mtu: mtu,
		asServer: func(ctx context.Context, e *idEnd) error {
			for n := range count {
				if err := e.echoPing(ctx, n, size); err != nil {
					return fmt.Errorf("ping %d: %w", n, err)
				}
			}
			return e.disconnected(ctx)
		},
		asClient: func(ctx context.Context, e *idEnd) error {
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

// show sends the peer a handle of a part of the end's region, as rping does.
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

// ping is the client's side of one round.
func (e *idEnd) ping(ctx context.Context, n, size int) error {
	memory := e.region.Bytes()
	source, sink := memory[:size], memory[size:2*size]
	copy(source, bytes.Repeat([]byte("roced writes this! "), size/19+1))
	copy(source, fmt.Sprintf("rdma-ping-%d: ", n))
	source[size-1] = 0 // rping writes a C string back
	clear(sink)
	for _, offset := range []int{0, size} {
		if err := e.show(ctx, offset, size); err != nil {
			return err
		}
		if _, err := e.receiveLength(ctx, rc.RemoteRegionLen); err != nil {
			return err
		}
	}
	if !bytes.Equal(source, sink) {
		return fmt.Errorf("got %q back", sink[:min(size, 40)])
	}
	return nil
}

// echoPing is the server's side of one round.
func (e *idEnd) echoPing(ctx context.Context, n, size int) error {
	if err := e.remote(ctx, verbs.WRRDMARead, size); err != nil {
		return err
	}
	if want := fmt.Sprintf("rdma-ping-%d: ", n); !bytes.HasPrefix(e.region.Bytes(), []byte(want)) {
		return fmt.Errorf("got %q, want %q", e.region.Bytes()[:len(want)], want)
	}
	if err := e.conn.Send(ctx, make([]byte, rc.RemoteRegionLen)); err != nil {
		return err
	}
	if err := e.remote(ctx, verbs.WRRDMAWrite, size); err != nil {
		return err
	}
	return e.conn.Send(ctx, make([]byte, rc.RemoteRegionLen))
}

// remote receives the handle of a region, and reads or writes the region.
func (e *idEnd) remote(ctx context.Context, op verbs.Opcode, size int) error {
	info, err := e.receiveLength(ctx, rc.RemoteRegionLen)
	if err != nil {
		return err
	}
	var there rc.RemoteRegion
	if err := there.UnmarshalBinary(info); err != nil {
		return err
	}
	if there.Length != uint32(size) {
		return fmt.Errorf("got a region of %d bytes", there.Length)
	}
	return e.conn.Do(ctx, rc.Request{Opcode: op, Region: e.region, Length: size, Remote: there})
}

// newCmatose returns ucmatose: the server sends messages, the client sends as many back, and the server disconnects.
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
			_, err = e.receiveLength(ctx, size)
		}
		return err
	}
	arguments := fmt.Sprintf("-c 1 -C %d -S %d 2>&1", count, size)
	return idProgram{
		port: 7471, server: "ucmatose -b %v " + arguments, client: "ucmatose -s %v " + arguments,
		asServer: inTurn(sends, receives, func(ctx context.Context, e *idEnd) error { return e.conn.Close() }),
		asClient: inTurn(receives, sends, func(ctx context.Context, e *idEnd) error { return e.disconnected(ctx) }),
		output:   "return status 0", shows: fmt.Sprintf("%d messages of %d bytes", count, size),
	}
}

// newRdmaClient returns rdma_client and rdma_server, which send a message in each direction.
func newRdmaClient() idProgram {
	const size = 16
	sends := func(ctx context.Context, e *idEnd) error { return e.conn.Send(ctx, make([]byte, size)) }
	receives := func(ctx context.Context, e *idEnd) error { _, err := e.receiveLength(ctx, size); return err }
	return idProgram{
		port: 7471, server: "rdma_server -s %v 2>&1", client: "rdma_client -s %v 2>&1",
		asServer: inTurn(receives, sends, func(ctx context.Context, e *idEnd) error { return e.disconnected(ctx) }),
		asClient: inTurn(sends, receives, func(ctx context.Context, e *idEnd) error { return e.conn.Close() }),
		output:   "end 0", shows: fmt.Sprintf("messages of %d bytes", size),
	}
}

// inTurn returns a function that executes steps until one fails.
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
