// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/waittest"
	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	// chaosVariable sets the duration of TestChaos: ten minutes in "make chaos". Without it every actor makes four
	// steps if ROCED_ROUNDS is all, otherwise two.
	chaosVariable = "ROCED_CHAOS"
	// seedVariable repeats the run of a seed, except for timing.
	seedVariable = "ROCED_CHAOS_SEED"
	chaosSteps   = 4
	// networksVariable sets the networks of the two hosts, such as "xdp,udp". By default the seed selects them.
	networksVariable = "ROCED_CHAOS_NETWORKS"
	// workersVariable sets the number of workers of each service over XDP. By default the seed selects it.
	workersVariable = "ROCED_CHAOS_WORKERS"
)

// chaos is a world in which all actors run concurrently.
type chaos struct {
	*world
	seed uint64
	end  time.Time // zero: after chaosSteps
}

// actor repeats one kind of step.
type actor struct {
	name string
	step func(r *rand.Rand)
}

// TestChaos kills, stops and restarts programs and services, changes and replaces links, addresses, queues and limits,
// while all programs make random calls. Afterwards everything must work, every packet must be counted, and nothing may
// leak.
func TestChaos(t *testing.T) {
	c := &chaos{world: &world{T: t}, seed: rand.Uint64()}
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		c.seed, err = strconv.ParseUint(text, 10, 64)
		check(t, err)
	}
	if text := os.Getenv(chaosVariable); text != "" {
		long, err := time.ParseDuration(text)
		check(t, err)
		c.end = time.Now().Add(long)
	}
	networks, workers := c.networks(), c.workers()
	t.Logf("%s=%d %s=%s %s=%d, until %v", seedVariable, c.seed, networksVariable, strings.Join(networks[:], ","), workersVariable, workers, c.end)
	c.world = newWorld(t, networks, workers)
	before := c.calm()
	c.startAll()
	c.stabilise()
	c.queryAll(c.programs[:], func(id int) order { return order{Do: "wild", Seed: c.seed} })
	var actors sync.WaitGroup
	for i, a := range c.actors() {
		actors.Go(func() { c.act(a, rand.New(rand.NewPCG(c.seed, uint64(i)))) })
	}
	actors.Wait()
	if t.Failed() {
		t.FailNow()
	}
	after := c.calm()
	for i, h := range c.hosts {
		h.holdsNoMore(t, before[i], after[i])
		h.terminate(t)
		h.leftNothing(t)
	}
}

// networks returns the networks of the two hosts, xdp or udp.
func (c *chaos) networks() (networks [2]string) {
	if text := os.Getenv(networksVariable); text != "" {
		copy(networks[:], strings.Split(text, ","))
		return networks
	}
	r := rand.New(rand.NewPCG(c.seed, uint64(len(c.hosts))))
	for i := range networks {
		networks[i] = []string{"xdp", "udp"}[r.IntN(2)]
	}
	return networks
}

// calm makes programs exchange messages without losses and exit. It returns the resources that the services hold
// afterwards.
func (c *chaos) calm() (now [2]holds) {
	c.Helper()
	if c.programs[0] == nil {
		c.startAll()
	}
	c.rounds(3)
	for i, h := range c.hosts {
		counters := c.counters(i)
		c.addsUp(h.network, counters)
		c.Logf("%s: %v", h.name, counters)
	}
	c.endAll()
	for i, h := range c.hosts {
		h.holdsNothing(c)
		now[i] = h.holds(c)
	}
	return now
}

// workers returns the number of workers of a service over XDP.
func (c *chaos) workers() int {
	if text := os.Getenv(workersVariable); text != "" {
		n, err := strconv.Atoi(text)
		check(c, err)
		return n
	}
	return 1 + rand.New(rand.NewPCG(c.seed, uint64(len(c.hosts)+1))).IntN(queues)
}

func (c *chaos) act(a actor, r *rand.Rand) {
	n, steps := 0, max(2, waittest.Often(chaosSteps))
	for ; c.end.IsZero() && n < steps || time.Now().Before(c.end); n++ {
		if c.Failed() {
			break
		}
		a.step(r)
	}
	c.Logf("%s: %d steps", a.name, n)
}

func (c *chaos) actors() []actor {
	return []actor{
		{"programs 0 to 4", func(r *rand.Rand) { c.disturbProgram(r, r.IntN(5)) }},
		{"programs 5 to 9", func(r *rand.Rand) { c.disturbProgram(r, 5+r.IntN(5)) }},
		{"service a", func(r *rand.Rand) { c.disturbService(r, c.hosts[0]) }},
		{"service b", func(r *rand.Rand) { c.disturbService(r, c.hosts[1]) }},
		{"links", c.disturbLink},
	}
}

// disturbProgram kills a program, or stops it (SIGSTOP) for a while.
func (c *chaos) disturbProgram(r *rand.Rand, id int) {
	pause(r, 200*time.Millisecond)
	p := c.programs[id]
	if r.IntN(2) == 0 {
		_ = p.Process.Signal(unix.SIGSTOP)
		pause(r, time.Second)
		if r.IntN(2) == 0 {
			_ = p.Process.Signal(unix.SIGCONT)
			return
		}
	}
	p.kill()
	c.startProgram(id)
	if _, err := c.programs[id].query(order{Do: "calm"}); err != nil {
		c.Error(err)
	}
	if _, err := c.programs[id].query(order{Do: "wild", Seed: r.Uint64()}); err != nil {
		c.Error(err)
	}
}

// disturbService kills or ends a service, stops it (SIGSTOP) for a while, or reloads its configuration with other
// limits.
func (c *chaos) disturbService(r *rand.Rand, h *host) {
	pause(r, 2*time.Second)
	switch r.IntN(4) {
	case 0:
		h.signal(unix.SIGSTOP)
		pause(r, time.Second)
		h.signal(unix.SIGCONT)
	case 1:
		h.kill()
		pause(r, 200*time.Millisecond)
		h.start(c)
	case 2:
		h.listens(c) // before that, these signals have their default action
		h.terminate(c)
		h.start(c)
	case 3:
		h.listens(c)
		h.signal(unix.SIGHUP)
	}
}

// disturbLink changes one property of a link, and restores it after a while.
func (c *chaos) disturbLink(r *rand.Rand) {
	pause(r, time.Second)
	h := c.hosts[r.IntN(2)]
	changes := []func(*rand.Rand, *host) error{c.flap, c.flap, c.changeAddress, c.changeMTU, c.changeQueues, c.replaceLink}
	if err := changes[r.IntN(len(changes))](r, h); err != nil {
		c.Error(err)
	}
}

func (h *host) eth0() (netlink.Link, error) { return h.Netlink().LinkByName("eth0") }

// flap sets the link down, for a moment or longer.
func (c *chaos) flap(r *rand.Rand, h *host) error {
	link, err := h.eth0()
	if err != nil {
		return err
	}
	for range 1 + r.IntN(5) {
		err = errors.Join(err, h.Netlink().LinkSetDown(link))
		pause(r, 100*time.Millisecond)
		err = errors.Join(err, h.Netlink().LinkSetUp(link))
		pause(r, 100*time.Millisecond)
	}
	return errors.Join(err, h.addAddresses()) // the kernel has removed those of IPv6
}

// addAddresses adds the missing addresses to the link.
func (h *host) addAddresses() (err error) {
	for _, cidr := range h.cidrs {
		if failed := h.AddAddress("eth0", cidr); !errors.Is(failed, unix.EEXIST) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

func (c *chaos) changeAddress(r *rand.Rand, h *host) error {
	link, err := h.eth0()
	if err != nil {
		return err
	}
	address, err := netlink.ParseAddr(h.cidrs[0])
	if err != nil {
		return err
	}
	err = h.Netlink().AddrDel(link, address)
	pause(r, time.Second)
	return errors.Join(err, h.addAddresses())
}

func (c *chaos) changeMTU(r *rand.Rand, h *host) error {
	link, err := h.eth0()
	if err != nil {
		return err
	}
	err = h.Netlink().LinkSetMTU(link, 700+r.IntN(800))
	pause(r, 500*time.Millisecond)
	return errors.Join(err, h.Netlink().LinkSetMTU(link, 1500), h.addAddresses())
}

// changeQueues changes the number of queues (ethtool -L), except with UDP sockets: the kernel selects their send queue
// by the number of queues, so a change reorders packets.
func (c *chaos) changeQueues(r *rand.Rand, h *host) error {
	receive, send := 1+r.IntN(queues), 1+r.IntN(queues)
	if h.network == "udp" {
		send = queues
	}
	err := setQueues(h.Namespace, "eth0", receive, send)
	if errors.Is(err, unix.EINVAL) { // a queue with a socket cannot be removed
		return nil
	}
	return err
}

func setQueues(host *lab.Namespace, name string, receive, send int) error {
	return host.Do(func() error {
		tool, err := ethtool.NewEthtool()
		if err != nil {
			return err
		}
		defer tool.Close()
		_, err = tool.SetChannels(name, ethtool.Channels{RxCount: uint32(receive), TxCount: uint32(send)})
		return err
	})
}

// withQueues sets the queues of both ends of a new link below the link's maximum. A service holds a spare XDP program
// if it opens a device with fewer queues than the maximum; now every service does, so that resources can be compared.
func withQueues(name string, a, b *lab.Namespace) error {
	return errors.Join(setQueues(a, name, queues, queues), setQueues(b, name, queues, queues))
}

// rename sets the name of a new link, which must be down.
func rename(host *lab.Namespace) error {
	link, err := host.Netlink().LinkByName("new0")
	if err != nil {
		return err
	}
	return errors.Join(host.Netlink().LinkSetDown(link), host.Netlink().LinkSetName(link, "eth0"), host.Netlink().LinkSetUp(link))
}

// replaceLink deletes the link and creates another. The link gets its final name last. Otherwise a service might open
// it before its queues are set.
func (c *chaos) replaceLink(r *rand.Rand, h *host) error {
	link, err := h.eth0()
	if err != nil {
		return err
	}
	err = h.Netlink().LinkDel(link)
	pause(r, time.Second)
	a, b := c.hosts[0], c.hosts[1]
	err = errors.Join(err, lab.Veth(a.Namespace, b.Namespace, "new0", "new0", lab.WithQueues(queues+1)), withQueues("new0", a.Namespace, b.Namespace))
	if err = errors.Join(err, rename(a.Namespace), rename(b.Namespace)); err != nil {
		return fmt.Errorf("replace the link: %w", err)
	}
	return errors.Join(a.addAddresses(), b.addAddresses())
}
