// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"fmt"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/verbs"
	"github.com/safchain/ethtool"
)

// sending determines how a card's frames leave its interface: singly through the AF_XDP socket, or bursts as trains;
// see hca.SendMode.
type sending struct {
	mode  string
	never string           // the reason why frames never leave in trains; empty if they may
	tool  *ethtool.Ethtool // in the interface's namespace
}

// openSending opens the sockets and tools for trains, if frames may leave in trains.
func (b *builder) openSending() error {
	mode, zeroCopy := b.config.Send, b.sockets[0].Attached().ZeroCopy
	if b.workers > 1 && mode == sendTrains {
		return fmt.Errorf("%w: trains need one worker, and the card has %d; use only one of the two", verbs.ErrUnsupported, b.workers)
	}
	if zeroCopy && mode == sendTrains {
		return fmt.Errorf("%w: trains do not work with zero-copy sockets, which are faster: the NIC reads the frames itself; use only one of the two", verbs.ErrUnsupported)
	}
	b.sending.mode = mode
	if b.sending.never = b.whyNever(mode, zeroCopy); b.sending.never != "" {
		return nil
	}
	err := b.openTrains()
	if err != nil && mode != sendTrains {
		b.sending.never = err.Error()
		return nil
	}
	return err
}

// whyNever returns the reason why frames can never leave in trains; empty if they may.
func (b *builder) whyNever(mode string, zeroCopy bool) string {
	switch {
	case mode == sendAFXDP:
		return "as asked for"
	case b.workers > 1:
		return fmt.Sprintf("the card has %d workers, which send through a queue each", b.workers)
	case zeroCopy:
		return "opened with zero-copy sockets: the NIC reads the frames itself"
	case mode == sendTrains:
		return ""
	case b.base.Type() != "veth":
		return "automatic on veth only"
	case !link.KernelCutsTrains():
		return "the kernel cannot cut trains before Linux 6.2"
	}
	return ""
}

// openTrains opens the link's socket. A sandbox may deny its address families to the process.
func (b *builder) openTrains() (err error) {
	if b.sending.tool == nil {
		return fmt.Errorf("%w: ethtool's socket cannot be opened", verbs.ErrUnsupported)
	}
	b.packets, err = link.OpenPackets(b.base.Attrs().Index)
	return err
}

// close closes the tool for queries.
func (s *sending) close() {
	if s.tool != nil {
		s.tool.Close()
	}
}

// trains determines how frames may now leave through an interface, that of the card or the one below a VLAN, and, if
// not in trains, the reason. It changes while the card is open: a veth starts to segment trains when an XDP program is
// attached to its other end. queues is the number of the interface's send queues: the kernel chooses one for each
// train, while the AF_XDP socket has its own.
func (s *sending) trains(below host.Link, queues int) (t link.Trains, why string, err error) {
	if s.never != "" {
		return t, s.never, nil
	}
	t.Name, t.Queued = below.Attrs().Name, below.Discipline != "noqueue"
	switch {
	case queues != 1:
		why = fmt.Sprintf("%s sends through %d queues, in which packets could overtake each other; ethtool -L changes it", t.Name, queues)
	case s.mode == sendTrains:
	case t.Queued:
		why = t.Name + " has a queueing discipline, " + below.Discipline
	default:
		why, err = s.whyNot(t.Name)
	}
	t.Use = why == "" && err == nil
	return t, why, err
}

// whyNot returns the reason why trains are not used automatically on a veth; empty if they are known to be faster there
// without changing the packets, since the kernel segments them when they leave.
func (s *sending) whyNot(name string) (string, error) {
	features, err := s.tool.Features(name)
	if err != nil {
		return "", fmt.Errorf("ethtool %s: %w", name, err)
	}
	if features["tx-udp-segmentation"] {
		return name + " would hand trains on as they are: the other end has no native XDP program", nil
	}
	return "", nil
}
