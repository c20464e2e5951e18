// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
)

// testQKey is the default Q_Key of both sides.
const testQKey verbs.QKey = 0x11111111

// Buffers of a station.
const (
	stationDepth  = 64
	stationBuffer = 8192 // length in bytes
)

// station is a card on the host's interface with a queue pair in RTS.
type station struct {
	*verbs.Context
	card  *hca.Card
	pd    *verbs.PD
	mr    *verbs.MR
	cq    *verbs.CQ
	qp    *verbs.QP
	posts int // receives posted so far
}

func (l *testbed) newStation(options ...hca.Option) (s *station, err error) {
	s = &station{}
	options = slices.Concat([]hca.Option{hca.InNamespace(l.host.Path()), hca.WithWorkers(l.workers)}, l.sending(l.send), options)
	if s.card, err = hca.Open("eth0", options...); err != nil {
		return nil, err
	}
	if s.Context, err = verbs.Open(s.card); err != nil {
		return nil, errors.Join(err, s.card.Close())
	}
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// sending returns the options for the network and a send mode.
func (l *testbed) sending(mode hca.SendMode) []hca.Option {
	if l.network == hca.NetworkUDP {
		return []hca.Option{hca.WithNetwork(l.network)}
	}
	return []hca.Option{hca.WithNetwork(l.network), hca.WithSendMode(mode)}
}

func (s *station) open() (err error) {
	if s.pd, err = s.AllocPD(); err != nil {
		return err
	}
	if s.mr, err = s.pd.AllocMR((stationDepth+1)*stationBuffer, verbs.AccessLocalWrite); err != nil {
		return err
	}
	if s.cq, err = s.CreateCQ(2 * stationDepth); err != nil {
		return err
	}
	s.qp, err = s.pd.CreateQP(&verbs.QPInitAttr{
		Type: verbs.QPTypeUD, SendCQ: s.cq, RecvCQ: s.cq,
		Cap: verbs.QPCap{MaxSendWR: stationDepth, MaxRecvWR: stationDepth},
	})
	if err != nil {
		return err
	}
	return s.qp.Activate(testQKey)
}

// postRecvs posts n receives of a length in bytes, including 40 for the GRH.
func (s *station) postRecvs(n, length int) error {
	for range n {
		wr := verbs.RecvWR{ID: uint64(s.posts), SGList: []verbs.SGE{s.mr.SGE(s.posts%stationDepth*stationBuffer, length)}}
		if err := s.qp.PostRecv([]verbs.RecvWR{wr}); err != nil {
			return err
		}
		s.posts++
	}
	return nil
}

// message is a received datagram.
type message struct {
	data   []byte
	imm    uint32
	hasImm bool
	source verbs.QPN
	grh    verbs.GRH
}

// receive waits for n messages.
func (s *station) receive(ctx context.Context, n int) (got []message, err error) {
	for len(got) < n {
		wcs := make([]verbs.WC, n-len(got))
		count, err := s.cq.Wait(ctx, wcs)
		if err != nil {
			return got, fmt.Errorf("%d of %d messages arrived: %w", len(got), n, err)
		}
		for i := range wcs[:count] {
			if err := wcs[i].Err(); err != nil {
				return got, err
			}
			got = append(got, s.message(&wcs[i]))
		}
	}
	return got, nil
}

func (s *station) message(wc *verbs.WC) message {
	grh, data := wc.Payload(s.mr.Bytes()[int(wc.ID)%stationDepth*stationBuffer:])
	return message{slices.Clone(data), wc.ImmData, wc.Flags&verbs.WCWithImm != 0, wc.SrcQP, slices.Clone(grh)}
}

// send sends one message and waits for its completion.
func (s *station) send(ctx context.Context, wr verbs.SendWR, data []byte) error {
	const buffer = stationDepth * stationBuffer
	copy(s.mr.Bytes()[buffer:], data)
	wr.SGList = []verbs.SGE{s.mr.SGE(buffer, len(data))}
	wr.Flags |= verbs.SendSignaled
	if err := s.qp.PostSend([]verbs.SendWR{wr}); err != nil {
		return err
	}
	var wcs [1]verbs.WC
	if _, err := s.cq.Wait(ctx, wcs[:]); err != nil {
		return err
	}
	return wcs[0].Err()
}

// address creates an address handle, with the host's address of the same family as the source.
func (s *station) address(to netip.Addr, route verbs.GlobalRoute) (ah *verbs.AH, err error) {
	if route.SGIDIndex, err = s.gidIndex(ends(to.Is6()).host); err != nil {
		return nil, err
	}
	route.DGID = wire.GIDFromAddr(to)
	return s.pd.CreateAH(context.Background(), &verbs.AHAttr{Port: 1, GRH: route})
}

// gidIndex returns the GID index of an address.
func (s *station) gidIndex(address netip.Addr) (int, error) {
	entries, err := s.QueryGIDTable(1)
	for _, entry := range entries {
		if entry.GID == wire.GIDFromAddr(address) {
			return entry.Index, nil
		}
	}
	return 0, fmt.Errorf("%v is not in roced's GID table (%w)", address, err)
}

// dropError returns an error with the card's drop counters, to explain a missing message.
func (s *station) dropError() error {
	drops, err := s.drops()
	if err != nil {
		return err
	}
	return fmt.Errorf("dropped: %v", drops)
}

// drops returns the numbers of packets that the card dropped, by reason.
func (s *station) drops() (map[string]uint64, error) {
	statistics, err := s.card.Statistics()
	if err != nil {
		return nil, err
	}
	drops := map[string]uint64{}
	for _, c := range statistics.Steering {
		if c.Lost && c.Value > 0 {
			drops[c.Name] = c.Value
		}
	}
	for _, reason := range datapath.Reasons() {
		if packets := statistics.Engine.Drops[reason]; packets > 0 {
			drops[reason.String()] = packets
		}
	}
	return drops, nil
}
