// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// say runs in a process that is not a test.
func say[Q, G any](conn *proto.Conn, command proto.Command[Q, G], request *Q) (grant G, ends []int, err error) {
	packet, err := command.EncodeRequest(1, request)
	if err != nil {
		return grant, nil, err
	}
	if err := conn.Send(packet); err != nil {
		return grant, nil, err
	}
	m, ends, err := conn.Receive()
	if err == nil && m.Kind != proto.Reply {
		if err, _ = proto.DecodeFailure(m.Body); err == nil {
			err = proto.ErrMalformed
		}
	}
	if err == nil {
		grant, err = command.DecodeGrant(m.Body, anywhere{})
	}
	return grant, ends, err
}

// registrar registers memory of its own, and deregisters every other region, until it is killed.
func registrar(path string) error {
	socket, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return err
	}
	conn := proto.NewConn(socket, true)
	if _, _, err = say(conn, proto.Hello, &proto.HelloRequest{Magic: proto.Magic, Oldest: proto.Version, Newest: proto.Version}); err != nil {
		return err
	}
	if _, _, err = say(conn, proto.OpenDevice, &proto.OpenRequest{}); err != nil {
		return err
	}
	pd, _, err := say(conn, proto.AllocPD, &proto.None{})
	if err != nil {
		return err
	}
	_, file, err := say(conn, proto.ShareMemory, &proto.ShareMemoryRequest{Size: testSpace})
	if err != nil {
		return err
	}
	const size, place = 256 << 20, 1 << 44
	memory, err := unix.Mmap(file[0], place, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	if err := unix.Madvise(memory, unix.MADV_POPULATE_WRITE); err != nil {
		return err
	}
	fmt.Println("ready")
	for i := uint64(0); ; i++ {
		length := []int{size, 4096, 1 << 20, size / 2}[i%4]
		mr, _, err := say(conn, proto.RegMR, &proto.RegMRRequest{PD: pd.PD, Length: length, Offset: place + i%8*4096*uint64(min(size-length, 1))})
		if err != nil {
			return err
		}
		if i%64 != 0 {
			if _, _, err := say(conn, proto.DeregMR, &provider.DeregMRRequest{MR: mr.MR}); err != nil {
				return err
			}
		}
	}
}

// TestRegistrarKilled: a program that is killed at any moment, mostly in the middle of a registration, leaves nothing.
func TestRegistrarKilled(t *testing.T) {
	r := newRig(t, anyone)
	stillWell := neighbours(t, r)
	before := r.a.Users()
	rounds := often(10)
	for i := range rounds {
		child := startChild(t, "registrar", r.a.path)
		time.Sleep(time.Duration(i) * 70 * time.Millisecond / time.Duration(rounds))
		check(t, child.Process.Kill())
		_ = child.Wait()
		r.a.alone(t, 1)
		stillWell()
		if n, files := processMappings(t), r.a.memory.Files(); n != 0 || files != 0 {
			t.Fatalf("%d mappings are left, %d files", n, files)
		}
	}
	if after := r.a.Users(); len(after) != len(before) || after[0].Used != before[0].Used {
		t.Errorf("%+v are used, %+v were before", after, before)
	}
}
