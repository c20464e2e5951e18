// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/roced/roced/hack/interop/job"
	"github.com/roced/roced/hack/interop/vm"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/verbs/client"
)

// side is the environment of one of the two programs.
type side struct {
	socket    string // socket of its service
	name      string // name or address for TCP connections from the other side
	ip4, ip6  string // addresses for RDMA
	gid       int    // GID index of ip4
	guest     *vm.VM // machine with Soft-RoCE in which its programs run; nil if they run here with a service
	namespace *lab.Namespace
	service   *job.Job
	cancel    context.CancelFunc
}

// within calls start in the side's network namespace.
func (s *side) within(start func() error) error {
	if s.namespace == nil {
		return start()
	}
	return s.namespace.Do(start)
}

// network contains the server's side and the client's side.
type network struct {
	name    string
	wire    bool // the addresses can be used for TCP too
	machine bool // the addresses are those of this machine
	sides   [2]*side
	bridge  *lab.Bridge // connects a namespace and a virtual machine; otherwise nil
}

// newMemory starts a service with an in-memory network. Each program is a host on it, and the two sides have fixed
// hosts. The service runs in a namespace, so that no packets to these addresses leave the machine.
func newMemory(ctx context.Context, b *bench) (n *network, err error) {
	server := &side{name: "localhost", ip4: "10.77.5.1", ip6: "fd77:5::1"}
	client := &side{name: "localhost", ip4: "10.77.5.2", ip6: "fd77:5::2"}
	n = &network{name: "in memory", sides: [2]*side{server, client}}
	if server.namespace, err = lab.New(labPrefix); err != nil {
		return n, err
	}
	client.namespace = server.namespace
	err = server.serve(ctx, b, "memory", fmt.Sprintf("--loopback --host server=%s,%s --host client=%s,%s", server.ip4, server.ip6, client.ip4, client.ip6))
	client.socket = server.socket
	return n, err
}

// newMachine starts a service whose hosts stand for the machine: servers and clients meet by its addresses.
func newMachine(ctx context.Context, b *bench) (n *network, err error) {
	both := &side{name: "localhost", ip4: "127.0.0.1", ip6: "::1"}
	n = &network{name: "in memory, by localhost", machine: true, sides: [2]*side{both, both}}
	if both.namespace, err = lab.New(labPrefix); err != nil {
		return n, err
	}
	return n, both.serve(ctx, b, "machine", "--loopback")
}

// newSockets starts two services in two namespaces, over UDP sockets.
func newSockets(ctx context.Context, b *bench) (n *network, err error) {
	server := &side{name: "10.77.0.1", ip4: "10.77.0.1", ip6: "fd77::1"}
	client := &side{name: "10.77.0.2", ip4: "10.77.0.2", ip6: "fd77::2"}
	n = &network{name: "UDP sockets", wire: true, sides: [2]*side{server, client}}
	for _, s := range n.sides {
		if s.namespace, err = lab.New(labPrefix); err != nil {
			return n, err
		}
	}
	if err := lab.Veth(server.namespace, client.namespace, "eth0", "eth0"); err != nil {
		return n, err
	}
	for _, s := range n.sides {
		if err := errors.Join(s.namespace.AddAddress("eth0", s.ip4+"/24"), s.namespace.AddAddress("eth0", s.ip6+"/64")); err != nil {
			return n, err
		}
		if err := s.serve(ctx, b, "udp-"+s.ip4, "--device eth0 --network udp"); err != nil {
			return n, err
		}
	}
	return n, nil
}

// serve starts the side's service, and waits until it responds.
func (s *side) serve(ctx context.Context, b *bench, name, options string) error {
	folder := filepath.Join(b.dir, name)
	if err := errors.Join(os.Mkdir(folder, 0o755), os.Chown(folder, nobody, nobody)); err != nil {
		return err
	}
	s.socket = filepath.Join(folder, "roced.sock")
	ctx, s.cancel = context.WithCancel(ctx)
	s.service = b.start(ctx, s, testCase{}, b.roced()+" run --socket "+s.socket+" "+options)
	for {
		_, err := client.Devices(s.socket)
		if err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED) {
			return err
		}
		if s.service.Ended() {
			said, err := s.service.Wait()
			return fmt.Errorf("the service ended: %w: %s", err, said)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Close stops the services and removes the namespaces.
func (n *network) Close() (err error) {
	for i, s := range n.sides {
		if i > 0 && s == n.sides[0] {
			break
		}
		if s.guest != nil {
			err = errors.Join(err, s.guest.Close())
		}
		if s.service != nil {
			s.cancel()
			if said, failed := s.service.Wait(); failed != nil && !errors.Is(failed, context.Canceled) {
				err = errors.Join(err, fmt.Errorf("the service: %w: %s", failed, said))
			}
		}
		if s.namespace != nil && (i == 0 || s.namespace != n.sides[0].namespace) {
			err = errors.Join(err, s.namespace.Close())
		}
	}
	if n.bridge != nil {
		err = errors.Join(err, n.bridge.Close())
	}
	return err
}
