// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/roced/roced/hack/bench/harness"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
)

const (
	engineSize = 64
	many       = 10000
)

// engineAlone measures one thread that sends and receives over an in-memory network: to one queue pair, to one of many,
// and to many in turn. Then it measures the same with groups.
func (b *bench) engineAlone() error {
	variants := []string{"one queue pair", "one among 10000", "spread over 10000"}
	err := b.InTurns("engine", engineSize, "", variants, func(variant string) (float64, error) {
		return b.runEngine(queuePairTargets, variant, variants)
	})
	if err != nil {
		return err
	}
	variants = []string{"one group", "one group among 10000", "spread over 10000 groups"}
	err = b.InTurns("engine, groups", engineSize, "", variants, func(variant string) (float64, error) {
		return b.runEngine(groupTargets, variant, variants)
	})
	if err != nil {
		return err
	}
	variants = []string{"one session", fmt.Sprintf("one among %d", manySessions)}
	return b.InTurns("engine, sessions", engineSize, "", variants, func(variant string) (float64, error) {
		return b.runSessions(variant == variants[1])
	})
}

// target is the destination of a message, and the queue pair that receives it.
type target struct {
	ah     *verbs.AH
	number verbs.QPN
	qp     *verbs.QP
}

// runEngine opens two devices on an in-memory network, creates targets, and sends messages as the variant requires: to
// the only target, to one of many, or to all in turn.
func (b *bench) runEngine(make targetMaker, variant string, variants []string) (rate float64, err error) {
	count, used := many, 1
	switch variant {
	case variants[0]:
		count = 1
	case variants[2]:
		used = many
	}
	w, err := openWire()
	if err != nil {
		return 0, err
	}
	defer w.close()
	targets, err := make(w.sender, w.receiver, wireReceiver, count)
	if err != nil {
		return 0, err
	}
	return stream(w.sender, w.receiver, targets[count/2-used/2:][:used], b.Duration)
}

// wireReceiver is the address of the receiver's card.
var wireReceiver = netip.MustParseAddr("10.0.0.2")

// onWire contains two cards on an in-memory network, which the thread of their programs drives.
type onWire struct {
	left, right      *hca.Card
	sender, receiver *program
}

func openWire() (w *onWire, err error) {
	w = &onWire{}
	if w.left, w.right, err = hca.OpenPair([]netip.Addr{netip.MustParseAddr("10.0.0.1")}, []netip.Addr{wireReceiver}, hca.WithoutWorker()); err != nil {
		return nil, err
	}
	if w.sender, err = newProgram(w.left, false, engineSize); err == nil {
		w.receiver, err = newProgram(w.right, false, engineSize)
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *onWire) close() {
	_ = w.left.Close()
	_ = w.right.Close()
}

// targetMaker creates count targets at a receiver, for a sender.
type targetMaker func(sender, receiver *program, there netip.Addr, count int) ([]target, error)

func queuePairTargets(sender, receiver *program, there netip.Addr, count int) (all []target, err error) {
	ah, err := sender.addressOf(harness.Endpoint{Address: there.String()})
	if err != nil {
		return nil, err
	}
	for range count {
		qp, err := receiver.newQP(batch)
		if err != nil {
			return nil, err
		}
		all = append(all, target{ah, qp.Number(), qp})
	}
	return all, nil
}

// groupTargets attaches one queue pair to all groups.
func groupTargets(sender, receiver *program, _ netip.Addr, count int) (all []target, err error) {
	for i := range count {
		group := netip.AddrFrom4([4]byte{239, 1, byte(i >> 8), byte(i)})
		if err := receiver.qp.AttachMcast(verbs.GID(group.As16()), 0); err != nil {
			return nil, err
		}
		ah, err := sender.addressOf(harness.Endpoint{Address: group.String()})
		if err != nil {
			return nil, err
		}
		all = append(all, target{ah, verbs.MulticastQPN, receiver.qp})
	}
	return all, nil
}

// stream sends batches for a duration, each message to the next target, and checks that all messages arrive.
func stream(sender, receiver *program, targets []target, duration time.Duration) (float64, error) {
	sends := sender.sends(harness.Job{Size: engineSize}, nil)
	recvs := make([]verbs.RecvWR, batch)
	for i := range recvs {
		recvs[i].SGList = []verbs.SGE{receiver.mr.SGE(i*receiver.slot, receiver.slot)}
	}
	count, next := 0, 0
	start := time.Now()
	for time.Since(start) < duration {
		for range 64 {
			for i := range sends {
				to := targets[(next+i)%len(targets)]
				sends[i].AH, sends[i].RemoteQPN = to.ah, to.number
			}
			if err := postTo(targets, next, recvs); err != nil {
				return 0, err
			}
			next = (next + batch) % len(targets)
			if err := sender.qp.PostSend(sends); err != nil {
				return 0, err
			}
			if err := drain(sender.send, sender.wcs[:], 1); err != nil {
				return 0, err
			}
			if err := drain(receiver.recv, receiver.wcs[:], batch); err != nil {
				return 0, err
			}
			count += batch
		}
	}
	return float64(count) / time.Since(start).Seconds(), nil
}

// postTo posts the receives of the next targets. Each has its own call, so that a post costs the same for one queue
// pair and for many.
func postTo(targets []target, next int, recvs []verbs.RecvWR) error {
	for i := range recvs {
		if err := targets[(next+i)%len(targets)].qp.PostRecv(recvs[i : i+1]); err != nil {
			return err
		}
	}
	return nil
}

// drain polls n completions.
func drain(cq *verbs.CQ, wcs []verbs.WC, n int) error {
	for tries := 0; n > 0; tries++ {
		got, err := cq.Poll(wcs[:min(n, len(wcs))])
		if err != nil {
			return err
		}
		for i := range wcs[:got] {
			if err := wcs[i].Err(); err != nil {
				return err
			}
		}
		if n -= got; tries > 1000 {
			return fmt.Errorf("%d messages did not arrive", n)
		}
	}
	return nil
}
