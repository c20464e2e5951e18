package datapath

import "github.com/roced/roced/datapath/wire"

// Domain is an XRC domain: the shared receive queues that peers of its targets may name. They may be of several
// sessions. The targets are of a session that is the domain's own, so that they outlive each of these.
type Domain struct{ srqs map[wire.SRQN]*SRQ }

// NewDomain makes a domain without queues.
func NewDomain() *Domain { return &Domain{map[wire.SRQN]*SRQ{}} }

// AddSRQ lets peers name a queue. It runs in Do.
func (d *Domain) AddSRQ(s *SRQ) { d.srqs[s.Number] = s }

// RemoveSRQ ends that. It runs in Do.
func (d *Domain) RemoveSRQ(s *SRQ) { delete(d.srqs, s.Number) }

// srq is the queue of a number; nil if there is none in the domain, or no domain.
func (d *Domain) srq(number wire.SRQN) *SRQ {
	if d == nil {
		return nil
	}
	return d.srqs[number]
}
