// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/roced/roced/hack/bench/harness"
	"github.com/roced/roced/verbs"
)

// crowdSender is a program with many sending queue pairs, which share a CQ.
type crowdSender struct {
	*program
	mr     *verbs.MR
	random *rand.Rand
	to     []target
	from   [mixedQPs]mixedQP
	wrs    [mixedBurst]verbs.SendWR
	sges   [mixedBurst]verbs.SGE
}

// mixedQP is a sending queue pair.
type mixedQP struct {
	qp   *verbs.QP
	sent uint64 // messages posted
	free int    // free slots
}

func sendMixed(j harness.Job) (harness.Result, error) {
	p, err := openProgram(j)
	if err != nil {
		return harness.Result{}, err
	}
	s, err := p.newCrowdSender(j)
	if err != nil {
		return harness.Result{}, err
	}
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return harness.Result{}, err
	}
	for start := time.Now(); time.Since(start) < j.Duration; {
		if err := s.burst(s.random.IntN(mixedQPs)); err != nil {
			return harness.Result{}, err
		}
	}
	r := harness.Result{}
	for i := range s.from {
		for s.from[i].free < mixedSlots {
			if err := s.complete(); err != nil {
				return harness.Result{}, err
			}
		}
		r.Messages += s.from[i].sent
	}
	return r, errors.Join(r.AddDrops(p.device), p.close())
}

func (p *program) newCrowdSender(j harness.Job) (s *crowdSender, err error) {
	s = &crowdSender{program: p, random: rand.New(rand.NewPCG(1, 2))}
	if s.mr, err = p.pd.AllocMR(mixedQPs*mixedSlots*mixedSize, verbs.AccessLocalWrite); err != nil {
		return nil, err
	}
	if p.send, err = p.ctx.CreateCQ(mixedQPs * mixedSlots); err != nil {
		return nil, err
	}
	for i := range s.from {
		if s.from[i].qp, err = p.newQP(mixedSlots); err != nil {
			return nil, err
		}
		s.from[i].free = mixedSlots
	}
	for i, address := range mixedAddresses {
		ah, err := p.addressOf(harness.Endpoint{Address: address})
		if err != nil {
			return nil, err
		}
		s.to = append(s.to, target{ah: ah, number: j.Peer.QPNs[i]})
	}
	return s, nil
}

// burst posts messages of one queue pair to one destination. Half of the bursts are short, and one in eight has random
// message lengths.
func (s *crowdSender) burst(i int) error {
	n := 1 + s.random.IntN(mixedBurst)
	if s.random.IntN(2) == 0 {
		n = 1 + s.random.IntN(8)
	}
	for s.from[i].free < n {
		if err := s.complete(); err != nil {
			return err
		}
	}
	to, anyLength := s.to[s.random.IntN(len(s.to))], s.random.IntN(8) == 0
	for k := range n {
		length := mixedLength(i)
		if anyLength {
			length = stampLen + s.random.IntN(mixedSize-stampLen+1)
		}
		s.write(i, k, length)
		s.wrs[k] = verbs.SendWR{Opcode: verbs.WRSend, SGList: s.sges[k : k+1], AH: to.ah, RemoteQPN: to.number, RemoteQKey: qkey}
	}
	s.wrs[n-1].Flags, s.wrs[n-1].ID = verbs.SendSignaled, uint64(i*(mixedBurst+1)+n)
	s.from[i].free -= n
	return s.from[i].qp.PostSend(s.wrs[:n])
}

// write writes the next message of a queue pair, which is number k of its burst.
func (s *crowdSender) write(i, k, length int) {
	slot := i*mixedSlots + int(s.from[i].sent%mixedSlots)
	s.from[i].sent++
	stamp{i, length, s.from[i].sent}.put(s.mr.Bytes()[slot*mixedSize:])
	s.sges[k] = s.mr.SGE(slot*mixedSize, length)
}

// complete processes completions. Each is of a whole burst, and its ID encodes the queue pair and the number of
// messages.
func (s *crowdSender) complete() error {
	n, err := s.poll(s.send)
	for _, wc := range s.wcs[:n] {
		s.from[wc.ID/(mixedBurst+1)].free += int(wc.ID % (mixedBurst + 1))
	}
	return err
}
