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

// privateNetwork is an in-memory network whose only users are the programs below this command. Its hosts have two addresses
// of each IP version: one of the default pools, so that 10.88.0.1 is the first host of each network, and before it one
// that no other private network of this machine has. Programs of two commands exchange the latter, and so find at
// once that they cannot reach each other.
type privateNetwork struct {
	*loopback.Network
	number  int // claimed until Close; -1: none was free
	claim   int // the descriptor of the claim
	closing chan struct{}
	watched sync.WaitGroup
}

// maxPrivate is the number of private networks that have addresses of their own: 10.89.0.0/16 to 10.255.0.0/16.
const maxPrivate = 255 - 89 + 1

// privatePools are the pools of a private network with a number.
func privatePools(number int) []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix(fmt.Sprintf("10.%d.0.0/16", 89+number)),
		netip.MustParsePrefix(fmt.Sprintf("fd88:%x::/64", 1+number)),
	}
}

// claimNumber claims a number that no other command on this machine has. The claim is an abstract socket (unix(7)): the
// kernel frees it when the process ends, however that happens, and it needs no directory. In a container with its own
// network namespace other claims are not seen, so the search begins at random. The number is -1 if all are taken.
func claimNumber() (number, fd int, err error) {
	fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, -1, fmt.Errorf("claim of a private network: %w", err)
	}
	for try, first := 0, rand.IntN(maxPrivate); try < maxPrivate; try++ {
		number = (first + try) % maxPrivate
		if unix.Bind(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("@roced-exec-network-%d", number)}) == nil {
			return number, fd, nil
		}
	}
	return -1, fd, nil
}

// openPrivate makes the network. With hosts that have names all addresses are known beforehand, and only those.
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

// A program is taken to wait for a peer that cannot come after so many looks in a row at which it was alone.
const (
	lookPause  = time.Second
	looksAlone = 5
)

// watch reports once that a program waits for a peer which cannot come.
func (n *privateNetwork) watch(out io.Writer) {
	ticker := time.NewTicker(lookPause)
	defer ticker.Stop()
	for looks := 0; looks < looksAlone; {
		select {
		case <-n.closing:
			return
		case <-ticker.C:
		}
		if looks++; !n.Alone().IsValid() {
			looks = 0
		}
	}
	fmt.Fprintf(out, "roced exec: a program waits alone on the private network of this command (%v), which programs of another roced exec cannot reach: "+
		"run them below one roced exec, or start roced run --loopback first and share its network\n", n.Alone())
}

// Close ends the network.
func (n *privateNetwork) Close() error {
	close(n.closing)
	n.watched.Wait()
	err := n.Network.Close()
	_ = unix.Close(n.claim)
	return err
}
