// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/roced/roced/cmd/roced/internal/loopback"
	"golang.org/x/sys/unix"
)

// privateNetwork is an in-memory network for the programs below this command. Each host has two addresses of
// each IP version: one of the default pools, so that 10.88.0.1 is the first host of every network, and one
// that is unique on this machine. Programs of different commands exchange the unique address, so connecting
// fails immediately.
type privateNetwork struct {
	*loopback.Network
	number  int // claimed until Close; -1 if no number was free
	claim   int // descriptor of the claim
	closing chan struct{}
	watched sync.WaitGroup
}

// maxPrivate is the number of private networks with unique addresses: 10.89.0.0/16 to 10.255.0.0/16.
const maxPrivate = 255 - 89 + 1

// privatePools returns the address pools of a private network.
func privatePools(number int) []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix(fmt.Sprintf("10.%d.0.0/16", 89+number)),
		netip.MustParsePrefix(fmt.Sprintf("fd88:%x::/64", 1+number)),
	}
}

// claimNumber claims a number that no other command on this machine uses. The claim is an abstract socket
// (unix(7)), which the kernel frees when the process ends and which needs no directory. Claims in other
// network namespaces are not visible, so the search starts at a random number. The number is -1 if none is free.
func claimNumber() (number, fd int, err error) {
	fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, -1, fmt.Errorf("claim a private network: %w", err)
	}
	for try, first := 0, rand.IntN(maxPrivate); try < maxPrivate; try++ {
		number = (first + try) % maxPrivate
		if unix.Bind(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("@roced-exec-network-%d", number)}) == nil {
			return number, fd, nil
		}
	}
	return -1, fd, nil
}

// openPrivate opens the in-memory network. With named hosts it has only their fixed addresses.
func (o *options) openPrivate(out io.Writer) (n *privateNetwork, err error) {
	n = &privateNetwork{closing: make(chan struct{})}
	if n.number, n.claim, err = claimNumber(); err != nil {
		return nil, err
	}
	memory := o.memory
	if n.number >= 0 && o.hosts == 0 {
		memory.Pools = append(privatePools(n.number), memory.Pools...)
	}
	if n.Network, err = loopback.New(memory, o.log); err != nil {
		_ = unix.Close(n.claim)
		return nil, err
	}
	n.watched.Go(func() { n.watch(out) })
	return n, nil
}

// A program that was alone in checksAlone consecutive checks is assumed to wait for a peer that cannot connect.
const (
	checkInterval = time.Second
	checksAlone   = 5
)

// watch reports once that a program is waiting for a peer that cannot connect.
func (n *privateNetwork) watch(out io.Writer) {
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for checks := 0; checks < checksAlone; {
		select {
		case <-n.closing:
			return
		case <-ticker.C:
		}
		if checks++; !n.Alone().IsValid() {
			checks = 0
		}
	}
	fmt.Fprintf(out, "roced exec: a program is waiting alone on the private network of this command (%v), which other roced exec commands cannot reach: "+
		"run the programs below one roced exec, or start roced run --loopback first\n", n.Alone())
}

// Close closes the network.
func (n *privateNetwork) Close() error {
	close(n.closing)
	n.watched.Wait()
	err := n.Network.Close()
	_ = unix.Close(n.claim)
	return err
}
