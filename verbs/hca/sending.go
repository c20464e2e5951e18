package hca

import (
	"errors"
	"fmt"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/verbs"
	"github.com/safchain/ethtool"
)

// sending decides how a card's frames leave its interface: each by itself through the AF_XDP socket,
// or bursts as trains; see SendMode.
type sending struct {
	mode  SendMode
	below *host.Queries    // about the interface that sends: that of the card, or the one below a VLAN
	tool  *ethtool.Ethtool // in its namespace
}

// openSending opens what trains need, where frames may leave in trains.
func (b *builder) openSending() (err error) {
	mode, kind, zeroCopy := b.options.send, b.base.Type(), b.sockets[0].Attached().ZeroCopy
	switch {
	case zeroCopy && mode == SendTrains:
		return fmt.Errorf("%w: trains with zero-copy sockets, which are faster: the NIC reads the frames itself; leave one of the two out", verbs.ErrUnsupported)
	case zeroCopy, mode == SendAFXDP, mode != SendTrains && (kind != "veth" || !link.KernelCutsTrains()):
		return nil
	}
	if err := b.openTrains(); err != nil {
		if mode == SendTrains {
			return err
		}
		b.options.log.Info("no trains: each packet leaves by itself", "device", b.name, "error", err)
		return nil
	}
	b.sending.mode, b.sending.below = mode, b.queries
	if b.below != nil {
		b.sending.below = b.below
	}
	return nil
}

// openTrains opens the descriptors. A sandbox may have closed their address families to the process.
func (b *builder) openTrains() error {
	tool, err := ethtool.NewEthtool()
	if err != nil {
		return fmt.Errorf("ethtool: %w", err)
	}
	if b.packets, err = link.OpenPackets(b.base.Attrs().Index); err != nil {
		tool.Close()
		return err
	}
	b.sending.tool = tool
	return nil
}

// close closes what openSending has opened, but for the link's socket.
func (s *sending) close() {
	if s.tool != nil {
		s.tool.Close()
	}
}

// trains says how frames may leave now. It changes while the card is open: a veth begins to make
// packets of trains when an XDP program is attached to its other end.
func (s *sending) trains() (t link.Trains, err error) {
	if s.tool == nil {
		return t, nil
	}
	below, err := s.below.Link()
	if err != nil {
		return t, err
	}
	t.Name = below.Attrs().Name
	discipline, err := s.below.Discipline()
	if err != nil {
		return t, err
	}
	t.Queued = discipline != "noqueue"
	if t.Use = s.mode == SendTrains; t.Use || t.Queued {
		return t, nil
	}
	t.Use, err = s.helps(t.Name)
	return t, err
}

// helps says whether trains are known to help on a veth, and cannot be noticed: the kernel makes
// packets of them on the way out, and there is one queue, so that packets stay in order.
func (s *sending) helps(name string) (bool, error) {
	queues, queuesErr := s.tool.GetChannels(name)
	features, featuresErr := s.tool.Features(name)
	if err := errors.Join(queuesErr, featuresErr); err != nil {
		return false, fmt.Errorf("ethtool %s: %w", name, err)
	}
	return queues.TxCount+queues.CombinedCount == 1 && !features["tx-udp-segmentation"], nil
}
